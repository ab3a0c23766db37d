"""Servers of hosts that are down: where they can be evacuated to, and what the host must learn before it is up
again."""

import pytest
import sqlalchemy as sa

from computeapi.compute.servers import evacuation, moves
from computeapi.context import Context
from computeapi.db import servers as rows
from computeapi.db.allocations import Amounts, replace
from computeapi.db.tables.servers import domains
from computeapi.errors import Conflict
from tests.api.servers.conftest import IMAGE, Killed, message
from tests.invariants import problems

ADMIN = Context(user_id='admin', project_id='project', roles=frozenset({'admin'}), is_admin=True)


@pytest.fixture
def server(cloud, server):
    return server


@pytest.fixture
def act(api, server, settle):
    """act('evacuate', {}): requests an action and lets the workers carry it out; returns the response."""

    def post(name, argument, version='2.68'):
        answer = api.post(f'/servers/{server}/action', {name: argument}, version)
        settle()
        return answer

    return post


@pytest.fixture
def force_down(api):
    """force_down('compute1', True): calls the API; returns the response."""

    def put(host, down):
        body = {'host': host, 'binary': 'nova-compute', 'forced_down': down}
        return api.put('/os-services/force-down', body, '2.11')

    return put


def test_where_it_cannot_go(act, shown, force_down):
    """Errors about the host take precedence over errors about the server."""
    before = shown()
    assert act('evacuate', {'host': 'nowhere'}).status == 404
    refused = act('evacuate', {'host': before[2]})
    assert refused.json['badRequest']['message'] == "The target host can't be the same one."
    assert act('os-migrateLive', {'host': 'nowhere', 'block_migration': 'auto'}).status == 400
    assert shown() == before


@pytest.mark.parametrize(
    ('action', 'argument', 'version', 'words'),
    [
        ('evacuate', {'force': True}, '2.29', "Can't force to a non-provided destination"),
        ('evacuate', {'force': 'true'}, '2.67', "Can't force to a non-provided destination"),
        (
            'evacuate',
            {'onSharedStorage': True, 'adminPass': 'secret'},
            '2.13',
            "admin password can't be changed on existing disk",
        ),
        (
            'os-migrateLive',
            {'host': None, 'block_migration': 'auto', 'force': True},
            '2.30',
            "Can't force to a non-provided destination",
        ),
    ],
)
def test_contradictions(act, shown, force_down, action, argument, version, words):
    before = shown()
    force_down(before[2], True)
    answer = act(action, argument, version)
    assert (answer.status, answer.json['badRequest']['message']) == (400, words)
    assert shown() == before


def test_its_record_tells_no_flavors(api, act, server, shown, force_down):
    before = shown()[2]
    force_down(before, True)
    act('evacuate', {})
    (move,) = api.get(f'/os-migrations?instance_uuid={server}', '2.59').json['migrations']
    assert (move['migration_type'], move['status'], move['source_compute']) == ('evacuation', 'done', before)
    assert move['old_instance_type_id'] is move['new_instance_type_id'] is None


@pytest.mark.parametrize(('version', 'forced'), [('2.28', {}), ('2.67', {'force': True}), ('2.67', {})])
def test_a_host_without_room_takes_nothing_even_if_forced(api, act, shown, store, force_down, version, forced):
    before = shown()
    (there,) = {'compute1', 'compute2'} - {before[2]}
    store.change(replace, 'other', there, Amounts(), Amounts(0, 1024 * 1024, 0))
    force_down(before[2], True)
    assert act('evacuate', {'host': there} | forced, version).status == 200
    state = 'ACTIVE' if forced or version == '2.28' else 'ERROR'
    assert shown() == (state, None, before[2])
    assert api.get('/os-migrations', '2.59').json['migrations'][0]['status'] == 'error'


# ------------------------------------------------------------------ busy servers


@pytest.fixture
def hang(service):
    """hang('reboot'): operations that never finish."""
    return lambda *operations: service.conf.set_override('hang', list(operations), 'simulated')


def statuses(api):
    return {move['migration_type']: move['status'] for move in api.get('/os-migrations', '2.59').json['migrations']}


