"""Notifications of evacuations, and of the stages of live migrations."""

import pytest

from computeapi.backends.hypervisor import HypervisorError, NotYet
from tests.api.servers.conftest import IMAGE
from tests.interruptible import Interruptible, is_done_when_killed
from tests.notified import around, data, names, taken

ADMIN = 'admin:admin'
MIGRATE = ('os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.65', ADMIN)
PRE, ARRIVED = (
    around('live_migration_pre'),
    [
        *('live_migration_post.start', 'live_migration_post_dest.start'),
        *('live_migration_post_dest.end', 'live_migration_post.end'),
    ],
)
ROLLED_BACK = [
    *('live_migration_rollback.start', 'live_migration_rollback_dest.start'),
    *('live_migration_rollback_dest.end', 'live_migration_rollback.end'),
]
MAX_STEPS = 200


@pytest.fixture
def store(store):
    return Interruptible(store)


@pytest.fixture
def conf(conf, request):
    conf.set_override('notification_format', getattr(request, 'param', 'versioned'), 'notifications')
    return conf


@pytest.fixture
def told(store):
    """told(): the names of the notifications since the last call."""
    return lambda: names(taken(store))


@pytest.fixture
def migration(api, server):
    """migration(): the path of the server's live migration in progress."""

    def find():
        (found,) = api.get(f'/servers/{server}/migrations', '2.80').json['migrations']
        return f'/servers/{server}/migrations/{found["id"]}'

    return find


@pytest.fixture
def copying(monkeypatch, world):
    """A live migration copies data for as long as it is not aborted or forced."""

    def live_migrate(self, server, host, facts, wish):
        if wish == 'running':
            raise NotYet(60)
        return wish != 'cancelling'

    monkeypatch.setattr(type(world.service.hypervisor), 'live_migrate', live_migrate)


def test_a_live_migration_is_told(act, server, told):
    told()
    act(server, *MIGRATE)
    assert told() == PRE + ARRIVED


@pytest.mark.parametrize('conf', ['unversioned'], indirect=True)
def test_the_unversioned_names_of_its_stages(act, server, told):
    told()
    act(server, *MIGRATE)
    assert [name.removeprefix('compute.instance.') for name in told()] == [
        *('live_migration.pre.start', 'live_migration.pre.end'),
        *('live_migration._post.start', 'live_migration.post.dest.start'),
        *('live_migration.post.dest.end', 'live_migration._post.end'),
    ]


def test_a_failed_live_migration_is_told(act, server, monkeypatch, told, world):
    def live_migrate(*args):
        raise HypervisorError('The network is down.')

    monkeypatch.setattr(type(world.service.hypervisor), 'live_migrate', live_migrate)
    told()
    act(server, *MIGRATE)
    assert told() == PRE + ROLLED_BACK


def test_an_aborted_live_migration_is_told(act, api, copying, migration, server, settle, store, told):
    act(server, *MIGRATE, work=False)
    settle()
    told()
    assert api.delete(migration(), '2.65').status == 202
    begun, ended = taken(store)
    assert names([begun, ended]) == around('live_migration_abort')
    assert begun.publisher_id == f'nova-compute:{data(begun)["host"]}' and begun.context['user_id'] == 'admin'
    settle()
    assert told() == ROLLED_BACK


def test_a_withdrawn_live_migration_is_told(act, api, migration, server, settle, told):
    act(server, *MIGRATE, work=False)
    told()
    assert api.delete(migration(), '2.65').status == 202
    settle()
    assert told() == around('live_migration_abort')


def test_a_forced_completion_is_told(act, api, copying, migration, server, settle, told):
    act(server, *MIGRATE, work=False)
    settle()
    told()
    assert api.post(f'{migration()}/action', {'force_complete': None}, '2.22').status == 202
    assert told() == around('live_migration_force_complete')


@pytest.mark.parametrize('conf', ['both'], indirect=True)
def test_an_evacuation_is_told(act, server, state, store, settle, world):
    world.down(state(server)[-1])
    taken(store)
    assert act(server, 'evacuate', {}, '2.95', as_=ADMIN, work=False).status == 200
    asked = taken(store)
    assert [(each.event_type, each.publisher_id) for each in asked] == [
        ('compute.instance.evacuate', 'api.controller'),
        ('instance.evacuate', 'nova-api:controller'),
    ]
    settle()
    done = [each.event_type for each in taken(store) if each.format == 'versioned']
    wanted = ['exists', 'rebuild.start', *around('power_off'), 'rebuild.end']
    assert done == [f'instance.{each}' for each in wanted]


@pytest.mark.no_cover
def test_a_kill_loses_nothing_and_tells_nothing_twice(act, made, monkeypatch, settle, store, told, world):
    """A live migration fails, and is rolled back."""

    def live_migrate(*args):
        raise HypervisorError('The network is down.')

    monkeypatch.setattr(type(world.service.hypervisor), 'live_migrate', live_migrate)
    for steps in range(MAX_STEPS):
        server = made(imageRef=IMAGE)[0].uuid
        settle()
        told()
        act(server, *MIGRATE, work=False)
        done = is_done_when_killed(store, world.service, settle, steps)
        assert told() == PRE + ROLLED_BACK, steps
        act(server, 'forceDelete', as_=ADMIN)
        if done:
            return
    raise AssertionError('The work never ended.')
