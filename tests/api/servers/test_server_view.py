"""Which fields of a server are shown, to whom, and at which version."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from computeapi.clock import utcnow
from computeapi.db.tables.compute import services

OWNER, ADMIN = 'bob:project', 'admin:project'


@pytest.fixture
def show(api, servers):
    """show(**facts): a server with these facts, as it is shown."""

    def shown(version='2.104', as_=OWNER, **kwargs):
        return api.get(f'/servers/{servers.add(**kwargs)}', version, as_=as_).json['server']

    return shown


@pytest.mark.parametrize(
    ('field', 'version'),
    [
        ('locked', '2.9'),
        ('description', '2.19'),
        ('tags', '2.26'),
        ('trusted_image_certificates', '2.63'),
        ('server_groups', '2.71'),
        ('locked_reason', '2.73'),
        ('OS-EXT-SRV-ATTR:hostname', '2.90'),
        ('pinned_availability_zone', '2.96'),
        ('scheduler_hints', '2.100'),
    ],
)
def test_fields_come_with_the_version(show, field, version):
    before = f'2.{int(version[2:]) - 1}'
    assert field not in show(before) and field in show(version)


def test_lists_have_no_server_groups(api, servers):
    servers.add()
    (listed,) = api.get('/servers/detail', '2.104', as_=OWNER).json['servers']
    assert 'server_groups' not in listed


def test_the_flavor_is_linked_then_embedded(show):
    assert show('2.46')['flavor']['id'] == 'small'
    assert show('2.46')['flavor']['links'][0]['href'] == 'http://localhost/flavors/small'
    assert show('2.47')['flavor'] == {
        'vcpus': 1, 'ram': 64, 'disk': 1, 'ephemeral': 0, 'swap': 0, 'original_name': 'small', 'extra_specs': {}
    }  # fmt: skip


def test_the_image(show):
    image = 'fc4bcb5d-2d5c-4cf6-b6f0-e62b3a4b0cf1'
    link = {'id': image, 'links': [{'rel': 'bookmark', 'href': f'http://localhost/images/{image}'}]}
    assert show('2.97', image_id=image)['image'] == link
    assert show('2.97', image_id=None)['image'] == show('2.98', image_id=None)['image'] == ''


def test_the_image_has_its_standard_properties(show):
    names = ['os_type', 'hw_machine_type', 'img_config_drive', 'traits_required']
    former = [
        'architecture',
        'owner_id',
        'ipxe_boot',
        'vmware_ostype',
        'root_device_name',
        'hypervisor_version_requires',
    ]
    others = ['owner_specified.note', 'hw_foo', 'img_bogus', 'os_bogus', 'trait:HW_CPU_X86_AVX', 'instance_uuid']
    image, properties = 'fc4bcb5d-2d5c-4cf6-b6f0-e62b3a4b0cf1', dict.fromkeys([*names, *former], 'x')
    seen = show('2.98', image_id=image, image_properties=properties | dict.fromkeys(others, 'x'))
    assert seen['image']['properties'] == properties


def test_only_administrators_see_where_it_runs(show):
    assert not [field for field in show('2.89') if field.startswith('OS-EXT-SRV-ATTR:') or field == 'host_status']
    seen = show('2.89', ADMIN, user_data='aGk=', launch_index=3)
    assert seen['OS-EXT-SRV-ATTR:host'] == 'compute1' and seen['OS-EXT-SRV-ATTR:launch_index'] == 3
    assert seen['OS-EXT-SRV-ATTR:instance_name'].startswith('instance-') and seen['host_status'] == 'UNKNOWN'
    assert seen['OS-EXT-SRV-ATTR:user_data'] == 'aGk=' and seen['OS-EXT-SRV-ATTR:kernel_id'] == ''
    assert 'OS-EXT-SRV-ATTR:hostname' not in show('2.2', ADMIN)


@pytest.mark.parametrize(
    ('facts', 'status'),
    [
        ({}, 'UP'),
        ({'disabled': True}, 'MAINTENANCE'),
        ({'forced_down': True}, 'DOWN'),
        ({'seen_at': utcnow() - timedelta(hours=1)}, 'UNKNOWN'),
    ],
)
def test_host_status(show, store, facts, status):
    now = utcnow()
    row = {'uuid': 'u', 'host': 'compute1', 'binary': 'nova-compute', 'disabled': False, 'forced_down': False}
    with store.write() as connection:
        connection.execute(sa.insert(services).values(**row | {'seen_at': now, 'created_at': now} | facts))
    assert show(as_=ADMIN)['host_status'] == status
    assert show(as_=ADMIN, host=None)['host_status'] == ''


def test_the_status_of_the_host_of_a_deleted_server_is_nobodys(api, servers):
    servers.add(vm_state='deleted', deleted_at=utcnow())
    (listed,) = api.get('/servers/detail?deleted=True', '2.16', as_=ADMIN).json['servers']
    assert (listed['OS-EXT-SRV-ATTR:host'], listed['host_status']) == ('compute1', '')


def test_a_host_is_known_by_another_id_in_each_project(show):
    ids = {show(as_=ADMIN, host=host, project_id=project)['hostId'] for host in 'ab' for project in 'pq'}
    assert len(ids) == 4 and {len(each) for each in ids} == {56}
    nowhere = show(host=None, availability_zone=None)
    assert nowhere['hostId'] == nowhere['OS-EXT-AZ:availability_zone'] == ''


@pytest.mark.parametrize(
    ('facts', 'status', 'has_progress'),
    [
        ({}, 'ACTIVE', True),
        ({'vm_state': 'building'}, 'BUILD', True),
        ({'vm_state': 'stopped'}, 'SHUTOFF', False),
        ({'vm_state': 'resized'}, 'VERIFY_RESIZE', True),
        ({'task_state': 'rebuilding'}, 'REBUILD', True),
        ({'task_state': 'rebooting'}, 'REBOOT', False),
        ({'vm_state': 'error'}, 'ERROR', False),
    ],
)
def test_status_and_progress(show, facts, status, has_progress):
    seen = show(**facts)
    assert seen['status'] == status and ('progress' in seen) == has_progress


def test_the_details_of_a_fault_are_for_administrators(show):
    fault = {'code': 500, 'message': 'NoValidHost', 'details': 'secret', 'created': '2026-01-31T12:00:00.123456'}
    seen = {'code': 500, 'message': 'NoValidHost', 'created': '2026-01-31T12:00:00Z'}
    assert show(vm_state='error', fault=fault)['fault'] == seen
    assert show(as_=ADMIN, vm_state='error', fault=fault)['fault'] == seen | {'details': 'secret'}
    assert 'fault' not in show(fault=fault) and 'fault' not in show(vm_state='error')


def test_moments(show):
    seen = show(
        created_at=utcnow().replace(2026, 1, 31, 12, 0, 5, 7), launched_at=utcnow().replace(2026, 1, 31, 12, 0, 5, 7)
    )
    assert seen['created'] == seen['updated'] == '2026-01-31T12:00:05Z'
    assert seen['OS-SRV-USG:launched_at'] == '2026-01-31T12:00:05.000007' and seen['OS-SRV-USG:terminated_at'] is None


def test_links_have_the_project_if_the_url_has_it(api, servers):
    server_id = servers.add(project_id='abc')
    seen = api.get(f'/abc/servers/{server_id}', as_='bob:abc').json['server']
    assert [link['href'] for link in seen['links']] == [
        f'http://localhost/v2.1/abc/servers/{server_id}',
        f'http://localhost/abc/servers/{server_id}',
    ]
    assert seen['image']['links'][0]['href'].startswith('http://localhost/abc/images/')


def test_updates_show_less_before_2_75(api, servers):
    url = f'/servers/{servers.add()}'
    body = {'server': {'name': 'new'}}
    before = api.put(url, body, '2.74', as_=OWNER).json['server']
    after = api.put(url, body, '2.75', as_=OWNER).json['server']
    assert before.keys() < after.keys() and 'key_name' not in before
    assert after.keys() == api.get(url, '2.75', as_=OWNER).json['server'].keys()