BUSY = [
    ('os-stop', None, 'power_off', 'powering-off'),
    ('reboot', {'type': 'SOFT'}, 'reboot', 'reboot_started'),
    ('reboot', {'type': 'HARD'}, 'reboot', 'reboot_started_hard'),
    ('pause', None, 'pause', 'pausing'),
    ('suspend', None, 'suspend', 'suspending'),
    ('rescue', None, 'rescue', 'rescuing'),
    ('createImage', {'name': 'image'}, 'snapshot', 'image_uploading'),
    ('shelve', None, 'power_off', 'shelving'),
    ('rebuild', {'imageRef': IMAGE}, 'destroy', 'rebuilding'),
    ('rebuild', {'imageRef': IMAGE}, 'spawn', 'rebuild_spawning'),
    ('resize', {'flavorRef': '2'}, 'migrate', 'resize_migrating'),
    ('migrate', None, 'prepare_migration', 'resize_migrating'),
    ('os-migrateLive', {'host': None, 'block_migration': 'auto'}, 'live_migrate', 'migrating'),
]


@pytest.mark.parametrize(('name', 'argument', 'operation', 'task_state'), BUSY)
def test_a_server_leaves_a_host_that_is_down_whatever_it_was_doing(
    cloud, api, act, server, shown, force_down, hang, history, settle, name, argument, operation, task_state
):
    cloud.flavor('2', vcpus=2)
    before = shown()[2]
    hang(f'{operation}@{before}')
    assert act(name, argument).status in (200, 202)
    assert shown()[1] == task_state
    force_down(before, True)
    assert act('evacuate', {}).status == 200
    status, task, host = shown()
    assert (status, task) == ('ACTIVE', None) and host != before
    recorded = {'os-stop': 'stop', 'os-migrateLive': 'live-migration'}.get(name, name)
    assert [each[:2] for each in history(server)] == [('evacuate', None), (recorded, 'Error')]
    assert set(statuses(api).values()) <= {'done', 'error'}
    hang()
    settle(later=True)
    assert problems(cloud.store) == []


@pytest.mark.parametrize('wanted', [{}, {'host': 'compute3'}])
def test_an_evacuation_to_a_host_that_went_down_too_is_followed_by_another(
    cloud, act, server, shown, force_down, hang, history, service, wanted
):
    service.conf.set_override('hosts', 3, 'simulated')
    service.hosts.register()
    before = shown()[2]
    force_down(before, True)
    force_down('compute3', True)
    hang('spawn@compute2')
    act('evacuate', {})
    assert shown() == ('REBUILD', 'rebuild_spawning', before)
    force_down('compute2', True)
    force_down('compute3', False)
    assert act('evacuate', wanted).status == 200
    assert shown() == ('ACTIVE', None, 'compute3')
    assert [each[:2] for each in history(server)] == [('evacuate', None), ('evacuate', 'Error')]
    assert problems(cloud.store) == []


def test_a_server_whose_deletion_waits_does_not_come_back(api, act, server, shown, force_down, hang):
    before = shown()
    hang('destroy')
    assert api.delete(f'/servers/{server}').status == 204
    force_down(before[2], True)
    text = f"Cannot 'evacuate' instance {server} while it is in task_state deleting"
    assert message(act('evacuate', {})) == (409, text)


def test_a_server_whose_disk_has_reached_another_host_keeps_it(cloud, act, server, shown, force_down, hang):
    """It needs the former host no more."""
    before = shown()[2]
    cloud.flavor('2')
    hang('power_on')
    act('resize', {'flavorRef': '2'})
    cloud.store.change(rows.update, server, {'task_state': 'resize_migrated', 'host': before})
    force_down(before, True)
    text = f"Cannot 'evacuate' instance {server} while it is in task_state resize_migrated"
    assert message(act('evacuate', {})) == (409, text)


def test_a_server_that_had_moved_just_before_runs_on(
    api, act, server, shown, force_down, history, service, settle, monkeypatch
):
    """The worker died before it could record the new host."""
    before = shown()[2]

    def killed(*args):
        raise Killed()

    with monkeypatch.context() as deadly:
        deadly.setattr(moves, 'follow', killed)
        with pytest.raises(Killed):
            act('os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.30')
    force_down(before, True)
    service.platform.tasks.release_all()
    assert act('evacuate', {}).status == 200
    status, task, host = shown()
    assert (status, task) == ('ACTIVE', None) and host != before
    assert machines(service, server) == {host}
    assert [each[:2] for each in history(server)] == [('evacuate', 'Error'), ('live-migration', 'Error')]
    assert statuses(api)['evacuation'] == 'error'


def test_a_server_that_moves_while_it_is_asked_for_stays(servers, server, shown, force_down, service):
    before = shown()[2]
    force_down(before, True)
    stale = servers.get(server)
    servers.change(server, host='elsewhere')
    with pytest.raises(Conflict, match='has just left'):
        service.cloud.evacuations.evacuate(ADMIN, stale, None)


