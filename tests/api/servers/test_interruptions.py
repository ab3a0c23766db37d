"""What becomes of a server when something happens between any two steps of the work on it.

Everything persistent is written in transactions, so these are the steps. Each piece of work is repeated many times,
each time with an interruption before a different transaction.
"""

import contextlib
import functools
import itertools
import os
import zlib
from pathlib import Path

import pytest

from computeapi.db import server_search
from computeapi.db.listing import WHOLE
from computeapi.db.server_search import Search
from computeapi.db.tables import metadata
from computeapi.errors import DatabaseError
from tests.api.servers.conftest import BOB, IMAGE, NETWORK, body
from tests.conftest import FILLED, emptied
from tests.interruptible import Interruptible, Killed
from tests.invariants import problems

# Coverage is left to other tests: these execute the same lines thousands of times, and take half the time without it.
pytestmark = pytest.mark.no_cover

ADMIN = 'admin:admin'
MAX_STEPS = 200


class Refused(Exception):
    """The API refused the request."""


@pytest.fixture
def store(store):
    return Interruptible(store)


@pytest.fixture
def cloud(world, api):
    return Cloud(world, api)


def accepted(answer):
    if answer.status >= 300:
        raise Refused(answer)
    return answer


class Cloud:
    """A cloud of three hosts, and the operations of the scenarios."""

    def __init__(self, world, api):
        self.world, self.api, self.service, self.store = world, api, world.service, world.store
        self.service.conf.set_override('hosts', 3, 'simulated')
        # The driver always needs waiting for, so that tasks are resumed.
        self.service.conf.set_override('passing_seconds', 1e-6, 'simulated')
        self.service.conf.set_override('reclaim_instance_interval', 0)
        self.service.hosts.register()
        world.flavor('2', vcpus=2, memory_mb=128)
        self.volume = world.volume(name='data')
        self.more = world.volume(name='more')
        self.port = world.port(name='given')
        self.share = self.service.shares.create(world.bob, 1, 'NFS', name='share').id

    def work(self):
        while self.service.worker.step():
            pass

    def restart(self):
        self.store.revive()
        self.take_over()

    def take_over(self):
        """Another worker takes over, because it believes this one to be dead."""
        self.service.platform.tasks.release_all()
        self.work()

    def act(self, server, name, argument=None, version='2.95', as_=ADMIN):
        answer = self.api.post(f'/servers/{server}/action', {name: argument}, version, as_=as_)
        accepted(answer)
        return answer

    def create(self, **kwargs):
        answer = self.api.post('/servers', body(**kwargs), '2.95', as_=BOB)
        accepted(answer)
        return answer.json['server']['id']

    def boot(self):
        """Creates a server with a preexisting volume and port; returns it when it runs."""
        disk = {'source_type': 'volume', 'destination_type': 'volume', 'uuid': self.volume, 'boot_index': -1}
        root = {'source_type': 'image', 'destination_type': 'local', 'uuid': IMAGE, 'boot_index': 0}
        nets = [{'uuid': NETWORK}, {'port': self.port}]
        server = self.create(networks=nets, block_device_mapping_v2=[root, disk])
        self.work()
        return server

    def delete(self, server):
        self.world.service.conf.set_override('reclaim_instance_interval', 0)
        self.api.post(f'/servers/{server}/action', {'forceDelete': None}, as_=ADMIN)

    def servers(self):
        with self.store.read() as connection:
            return [server.uuid for server in server_search.page(connection, WHOLE, Search(soft_deleted=True)).servers]

    def host(self, server):
        return self.api.get(f'/servers/{server}').json['server']['OS-EXT-SRV-ATTR:host']

    def up(self):
        for host in ('compute1', 'compute2', 'compute3'):
            self.world.up(host)


def on_volume(cloud):
    disk = {
        'source_type': 'image',
        'destination_type': 'volume',
        'uuid': IMAGE,
        'boot_index': 0,
        'volume_size': 1,
        'delete_on_termination': True,
    }
    cloud.create(imageRef=None, block_device_mapping_v2=[disk])


