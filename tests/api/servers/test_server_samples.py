"""Servers at every version, compared with recorded responses: the same keys and JSON types."""

import re
import uuid
from pathlib import Path

import pytest

from computeapi.clock import utcnow
from computeapi.db import block_devices, server_tags

SAMPLES = Path(__file__).parents[2] / 'samples'
ADMIN, OWNER = 'admin:project', 'bob:project'


def recorded(pattern):
    names = sorted(str(path.relative_to(SAMPLES)) for path in SAMPLES.glob(pattern))
    return [pytest.param(name, (re.findall(r'v(2\.\d+)/', name) or ['2.1'])[0], id=name) for name in names]


def facts(seen):
    """The record of a server that would be shown like this."""
    return {
        'project_id': 'project',
        'description': seen.get('description'),
        'locked_by': 'owner' if seen.get('locked') else None,
        'locked_reason': seen.get('locked_reason'),
        'server_group_id': str(uuid.uuid4()) if seen.get('server_groups') else None,
        'key_name': seen.get('key_name'),
        'access_ip_v4': '1.2.3.4',
        'metadata': {'My Server Name': 'Apache1'},
        'image_properties': {'architecture': 'x86_64', 'auto_disk_config': 'True'},
        'trusted_image_certificates': seen.get('trusted_image_certificates'),
        'scheduler_hints': seen.get('scheduler_hints') or {},
        'pinned_availability_zone': seen.get('pinned_availability_zone'),
        'root_device_name': '/dev/vda',
        'user_data': seen.get('OS-EXT-SRV-ATTR:user_data'),
        'launched_at': utcnow(),
        'flavor': FLAVOR | {'extra_specs': seen['flavor'].get('extra_specs') or {}} if 'flavor' in seen else FLAVOR,
        'network_info': [PRIVATE],
    }


FLAVOR = {'flavorid': '1', 'name': 'm1.tiny', 'memory_mb': 512, 'vcpus': 1, 'root_gb': 1, 'ephemeral_gb': 0, 'swap': 0}
PRIVATE = {
    'port_id': 'a-port',
    'network_name': 'private',
    'mac_address': '00:0c:29:0d:11:74',
    'addresses': [{'address': '192.168.1.30', 'version': 4, 'floating': []}],
    'security_groups': ['default'],
}


@pytest.fixture
def like(servers):
    """like(seen): creates a server that looks like a recorded one; returns its ID."""

    def make(seen):
        server_id = servers.add(**facts(seen))
        with servers.store.write() as connection:
            server_tags.replace(connection, server_id, seen.get('tags') or ())
            for number, volume in enumerate(seen.get('os-extended-volumes:volumes_attached') or ()):
                attached = {'server_id': server_id, 'uuid': f'{server_id}{number}', 'volume_id': volume['id']}
                kept = volume.get('delete_on_termination', False)
                block_devices.insert(connection, VOLUME | attached | {'delete_on_termination': kept})
        return server_id

    return make


VOLUME = {'source_type': 'volume', 'destination_type': 'volume', 'created_at': utcnow()}


def in_text(seen):
    """The samples of 2.16 have null where other servers have an empty string."""
    ids = {'OS-EXT-SRV-ATTR:kernel_id', 'OS-EXT-SRV-ATTR:ramdisk_id'}
    return {key: value or '' if key in ids else value for key, value in seen.items()}


def caller(seen):
    return ADMIN if 'OS-EXT-SRV-ATTR:host' in seen else OWNER


@pytest.mark.parametrize(
    ('name', 'version'),
    recorded('servers/**/server-get-resp.json') + recorded('os-server-tags/*/server-tags-show-details-resp.json'),
)
def test_show(api, like, sample, shape, name, version):
    seen = in_text(sample(name)['server'])
    answer = api.get(f'/servers/{like(seen)}', version, as_=caller(seen))
    assert shape(answer.json) == shape({'server': seen})


@pytest.mark.parametrize(
    ('name', 'version'),
    recorded('servers/**/servers-details-*.json') + recorded('os-server-tags/*/servers-tags-details-resp.json'),
)
def test_details(api, like, sample, shape, name, version):
    body = sample(name)
    body['servers'] = [in_text(seen) for seen in body['servers']]
    for seen in body['servers']:
        like(seen)
    full_page = f'?limit={len(body["servers"])}' if 'servers_links' in body else ''
    answer = api.get(f'/servers/detail{full_page}', version, as_=caller(body['servers'][0]))
    assert shape(answer.json) == shape(body)


@pytest.mark.parametrize(
    ('name', 'version'), recorded('servers/**/servers-list-*.json') + recorded('servers-sort/*.json')
)
def test_lists(api, like, sample, shape, name, version):
    body = sample(name)
    for seen in body['servers']:
        like(seen)
    full_page = f'?limit={len(body["servers"])}' if 'servers_links' in body else ''
    answer = api.get(f'/servers{full_page}', version, as_=OWNER)
    assert shape(answer.json) == shape(body)


@pytest.mark.parametrize(
    ('name', 'version'), recorded('servers/**/server-update-resp.json') + recorded('servers/**/server-put-resp.json')
)
def test_update(api, like, sample, shape, name, version):
    seen = sample(name)['server']
    body = sample(name.replace('-resp', '-req'))
    answer = api.put(f'/servers/{like(seen)}', body, version, as_=caller(seen))
    assert shape(answer.json) == shape({'server': seen})


def test_tags(api, like, sample):
    folder = 'os-server-tags/v2.26/'
    url = f'/servers/{like({})}/tags'
    replaced = api.put(url, sample(folder + 'server-tags-put-all-req.json'), '2.26')
    assert replaced.json == sample(folder + 'server-tags-put-all-resp.json')
    assert api.get(url, '2.26').json == sample(folder + 'server-tags-index-resp.json')


def test_ips(api, like, sample):
    url = f'/servers/{like({})}/ips'
    assert api.get(url).json == sample('server-ips/server-ips-resp.json')
    assert api.get(f'{url}/private').json == sample('server-ips/server-ips-network-resp.json')


def test_metadata(api, like, sample, shape):
    url = f'/servers/{like({})}/metadata'
    every = api.put(url, sample('server-metadata/server-metadata-all-req.json'))
    assert every.json == sample('server-metadata/server-metadata-all-resp.json')
    one = api.put(f'{url}/foo', sample('server-metadata/server-metadata-req.json'))
    assert shape(one.json) == shape(sample('server-metadata/server-metadata-resp.json'))
