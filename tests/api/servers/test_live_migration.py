"""Live migrations: checks, stages, and aborts."""

import pytest

from computeapi.backends.hypervisor import HypervisorError, NotYet, PowerState
from computeapi.compute.servers import ports
from computeapi.db import services as services_rows
from computeapi.db.allocations import Amounts, replace
from computeapi.db.tables.compute import allocations, services
from computeapi.db.tables.servers import tasks
from computeapi.db.virtual_machines import DOMAINS

AUTO = {'host': None, 'block_migration': 'auto'}
RESET = {'os-resetState': {'state': 'active'}}
OLD = {'host': None, 'block_migration': False, 'disk_over_commit': False}


@pytest.fixture
def server(cloud, server):
    return server


@pytest.fixture
def migrate(api, server):
    """migrate('2.34'): requests a live migration of the server; returns the response."""

    def post(version='2.30', **kwargs):
        return api.post(f'/servers/{server}/action', {'os-migrateLive': AUTO | kwargs}, version)

    return post


@pytest.fixture
def running(api, server):
    """running(): the server's live migrations in progress."""
    return lambda: api.get(f'/servers/{server}/migrations', '2.80').json['migrations']


@pytest.fixture
def held(store, server):
    """held(): the hosts on which the server has claims."""

    def get():
        with store.read() as connection:
            rows = connection.execute(allocations.select().where(allocations.c.server_id == server)).all()
        return [row.host for row in rows]

    return get


def other(host):
    return {'compute1': 'compute2', 'compute2': 'compute1'}[host]


def last(api):
    """The status and the hosts of the latest migration."""
    move = api.get('/os-migrations', '2.59').json['migrations'][0]
    return move['status'], move['source_compute'], move['dest_compute']


@pytest.mark.parametrize('version', ['2.33', '2.34'])
def test_a_server_moves_while_it_runs(api, migrate, shown, running, held, settle, server, history, version):
    before = shown()[-1]
    assert migrate(version).status == 202
    assert shown() == ('MIGRATING', 'migrating', before)
    (move,) = running()
    assert move['status'] == 'accepted'
    settle()
    assert shown() == ('ACTIVE', None, other(before)) and held() == [other(before)]
    assert running() == [] and last(api) == ('completed', before, other(before))
    [(name, message, events)] = history(server)
    assert (name, message) == ('live-migration', None)
    assert events == [
        ('compute_post_live_migration_at_destination', 'Success'),
        ('compute_pre_live_migration', 'Success'),
        ('compute_live_migration', 'Success'),
        ('compute_check_can_live_migrate_source', 'Success'),
        ('compute_check_can_live_migrate_destination', 'Success'),
        ('conductor_live_migrate_instance', 'Success'),
    ]


# ------------------------------------------------------------------ host failures


def ended(cloud, server_id, host):
    cloud.store.change(DOMAINS.update, {'power_state': int(PowerState.SHUTDOWN)}, server_id=server_id, host=host)


def down(cloud, server_id, host):
    cloud.store.change(services_rows.is_gone, host)


def lost(cloud, server_id, host):
    """All data were sent, and the destination host is then lost."""
    cloud.store.change(DOMAINS.delete, server_id=server_id, host=host)
    down(cloud, server_id, other(host))


def nothing(cloud, server_id, host):
    pass


@pytest.mark.parametrize(
    ('happens', 'status', 'moves'),
    [(ended, 'completed', True), (down, 'completed', True), (lost, 'completed', True), (nothing, 'failed', False)],
)
def test_a_server_that_runs_on_the_other_host_alone_stays_there(
    cloud, api, server, migrate, shown, held, settle, monkeypatch, happens, status, moves
):
    """The worker dies before it can record that the server has moved."""
    before, driver = shown()[-1], type(cloud.service.hypervisor)

    def live_migrate(self, server, host, facts, wish):
        with self.store.write() as connection:
            machine = DOMAINS.find(connection, server_id=server.uuid, host=server.host)
            DOMAINS.insert(connection, **machine._replace(host=host)._asdict())
        happens(cloud, server.uuid, server.host)
        raise HypervisorError('The virtual machine does not run.')

    monkeypatch.setattr(driver, 'live_migrate', live_migrate)
    migrate('2.34')
    settle()
    there = other(before) if moves else before
    assert shown() == ('ACTIVE', None, there) and held() == [there]
    assert last(api) == (status, before, other(before))
    assert (server, there) in cloud.service.hypervisor.machines()