def evacuate(cloud, server):
    cloud.world.down(cloud.host(server))
    cloud.act(server, 'evacuate', {})


def backup(cloud, server):
    cloud.act(server, 'createBackup', {'name': 'backup', 'backup_type': 'daily', 'rotation': 1})


def soft_delete(cloud, server):
    cloud.service.conf.set_override('reclaim_instance_interval', 3600)
    accepted(cloud.api.delete(f'/servers/{server}', as_=BOB))


def acting(name, argument=None, version='2.95'):
    return lambda cloud, server: cloud.act(server, name, argument, version)


def attach_volume(cloud, server):
    answer = cloud.api.post(
        f'/servers/{server}/os-volume_attachments', {'volumeAttachment': {'volumeId': cloud.more}}, '2.95', as_=BOB
    )
    accepted(answer)


def detach_volume(cloud, server):
    answer = cloud.api.delete(f'/servers/{server}/os-volume_attachments/{cloud.volume}', '2.95', as_=BOB)
    accepted(answer)


def attach_interface(cloud, server):
    wanted = {'interfaceAttachment': {'net_id': NETWORK}}
    answer = cloud.api.post(f'/servers/{server}/os-interface', wanted, '2.95', as_=BOB)
    accepted(answer)


def detach_interface(cloud, server):
    answer = cloud.api.delete(f'/servers/{server}/os-interface/{cloud.port}', '2.95', as_=BOB)
    accepted(answer)


def attach_share(cloud, server):
    accepted(cloud.api.post(f'/servers/{server}/shares', {'share': {'share_id': cloud.share}}, '2.97', as_=BOB))


def detach_share(cloud, server):
    accepted(cloud.api.delete(f'/servers/{server}/shares/{cloud.share}', '2.97', as_=BOB))


def elsewhere(cloud):
    """Booting fails on two of the three hosts."""
    cloud.service.conf.set_override('fail', ['spawn@compute1', 'spawn@compute2'], 'simulated')
    cloud.boot()


STOP, START = acting('os-stop'), acting('os-start')
BOOTS = {
    'boot': lambda cloud: cloud.create(),
    'boot-on-volume': on_volume,
    'boot-with-all': lambda cloud: cloud.boot(),
    'boot-elsewhere': elsewhere,
    'boot-nowhere': lambda cloud: cloud.create(networks='auto'),
}
# By name: the preparations, and then the work that is tested.
CHANGES = {
    'stop': ([], STOP),
    'start': ([STOP], START),
    'reboot': ([], acting('reboot', {'type': 'SOFT'})),
    'hard-reboot': ([], acting('reboot', {'type': 'HARD'})),
    'pause': ([], acting('pause')),
    'unpause': ([acting('pause')], acting('unpause')),
    'suspend': ([], acting('suspend')),
    'resume': ([acting('suspend')], acting('resume')),
    'rescue': ([], acting('rescue')),
    'unrescue': ([acting('rescue')], acting('unrescue')),
    'resize': ([], acting('resize', {'flavorRef': '2'})),
    'confirm': ([acting('resize', {'flavorRef': '2'})], acting('confirmResize')),
    'revert': ([acting('resize', {'flavorRef': '2'})], acting('revertResize')),
    'migrate': ([acting('os-stop')], acting('migrate')),
    'live-migrate': ([], acting('os-migrateLive', {'host': None, 'block_migration': 'auto'})),
    'live-migrate-checked': ([], acting('os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.33')),
    'evacuate': ([], evacuate),
    'shelve': ([], acting('shelve')),
    'unshelve': ([acting('shelve')], acting('unshelve')),
    'image': ([], acting('createImage', {'name': 'image'})),
    'backup': ([backup], backup),
    'rebuild': ([], acting('rebuild', {'imageRef': IMAGE})),
    'soft-delete': ([], soft_delete),
    'restore': ([soft_delete], acting('restore')),
    'delete': ([], lambda cloud, server: cloud.delete(server)),
    'attach-volume': ([], attach_volume),
    'detach-volume': ([], detach_volume),
    'attach-interface': ([], attach_interface),
    'detach-interface': ([], detach_interface),
    'attach-share': ([STOP], attach_share),
    'detach-share': ([STOP, attach_share], detach_share),
    'start-with-share': ([STOP, attach_share], START),
    'stop-with-share': ([STOP, attach_share, START], STOP),
    'delete-with-share': ([STOP, attach_share, START], lambda cloud, server: cloud.delete(server)),
}
# The changes between whose steps the server has no machine, and the interruption: it can be created again.
WITHOUT_MACHINE = {
    'shelve',
    'unshelve',
    'rebuild',
    'soft-delete',
    'delete',
    'delete-with-share',
    'asleep-and-shelved',
}


