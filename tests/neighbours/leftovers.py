"""Deletes what projects still have in the services of a cloud, using few requests to find it."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from keystoneauth1.exceptions import BadRequest, Conflict, NotFound

TIMEOUT_SECONDS = 30
# Users come before what they use.
NETWORK = (
    'floatingips',
    'routers',
    'ports',
    'networks',
    'security-groups',
    'qos/policies',
    'subnetpools',
    'address-scopes',
)
ROUTER_INTERFACE = 'network:router_interface'


def clean_network(neutron, projects, kept):
    """Delete all resources except the networks and routers whose IDs are in *kept*."""
    whose = '&'.join(f'project_id={each}' for each in projects)
    with ThreadPoolExecutor(len(NETWORK)) as pool:
        found = dict(zip(NETWORK, pool.map(lambda kind: _listed(neutron, kind, whose), NETWORK), strict=True))
        for project_id in projects:
            neutron.delete(f'/quotas/{project_id}', raise_exc=False)
    for kind, listed in found.items():
        for each in listed:
            if not kept & {each['id'], each.get('device_id')} and not _is_untouched(kind, each):
                _delete_of_network(neutron, kind, each)


def _listed(neutron, kind, whose):
    return neutron.get(f'/{kind}?{whose}').json()[kind.rpartition('/')[2].replace('-', '_')]


def _is_untouched(kind, each):
    """Whether it is an unmodified default security group of a project; Neutron would only create it again."""
    return kind == 'security-groups' and each['name'] == 'default' and len(each['security_group_rules']) == 4


def _delete_of_network(neutron, kind, each):
    if kind == 'routers':
        for port in _listed(neutron, 'ports', f'device_id={each["id"]}&device_owner={ROUTER_INTERFACE}'):
            neutron.put(f'/routers/{each["id"]}/remove_router_interface', json={'port_id': port['id']})
    if kind == 'ports' and each['device_owner'].startswith('network:'):
        return
    with suppress(NotFound):
        neutron.delete(f'/{kind}/{each["id"]}')


def clean_block_storage(cinder, projects, kept):
    """Delete all volumes, whatever uses them, and what was created from them."""
    for project_id in projects:
        cinder.delete(f'/os-quota-sets/{project_id}', raise_exc=False)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while held := [each for each in _volumes(cinder) if each['os-vol-tenant-attr:tenant_id'] in projects]:
        for volume in held:
            if volume['status'] != 'deleting':
                _delete_volume(cinder, volume)
        if time.monotonic() > deadline:
            raise TimeoutError(f'Volumes do not go: {held}')
        time.sleep(0.05)


def _volumes(cinder):
    return cinder.get('/volumes/detail?all_tenants=1').json()['volumes']


def _delete_volume(cinder, volume):
    path = f'/attachments?all_tenants=1&volume_id={volume["id"]}'
    for each in cinder.get(path, microversion='3.27').json()['attachments']:
        with suppress(NotFound):
            cinder.delete(f'/attachments/{each["id"]}', microversion='3.27')
    # It may be busy at the moment; then the request is repeated.
    with suppress(BadRequest, NotFound, Conflict):
        cinder.delete(f'/volumes/{volume["id"]}?cascade=True')
        return
    with suppress(BadRequest, NotFound, Conflict):
        state = {'status': 'error', 'attach_status': 'detached', 'migration_status': 'none'}
        cinder.post(f'/volumes/{volume["id"]}/action', json={'os-reset_status': state})


def clean_image(glance, projects, kept):
    """Delete all images, protected or not."""
    for hidden in ('true', 'false'):
        for image in glance.get(f'/images?visibility=all&os_hidden={hidden}&limit=1000').json()['images']:
            if image['owner'] in projects:
                _delete_image(glance, image)


def _delete_image(glance, image):
    path = f'/images/{image["id"]}'
    if image['protected']:
        patch = [{'op': 'replace', 'path': '/protected', 'value': False}]
        glance.patch(path, json=patch, headers={'Content-Type': 'application/openstack-images-v2.1-json-patch'})
    with suppress(NotFound):
        glance.delete(path)


CLEANING = {'block-storage': clean_block_storage, 'image': clean_image, 'network': clean_network}
"""By service type: a function of the adapter, the project IDs, and the IDs to keep."""
