"""From Rocky to Stein."""

import pytest

from tests.api.servers.conftest import BOB, IMAGE, NETWORK, ROOT_VOLUME
from tests.history.conftest import ADMIN, OTHER


def test_2_61_flavors_show_their_extra_specs(api, cloud):
    api.post('/flavors/1/os-extra_specs', {'extra_specs': {'hw:cpu_policy': 'shared'}})
    for path, key in (('/flavors/1', 'flavor'), ('/flavors/detail', 'flavors')):
        old, new = (api.get(path, version).json[key] for version in ('2.60', '2.61'))
        old, new = (shown[0] if isinstance(shown, list) else shown for shown in (old, new))
        assert new.keys() - old.keys() == {'extra_specs'}
        assert new['extra_specs'] == {'hw:cpu_policy': 'shared'}


def test_2_62_events_of_actions_show_the_host(api, server, host):
    path = f'/servers/{server}/os-instance-actions'
    path += '/' + api.get(path).json['instanceActions'][0]['request_id']

    def event(version, as_):
        return api.get(path, version, as_=as_).json['instanceAction']['events'][0]

    assert not {'host', 'hostId'} & event('2.61', ADMIN).keys()
    assert event('2.62', ADMIN)['host'] == host(server)
    mine = event('2.62', BOB)
    assert 'host' not in mine and mine['hostId'] == event('2.62', ADMIN)['hostId']


def test_2_63_servers_have_trusted_image_certificates(create, boot, show, act):
    assert create('2.62', trusted_image_certificates=['a']).status == 400
    server = boot('2.63', trusted_image_certificates=['a'])
    assert 'trusted_image_certificates' not in show(server, '2.62')
    assert show(server, '2.63')['trusted_image_certificates'] == ['a']
    rebuild = {'imageRef': IMAGE, 'trusted_image_certificates': ['b', 'c']}
    assert [act(server, 'rebuild', rebuild, version).status for version in ('2.62', '2.63')] == [400, 202]
    assert show(server, '2.63')['trusted_image_certificates'] == ['b', 'c']
    assert create('2.63', trusted_image_certificates=[str(number) for number in range(51)]).status == 400


def test_2_64_a_server_group_has_one_policy_with_rules(api):
    group = {'name': 'group', 'policy': 'anti-affinity', 'rules': {'max_server_per_host': 3}}
    assert api.post('/os-server-groups', {'server_group': group}, '2.63').status == 400
    made = api.post('/os-server-groups', {'server_group': group}, '2.64').json['server_group']
    assert made | group == made and not {'policies', 'metadata'} & made.keys()
    old = api.get(f'/os-server-groups/{made["id"]}', '2.63').json['server_group']
    assert old['policies'] == ['anti-affinity'] and not {'policy', 'rules'} & old.keys()


@pytest.mark.parametrize('status', ['queued', 'preparing'])
def test_2_65_a_live_migration_that_waits_is_aborted(api, migrating, show, server, status):
    migration = migrating(status)
    assert api.delete(migration, '2.64', as_=ADMIN).status == 400
    assert api.delete(migration, '2.65', as_=ADMIN).status == 202
    assert show(server)['status'] == 'ACTIVE'
    assert api.get('/os-migrations').json['migrations'][0]['status'] == 'cancelled'


def test_2_66_what_changed_before_a_time(api, server, act):
    act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.34', as_=ADMIN)
    for path, name in (
        ('/servers', 'servers'),
        ('/servers/detail', 'servers'),
        (f'/servers/{server}/os-instance-actions', 'instanceActions'),
        ('/os-migrations', 'migrations'),
    ):
        for year, found in (('2000', False), ('2100', True)):
            wanted = f'{path}?changes-before={year}-01-01T00:00:00Z'
            assert bool(api.get(wanted, '2.66', as_=ADMIN).json[name]) is found
        assert api.get(wanted, '2.65', as_=ADMIN).status == (200 if name == 'servers' else 400)


def test_2_67_new_volumes_of_a_server_have_a_type(cloud, create, boot, api):
    disks = {'imageRef': None, 'block_device_mapping_v2': [ROOT_VOLUME | {'volume_type': 'multiattach'}]}
    assert create('2.66', **disks).status == 400
    (attached,) = api.get(f'/servers/{boot("2.67", **disks)}/os-volume_attachments', as_=BOB).json['volumeAttachments']
    assert cloud.volumes.get(cloud.bob, attached['volumeId']).volume_type == 'multiattach'


def test_2_68_moves_are_not_forced(cloud, server, act, host):
    there = OTHER[host(server)]
    live = {'host': there, 'block_migration': 'auto', 'force': True}
    assert [act(server, 'os-migrateLive', live, version, as_=ADMIN).status for version in ('2.68', '2.67')] == [
        400,
        202,
    ]
    cloud.down(there)
    away = {'host': OTHER[there], 'force': True}
    assert [act(server, 'evacuate', away, version, as_=ADMIN).status for version in ('2.68', '2.67')] == [400, 200]


def test_2_69_what_a_cell_that_is_down_has_is_unknown(api, cloud, server):
    cells = cloud.service.cloud.cells
    cells.mark('cell1', down=True)
    assert api.get('/servers', '2.68', as_=BOB).json['servers'] == []
    assert api.get(f'/servers/{server}', '2.68', as_=BOB).status == 503
    [listed] = api.get('/servers', '2.69', as_=BOB).json['servers']
    shown = api.get(f'/servers/{server}', '2.69', as_=BOB).json['server']
    assert listed['status'] == shown['status'] == 'UNKNOWN'
    compute = '/os-services?binary=nova-compute'
    assert api.get(compute, '2.68').json['services'] == []
    assert {each['status'] for each in api.get(compute, '2.69').json['services']} == {'UNKNOWN'}
    cells.mark('cell1', down=False)
    assert api.get(f'/servers/{server}', '2.68', as_=BOB).json['server']['status'] == 'ACTIVE'


def test_2_70_what_is_attached_shows_its_tag(api, cloud, server, attach, settle):
    volume = cloud.volume()
    attach(server, volume, '2.49', tag='disk2')
    interface = {'interfaceAttachment': {'net_id': NETWORK, 'tag': 'nic2'}}
    old = api.post(f'/servers/{server}/os-interface', interface, '2.69', as_=BOB).json['interfaceAttachment']
    paths = {
        f'/servers/{server}/os-interface/{old["port_id"]}': ('interfaceAttachment', 'nic2'),
        f'/servers/{server}/os-volume_attachments/{volume}': ('volumeAttachment', 'disk2'),
    }
    for path, (name, tag) in paths.items():
        assert 'tag' not in api.get(path, '2.69', as_=BOB).json[name]
        assert api.get(path, '2.70', as_=BOB).json[name]['tag'] == tag
        listed = api.get(path.rpartition('/')[0], '2.70', as_=BOB).json[f'{name}s']
        assert tag in [each['tag'] for each in listed]