# The changes during which the host of the server may go down.
LEFT = ['stop', 'start', 'rescue', 'resize', 'migrate', 'live-migrate', 'live-migrate-checked', 'evacuate', 'rebuild']
LEFT += ['image', 'shelve', 'soft-delete', 'attach-volume', 'detach-volume', 'attach-interface']


def killed(cloud, server):
    cloud.store.die()


def deleted(cloud, server):
    if server in cloud.servers():
        cloud.delete(server)


def reset(cloud, server):
    if server in cloud.servers():
        cloud.api.post(f'/servers/{server}/action', {'os-resetState': {'state': 'error'}}, as_=ADMIN)


def reset_and_deleted(cloud, server):
    reset(cloud, server)
    deleted(cloud, server)


def aborted(cloud, server):
    for each in cloud.api.get(f'/servers/{server}/migrations', '2.65').json['migrations']:
        cloud.api.delete(f'/servers/{server}/migrations/{each["id"]}', '2.65')


def rebooted(cloud, server):
    with contextlib.suppress(Refused):
        cloud.act(server, 'reboot', {'type': 'HARD'})


def evacuated(cloud, server):
    with contextlib.suppress(Refused):
        evacuate(cloud, server)


def asleep(cloud, server):
    """The worker was stopped and taken for dead; then it continues as if nothing had happened."""
    cloud.take_over()


def asleep_and(act):
    """Meanwhile others do this to the server: at once if it is not refused, or else after they have taken over."""

    def interrupt(cloud, server):
        for _ in range(2):
            with contextlib.suppress(Refused):
                act(cloud, server)
            cloud.take_over()

    return interrupt


def troubled(cloud, server):
    """The database fails the next step."""
    raise DatabaseError('It is full.')


def nothing(cloud, server):
    """Nobody does anything before the process is back."""


# What happens between two steps, and what happens before the process that died is back.
INTERRUPTIONS = {
    'killed': (killed, nothing),
    'asleep': (asleep, nothing),
    'asleep-and-deleted': (asleep_and(deleted), nothing),
    'asleep-and-reset': (asleep_and(reset), nothing),
    'asleep-and-migrated': (asleep_and(acting('migrate')), nothing),
    'asleep-and-shelved': (asleep_and(acting('shelve')), nothing),
    'troubled': (troubled, nothing),
    'deleted': (deleted, nothing),
    'reset': (reset, nothing),
    'killed-and-deleted': (killed, deleted),
    'killed-and-reset': (killed, reset),
    'killed-reset-and-deleted': (killed, reset_and_deleted),
}
ABORTS = {'aborted': (aborted, nothing), 'killed-and-aborted': (killed, aborted)}
REBOOTS = {'rebooted': (rebooted, nothing), 'asleep-and-rebooted': (asleep_and(rebooted), nothing)}
EVACUATIONS = {
    'evacuated': (evacuated, nothing),
    'asleep-and-evacuated': (asleep_and(evacuate), nothing),
    'killed-and-evacuated': (killed, evacuated),
}
CASES = [
    *itertools.product(CHANGES, INTERRUPTIONS),
    *itertools.product(['live-migrate', 'live-migrate-checked'], ABORTS),
    *itertools.product(['reboot', 'pause', 'unpause', 'suspend', 'resume'], REBOOTS),
    *itertools.product(LEFT, EVACUATIONS),
]
# All of them take minutes; by default, only some steps are interrupted, most of them on SQLite.
THOROUGH = bool(os.environ.get('COMPUTEAPI_TEST_THOROUGH'))