@pytest.fixture
def both_down(cloud, server, migrate, shown, settle, monkeypatch):
    """both_down(error): the server has moved when both hosts go down, and its worker gets this error."""

    def begin(error):
        before, driver = shown()[-1], type(cloud.service.hypervisor)

        def live_migrate(self, server, host, facts, wish):
            self.store.change(DOMAINS.update, {'host': host}, server_id=server.uuid, host=server.host)
            for each in (server.host, host):
                down(cloud, server.uuid, each)
            raise error

        monkeypatch.setattr(driver, 'live_migrate', live_migrate)
        migrate('2.34')
        settle()
        monkeypatch.undo()
        return other(before)

    return begin


@pytest.mark.parametrize('reset', [True, False])
def test_while_both_hosts_are_down_neither_is_believed_to_have_the_server(
    cloud, api, server, both_down, shown, held, settle, reset
):
    there = both_down(NotYet(60) if reset else HypervisorError('Nobody answers.'))
    if reset:
        assert api.post(f'/servers/{server}/action', RESET).status == 202
    settle()
    assert shown() == (('ACTIVE', None, other(there)) if reset else ('MIGRATING', 'migrating', other(there)))
    assert cloud.service.hypervisor.machines() == [(server, there)]
    cloud.service.hosts.report()
    cloud.service.platform.tasks.hasten_all()
    settle()
    assert shown() == ('ACTIVE', None, there) and held() == [there]
    assert cloud.service.hypervisor.machines() == [(server, there)]


@pytest.mark.parametrize('reset', [True, False])
def test_a_server_is_deleted_while_both_hosts_are_down(api, server, both_down, held, settle, reset):
    both_down(NotYet(60))
    if reset:
        assert api.post(f'/servers/{server}/action', RESET).status == 202
    assert api.delete(f'/servers/{server}').status == 204
    settle()
    assert api.get(f'/servers/{server}').status == 404 and held() == []


@pytest.mark.parametrize(('times', 'state', 'status'), [(1, 'ACTIVE', 'completed'), (9, 'ERROR', 'running')])
def test_a_server_that_has_arrived_keeps_what_is_there(
    cloud, api, server, world, migrate, shown, settle, monkeypatch, times, state, status
):
    """Even if something else failed: the source gets nothing back."""
    before, volume, switch = shown()[-1], world.volume(1), ports.switch
    wanted = {'volumeAttachment': {'volumeId': volume}}
    assert api.post(f'/servers/{server}/os-volume_attachments', wanted, '2.1').status == 200
    settle()
    failures = iter(range(times))

    def switch_badly(job, host):
        if next(failures, None) is not None:
            raise HypervisorError('The port does not go there.')
        switch(job, host)

    monkeypatch.setattr(ports, 'switch', switch_badly)
    migrate('2.34')
    settle()
    assert (shown()[0], shown()[-1], last(api)[0]) == (state, other(before), status)
    held = world.volumes.attachments(world.admin, server_ids=[server])
    assert other(before) in {attachment.host for attachment in held}


# ------------------------------------------------------------------ checks


def no_host(cloud):
    with cloud.store.write() as connection:
        connection.execute(services.update().values(disabled=True))


def unsuitable(cloud):
    cloud.service.conf.set_override('fail', ['check_live_migration'], 'simulated')


@pytest.mark.parametrize(
    ('hinder', 'reason'),
    [
        (no_host, 'No valid host was found. '),
        (unsuitable, 'Migration pre-check error: The simulated hypervisor was told'),
    ],
)
def test_hosts_are_checked_before_the_answer_until_2_33(
    api, server, servers, store, cloud, migrate, shown, held, history, hinder, reason
):
    before = shown()
    hinder(cloud)
    answer = migrate('2.33')
    assert answer.status == 400 and answer.json['badRequest']['message'].startswith(reason)
    assert shown() == before and held() == [before[-1]]
    assert last(api)[0] == 'error'
    assert history(server) == [('live-migration', 'Error', [('conductor_live_migrate_instance', 'Error')])]
    assert reason.removeprefix('Migration pre-check error: ') in servers.get(server).fault['message']
    with store.read() as connection:
        assert connection.execute(tasks.select()).all() == []


