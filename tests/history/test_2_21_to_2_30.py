"""From the middle of Mitaka to the beginning of Newton."""

import pytest

from computeapi.db.tables.compute import services
from tests.api.servers.conftest import BOB
from tests.history.conftest import ADMIN, OTHER

AUTO = {'host': None, 'block_migration': 'auto'}
OLD = {'host': None, 'block_migration': False, 'disk_over_commit': False}


def test_2_21_actions_of_deleted_servers_are_readable(api, server, settle):
    path = f'/servers/{server}/os-instance-actions'
    api.delete(f'/servers/{server}', as_=BOB)
    settle()
    assert api.get(path, '2.20', as_=BOB).status == 404
    assert [each['action'] for each in api.get(path, '2.21', as_=BOB).json['instanceActions']] == ['delete', 'create']


def test_2_22_a_live_migration_is_forced_to_complete(api, migrating, settle, show, server):
    migration = migrating('running')
    assert api.post(f'{migration}/action', {'force_complete': None}, '2.21', as_=ADMIN).status == 404
    assert api.post(f'{migration}/action', {'force_complete': None}, '2.22', as_=ADMIN).status == 202
    settle()
    assert show(server)['status'] == 'ACTIVE'


def test_2_23_live_migrations_are_listed_and_shown(api, migrating, server):
    migration = migrating('running')
    listed = migration.rpartition('/')[0]
    assert [api.get(path, '2.22', as_=ADMIN).status for path in (listed, migration)] == [404, 404]
    assert api.get(listed, '2.23', as_=ADMIN).json['migrations'][0]['status'] == 'running'
    assert api.get(migration, '2.23', as_=ADMIN).json['migration']['server_uuid'] == server
    (old,), (new,) = (api.get('/os-migrations', version).json['migrations'] for version in ('2.22', '2.23'))
    assert new.keys() - old.keys() == {'migration_type', 'links'} and new['migration_type'] == 'live-migration'


def test_2_24_a_live_migration_is_aborted(api, migrating, settle, show, server):
    migration, before = migrating('running'), show(server)['OS-EXT-SRV-ATTR:host']
    assert api.delete(migration, '2.23', as_=ADMIN).status == 404
    assert api.delete(migration, '2.24', as_=ADMIN).status == 202
    settle()
    assert show(server)['OS-EXT-SRV-ATTR:host'] == before
    assert api.get('/os-migrations').json['migrations'][0]['status'] == 'cancelled'


def test_2_25_live_migration_finds_out_about_disks(server, act):
    assert act(server, 'os-migrateLive', AUTO, '2.24', as_=ADMIN).status == 400
    assert act(server, 'os-migrateLive', OLD, '2.24', as_=ADMIN).status == 202
    assert act(server, 'os-migrateLive', OLD, '2.25', as_=ADMIN).status == 400
    assert act(server, 'os-migrateLive', AUTO, '2.25', as_=ADMIN).status == 202


def test_2_26_servers_have_tags(api, server, show):
    path = f'/servers/{server}/tags'
    assert api.put(path, {'tags': ['foo']}, '2.25', as_=BOB).status == 404
    assert api.put(path, {'tags': ['foo', 'bar']}, '2.26', as_=BOB).json == {'tags': ['bar', 'foo']}
    assert [api.get(f'{path}/{tag}', '2.26', as_=BOB).status for tag in ('foo', 'baz')] == [204, 404]
    assert [api.put(f'{path}/{tag}', version='2.26', as_=BOB).status for tag in ('foo', 'baz')] == [204, 201]
    assert 'tags' not in show(server, '2.25')
    assert sorted(show(server, '2.26')['tags']) == ['bar', 'baz', 'foo']
    filters = {'tags=foo,bar': 1, 'tags=foo,no': 0, 'tags-any=no,foo': 1, 'not-tags=foo': 0, 'not-tags-any=no': 1}
    for text, found in filters.items():
        assert len(api.get(f'/servers?{text}', '2.26', as_=BOB).json['servers']) == found
    assert api.delete(path, '2.26', as_=BOB).status == 204
    assert show(server, '2.26')['tags'] == []


@pytest.mark.parametrize('version', ['2.26', '2.27'])
@pytest.mark.parametrize('header', ['X-OpenStack-Nova-API-Version: {}', 'OpenStack-API-Version: compute {}'])
def test_2_27_the_version_stands_in_either_header(api, version, header):
    """It tells clients that they may use the header common to all services; the service accepts both at every
    version."""
    name, _, value = header.format(version).partition(': ')
    answer = api.get('/flavors', headers={name: value})
    assert answer.headers['OpenStack-API-Version'] == f'compute {version}'
    assert answer.headers['X-OpenStack-Nova-API-Version'] == version


def test_2_28_the_cpu_of_a_hypervisor_is_an_object(api, cloud):
    old, new = (api.get('/os-hypervisors/detail', version).json['hypervisors'][0] for version in ('2.27', '2.28'))
    assert isinstance(old['cpu_info'], str)
    assert new['cpu_info']['arch'] == 'x86_64'


@pytest.fixture
def disabled(store):
    """disabled('compute1'): no new servers are scheduled to it."""

    def disable(host):
        with store.write() as connection:
            connection.execute(services.update().where(services.c.host == host).values(disabled=True))

    return disable


def test_2_29_evacuate_asks_the_scheduler_about_the_host(cloud, server, act, host, disabled):
    before = host(server)
    there = OTHER[before]
    cloud.down(before)
    disabled(there)
    assert act(server, 'evacuate', {'host': there, 'force': True}, '2.28', as_=ADMIN).status == 400
    act(server, 'evacuate', {'host': there}, '2.29', as_=ADMIN)
    assert host(server) == before
    act(server, 'os-resetState', {'state': 'active'}, as_=ADMIN)
    assert act(server, 'evacuate', {'host': there, 'force': True}, '2.29', as_=ADMIN).status == 200
    assert host(server) == there


def test_2_30_live_migration_asks_the_scheduler_about_the_host(server, act, host, disabled):
    there = OTHER[host(server)]
    disabled(there)
    assert act(server, 'os-migrateLive', AUTO | {'host': there, 'force': True}, '2.29', as_=ADMIN).status == 400
    assert act(server, 'os-migrateLive', AUTO | {'host': there}, '2.30', as_=ADMIN).status == 400
    assert act(server, 'os-migrateLive', AUTO | {'host': there}, '2.29', as_=ADMIN).status == 202
    assert host(server) == there
    disabled(OTHER[there])
    assert act(server, 'os-migrateLive', AUTO | {'host': OTHER[there], 'force': True}, '2.30', as_=ADMIN).status == 202
    assert host(server) == OTHER[there]