def steps(name, interruption, database):
    """The numbers of completed steps before the interruption; they differ by name and database."""
    often, seldom = (12, 36) if database == 'sqlite' else (36, 108)
    stride = 1 if THOROUGH else often if interruption == 'killed' else seldom
    return range(zlib.crc32(f'{name} {interruption} {database}'.encode()) % stride, MAX_STEPS, stride)


@pytest.mark.parametrize(('change', 'interruption'), CASES)
def test_between_any_two_steps(cloud, database, change, interruption):
    before, ask = CHANGES[change]
    during, after = (INTERRUPTIONS | ABORTS | REBOOTS | EVACUATIONS)[interruption]
    begin = Beginning(cloud, before)
    for step in steps(change, interruption, database):
        server = begin()
        cloud.store.after(step, functools.partial(during, cloud, server))
        with contextlib.suppress(Killed, Refused, DatabaseError):
            ask(cloud, server)
            cloud.work()
        over = cloud.store.left is not None
        cloud.store.revive()
        after(cloud, server)
        cloud.restart()
        assert problems(cloud.store) == [], step
        may_be_without = WITHOUT_MACHINE & {change, interruption} or server not in cloud.servers()
        assert may_be_without or has_machine(cloud, server), step
        clean_up(cloud)
        if over:
            return
    raise AssertionError('it never ends')


@pytest.mark.parametrize(
    'interruption',
    ['killed', 'asleep', 'asleep-and-deleted', 'deleted', 'reset', 'killed-and-deleted', 'killed-and-reset'],
)
@pytest.mark.parametrize('boot', BOOTS)
def test_between_any_two_steps_of_a_boot(cloud, database, boot, interruption):
    during, after = INTERRUPTIONS[interruption]

    def every(act):
        for server in cloud.servers():
            act(cloud, server)

    for step in steps(boot, interruption, database):
        alone = {killed: cloud.store.die, asleep: cloud.take_over}
        cloud.store.after(step, alone.get(during) or functools.partial(every, during))
        with contextlib.suppress(Killed, Refused):
            BOOTS[boot](cloud)
            cloud.work()
        over = cloud.store.left is not None
        cloud.store.revive()
        every(after)
        cloud.restart()
        assert problems(cloud.store) == [], step
        clean_up(cloud)
        if over:
            return
    raise AssertionError('it never ends')


def has_machine(cloud, server):
    return (server, cloud.host(server)) in cloud.service.hypervisor.machines()


class Beginning:
    """A server in its initial state, which is created once and then restored, because that takes a tenth of the
    time."""

    def __init__(self, cloud, before):
        self.cloud, self.server = cloud, cloud.boot()
        for each in before:
            each(cloud, self.server)
            cloud.work()
        assert problems(cloud.store) == []
        self.reclaim_seconds = cloud.service.conf.reclaim_instance_interval
        images = Path(cloud.service.conf.standalone.data_dir, 'images')
        self.files = {path: path.read_bytes() for path in images.rglob('*') if path.is_file()}
        with cloud.store.read() as connection:
            filled = connection.execute(FILLED).mappings().one()
            tables = [table for table in metadata.sorted_tables if filled[table.name]]
            self.rows = {table: connection.execute(table.select()).mappings().all() for table in tables}

    def __call__(self):
        """Restores the initial state; returns the server."""
        self.cloud.service.conf.set_override('reclaim_instance_interval', self.reclaim_seconds)
        for path, content in self.files.items():
            path.write_bytes(content)
        emptied(self.cloud.store)
        with self.cloud.store.write() as connection:
            for table, rows in self.rows.items():
                connection.execute(table.insert(), [dict(row) for row in rows])
        # Or else its hosts would be down after a minute.
        self.cloud.service.hosts.report()
        return self.server


def clean_up(cloud):
    for server in cloud.servers():
        cloud.delete(server)
    cloud.work()
    cloud.up()
    assert problems(cloud.store) == []
    assert cloud.servers() == []