def test_they_are_checked_before_the_answer_on_v2(legacy, cloud, server):
    no_host(cloud)
    assert legacy.post(f'/servers/{server}/action', {'os-migrateLive': OLD}).status == 400


@pytest.mark.parametrize(('hinder', 'status'), [(no_host, 'error'), (unsuitable, 'failed')])
def test_hosts_are_checked_after_the_answer_from_2_34(api, cloud, migrate, shown, held, settle, hinder, status):
    before = shown()
    hinder(cloud)
    assert migrate('2.34').status == 202
    settle()
    assert shown() == before and held() == [before[-1]]
    assert last(api)[0] == status


@pytest.mark.parametrize(('version', 'status'), [('2.20', 400), ('2.33', 400), ('2.34', 202)])
@pytest.mark.parametrize('force', [{}, {'force': True}])
def test_a_server_does_not_move_to_where_it_is(api, server, migrate, shown, history, settle, version, status, force):
    before = shown()
    facts = OLD if version == '2.20' else force
    assert migrate(version, **{**facts, 'host': before[-1]}).status == status
    settle()
    assert shown() == before and last(api)[0] == 'error'
    assert history(server)[0][:2] == ('live-migration', 'Error')


def test_a_host_without_room_will_not_do(cloud, store, migrate, shown):
    (there,) = {'compute1', 'compute2'} - {shown()[-1]}
    store.change(replace, 'other', there, Amounts(), Amounts(0, 1024 * 1024, 0))
    assert migrate('2.33').status == 400


def test_only_live_migrations_that_run_are_shown(api, server, migrate, settle):
    def refusal():
        (move, *_) = api.get('/os-migrations', '2.59').json['migrations']
        text = api.get(f'/servers/{server}/migrations/{move["id"]}', '2.23').json['itemNotFound']['message']
        return text.partition(f' {move["id"]} for server {server} is ')

    migrate()
    settle()
    assert refusal()[::2] == ('Live migration', 'not in progress.')
    api.post(f'/servers/{server}/action', {'migrate': None})
    settle()
    assert refusal()[::2] == ('Migration', 'not live-migration.')


# ------------------------------------------------------------------ aborts


@pytest.fixture
def abort(api, server):
    """abort(migration, '2.65')"""
    return lambda move, version: api.delete(f'/servers/{server}/migrations/{move["id"]}', version)


@pytest.fixture
def waiting(cloud, migrate, running, settle):
    """waiting('preparing'): a live migration that stays in that status."""
    hung = {'queued': 'check_live_migration', 'preparing': 'prepare_live_migration', 'running': 'live_migrate'}

    def begin(status):
        cloud.service.conf.set_override('hang', [hung[status]], 'simulated')
        migrate('2.34')
        settle()
        assert running()[0]['status'] == status
        return running()[0]

    return begin


@pytest.mark.parametrize('status', ['queued', 'preparing'])
def test_what_waits_is_over_at_once_when_it_is_aborted(
    api, waiting, abort, shown, running, held, settle, history, server, status
):
    before = shown()[-1]
    move = waiting(status)
    assert shown() == ('MIGRATING', 'migrating', before) and sorted(held()) == ['compute1', 'compute2']
    refused = abort(move, '2.64')
    assert refused.status == 400 and f'is {status}. Cannot abort live migration' in refused.text
    assert abort(move, '2.65').status == 202
    assert shown() == ('ACTIVE', None, before) and held() == [before]
    assert running() == [] and last(api)[0] == 'cancelled'
    assert {name for name, *_ in history(server)} == {'live-migration', 'live_migration_cancel'}
    settle()
    assert shown() == ('ACTIVE', None, before) and last(api)[0] == 'cancelled'


def test_a_worker_hears_at_once_of_what_an_abort_leaves(waiting, abort, cloud):
    move = waiting('preparing')
    before = cloud.service.platform.tasks.generation
    assert abort(move, '2.65').status == 202
    assert cloud.service.platform.tasks.generation > before