@pytest.fixture
def left(act, shown, force_down, service):
    """A host that is down; the server was evacuated from it, and its former machine could not be removed."""
    before = shown()[2]
    force_down(before, True)
    service.conf.set_override('fail', ['destroy'], 'simulated')
    act('evacuate', {})
    service.conf.clear_override('fail', 'simulated')
    return before


def test_a_host_learns_what_was_evacuated_before_it_is_up(api, server, shown, force_down, service, left):
    """The former machine does not come back with the host."""
    assert machines(service, server) == {'compute1', 'compute2'}
    refused = force_down(left, False)
    assert refused.status == 400
    assert refused.json['badRequest']['message'] == (
        f'Unable to force up host {left} as `done` evacuation migration records remain associated with the host. '
        'Ensure the compute service has been restarted, allowing these records to move to `completed` before retrying '
        'this request.'
    )
    service.start()
    service.stop()
    assert machines(service, server) == {shown()[2]}
    assert force_down(left, False).status == 200
    assert api.get('/os-migrations').json['migrations'][0]['status'] == 'completed'


def test_what_somebody_is_at_is_not_removed_from_a_host_that_is_back(
    act, server, shown, force_down, service, settle, left
):
    """The worker may be moving it back there."""
    service.conf.set_override('passing_seconds', 3600, 'simulated')
    assert act('os-stop', None).status == 202
    service.conf.clear_override('passing_seconds', 'simulated')
    evacuation.return_hosts(service.platform, [left])
    assert machines(service, server) == {'compute1', 'compute2'}
    settle(later=True)
    service.upkeep()
    assert machines(service, server) == {shown()[2]}
    assert force_down(left, False).status == 200


@pytest.mark.parametrize(('version', 'status'), [('2.33', 400), ('2.34', 202)])
def test_nothing_migrates_alive_off_a_host_that_is_down(api, act, server, shown, force_down, history, version, status):
    before = shown()
    force_down(before[2], True)
    facts = {'host': None, 'block_migration': 'auto'}
    assert act('os-migrateLive', facts, version).status == status
    assert shown() == before
    moves = api.get('/os-migrations').json['migrations']
    assert [move['status'] for move in moves] == ['error']
    assert [each[:2] for each in history(server)] == [('live-migration', 'Error')]


def test_a_host_that_was_switched_off(api, act, server, shown, service):
    """Nothing starts there; servers evacuated meanwhile are not on the host when it is switched on again."""
    before = shown()[2]
    assert api.get(f'/os-hosts/{before}/shutdown').status == 200
    assert shown() == ('SHUTOFF', None, before)
    act('os-start', None)
    assert shown() == ('SHUTOFF', None, before)
    act('evacuate', {}, '2.29')
    status, task, host = shown()
    assert (status, task) == ('SHUTOFF', None) and host != before
    assert api.get(f'/os-hosts/{before}/startup').status == 200
    assert machines(service, server) == {host}
    assert api.get('/os-migrations').json['migrations'][0]['status'] == 'completed'


def test_servers_leave_a_host_for_its_maintenance(api, server, shown, settle):
    before = shown()[2]
    answer = api.put(f'/os-hosts/{before}', {'maintenance_mode': 'enable'})
    assert answer.json == {'host': before, 'maintenance_mode': 'on_maintenance'}
    settle()
    assert shown() == ('ACTIVE', None, {'compute1': 'compute2', 'compute2': 'compute1'}[before])
    assert service_of(api, before)['status'] == 'disabled'
    api.put(f'/os-hosts/{before}', {'maintenance_mode': 'disable'})
    assert service_of(api, before)['status'] == 'enabled'


def test_servers_that_cannot_leave_stay(api, server, shown, settle, force_down):
    before = shown()
    api.post(f'/servers/{server}/action', {'os-stop': None})
    settle()
    assert api.put(f'/os-hosts/{before[2]}', {'maintenance_mode': 'enable'}).status == 200
    settle()
    assert shown() == ('SHUTOFF', None, before[2])


def service_of(api, host):
    return api.get(f'/os-services?binary=nova-compute&host={host}').json['services'][0]


def machines(service, server):
    """The hosts on which the server has a machine."""
    with service.store.read() as connection:
        return set(connection.scalars(sa.select(domains.c.host).where(domains.c.server_id == server)))