def test_an_abort_leaves_the_next_one_alone(waiting, abort, cloud, migrate, shown, settle):
    before = shown()[-1]
    abort(waiting('preparing'), '2.65')
    assert migrate('2.33').status == 202
    cloud.service.conf.clear_override('hang', 'simulated')
    settle()
    assert shown() == ('ACTIVE', None, other(before))


def test_what_runs_is_aborted_at_once(api, waiting, abort, shown, held, settle):
    before = shown()[-1]
    assert abort(waiting('running'), '2.24').status == 202
    settle()
    assert shown() == ('ACTIVE', None, before)
    assert held() == [before] and last(api)[0] == 'cancelled'


def test_an_abort_before_a_worker_came(api, migrate, running, abort, shown, settle):
    migrate()
    (move,) = running()
    assert abort(move, '2.64').status == 400
    assert abort(move, '2.65').status == 202
    settle()
    assert shown()[:2] == ('ACTIVE', None) and last(api)[0] == 'cancelled'


def refusals(api, server, as_='admin:project:admin'):
    """What clients are told who abort a live migration of the server, or force it to complete."""
    move = f'/servers/{server}/migrations/1'
    answers = api.delete(move, '2.24', as_=as_), api.post(f'{move}/action', {'force_complete': None}, '2.22', as_=as_)
    return [answer.json['conflictingRequest']['message'] for answer in answers]


def test_what_does_not_run_is_neither_aborted_nor_forced(api, servers, server):
    invalid = f"Instance {server} is in an invalid state for '{{}}'"
    assert refusals(api, server) == [invalid.format('abort live migration'), invalid.format('force_complete')]
    servers.change(server, task_state='pausing')
    busy = f"Cannot '{{}}' instance {server} while it is in task_state pausing"
    assert refusals(api, server) == [busy.format('abort live migration'), busy.format('force_complete')]
    api.post(f'/servers/{server}/action', {'lock': None})
    assert refusals(api, server, 'boss:project:manager') == [f'Instance {server} is locked'] * 2


@pytest.mark.parametrize('number', ['7', 'x'])
def test_an_unknown_migration_is_not_found_or_not_valid(api, servers, server, number):
    servers.change(server, task_state='migrating')
    move, text = f'/servers/{server}/migrations/{number}', f'Migration {number} not found for instance {server}'
    assert api.delete(move, '2.24').json == {'itemNotFound': {'code': 404, 'message': text}}
    forced = api.post(f'{move}/action', {'force_complete': None}, '2.22')
    assert forced.json == {'badRequest': {'code': 400, 'message': text}}


def test_only_active_servers_are_forced_to_complete_their_migration(api, servers, server):
    servers.change(server, vm_state='paused', task_state='migrating')
    answer = api.post(f'/servers/{server}/migrations/1/action', {'force_complete': None}, '2.22')
    assert answer.status == 409 and 'while it is in vm_state paused' in answer.text


def test_states_in_which_no_server_moves(migrate, servers, server):
    for state in ('stopped', 'suspended', 'rescued', 'error'):
        servers.change(server, vm_state=state)
        text = f"Cannot 'os-migrateLive' instance {server} while it is in vm_state {state}"
        assert migrate().json == {'conflictingRequest': {'code': 409, 'message': text}}


@pytest.mark.parametrize(('version', 'field'), [('2.24', 'block_migration'), ('2.25', 'host')])
def test_of_two_mistakes_the_first_is_told(api, server, version, field):
    wanted = {'host': 5, 'block_migration': 'auto'} | ({'disk_over_commit': False} if version == '2.24' else {})
    answer = api.post(f'/servers/{server}/action', {'os-migrateLive': wanted}, version)
    assert answer.json['badRequest']['message'].startswith(f'Invalid input for field/attribute {field}. ')


def test_to_its_own_host_no_server_goes(migrate, servers, server, shown):
    host = shown()[-1]
    text = f'Unable to migrate instance ({server}) to current host ({host}).'
    answer = migrate('2.25', host=host)
    assert answer.json == {'badRequest': {'code': 400, 'message': text}}
    assert servers.get(server).fault['message'] == text
    assert shown() == ('ACTIVE', None, host)
