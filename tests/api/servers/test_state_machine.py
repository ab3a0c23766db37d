"""Random requests in any order, and random failures: whenever the cloud is at rest, it is consistent.

A member and an administrator send requests while workers are in the middle of tasks, between any two steps; workers die
and are replaced; hosts go down and come up; operations fail.
"""

import contextlib
import functools
import os

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from computeapi import config, states
from computeapi.db import server_search
from computeapi.db.listing import WHOLE
from computeapi.db.server_search import Search
from computeapi.db.tables import metadata
from computeapi.db.tables.servers import tasks
from computeapi.main import Service
from computeapi.pipeline import load
from computeapi.versions import MAX
from tests.api.servers.conftest import BOB, IMAGE, NETWORK, World, body
from tests.conftest import Client
from tests.interruptible import Interruptible, Killed
from tests.invariants import Cloud, problems

EXAMPLES = int(os.environ.get('COMPUTEAPI_TEST_EXAMPLES', 20))
ADMIN = 'admin:admin'
HOSTS = ('compute1', 'compute2', 'compute3')
LATEST = str(MAX)

ROOT = {'source_type': 'image', 'destination_type': 'local', 'uuid': IMAGE, 'boot_index': 0}
NEW_ROOT = {
    'source_type': 'image',
    'destination_type': 'volume',
    'uuid': IMAGE,
    'boot_index': 0,
    'volume_size': 1,
    'delete_on_termination': True,
}
# Requests by name.
ACTIONS = {
    'start': {'os-start': None},
    'stop': {'os-stop': None},
    'reboot': {'reboot': {'type': 'SOFT'}},
    'reboot hard': {'reboot': {'type': 'HARD'}},
    'pause': {'pause': None},
    'unpause': {'unpause': None},
    'suspend': {'suspend': None},
    'resume': {'resume': None},
    'rescue': {'rescue': None},
    'unrescue': {'unrescue': None},
    'lock': {'lock': None},
    'unlock': {'unlock': None},
    'resize': {'resize': {'flavorRef': '2'}},
    'resize back': {'resize': {'flavorRef': '1'}},
    'confirm': {'confirmResize': None},
    'revert': {'revertResize': None},
    'migrate': {'migrate': None},
    'migrate there': {'migrate': {'host': 'compute2'}},
    'migrate alive': {'os-migrateLive': {'host': None, 'block_migration': 'auto'}},
    'migrate alive there': {'os-migrateLive': {'host': 'compute1', 'block_migration': 'auto'}},
    'evacuate': {'evacuate': {}},
    'shelve': {'shelve': None},
    'offload': {'shelveOffload': None},
    'unshelve': {'unshelve': None},
    'make image': {'createImage': {'name': 'image'}},
    'back up': {'createBackup': {'name': 'backup', 'backup_type': 'daily', 'rotation': 1}},
    'back up nothing': {'createBackup': {'name': 'backup', 'backup_type': 'daily', 'rotation': 0}},
    'rebuild': {'rebuild': {'imageRef': IMAGE}},
    'restore': {'restore': None},
    'force delete': {'forceDelete': None},
    'set password': {'changePassword': {'adminPass': 'secret'}},
    'dump': {'trigger_crash_dump': None},
    'reset to active': {'os-resetState': {'state': 'active'}},
    'reset to error': {'os-resetState': {'state': 'error'}},
}
# Actions that are possible for a server at rest.
RUN = ['stop', 'reboot', 'reboot hard', 'pause', 'suspend', 'rescue', 'rebuild', 'dump', 'set password']
MOVE = ['resize', 'resize back', 'migrate', 'migrate there', 'migrate alive', 'migrate alive there', 'evacuate']
KEEP = ['shelve', 'make image', 'back up', 'back up nothing']
POSSIBLE = {
    'active': [*RUN, *MOVE, *KEEP],
    'stopped': ['start', 'rescue', 'rebuild', *MOVE, *KEEP],
    'paused': ['unpause', 'reboot hard', 'migrate alive', *KEEP],
    'suspended': ['resume', 'reboot hard', *KEEP],
    'rescued': ['unrescue'],
    'resized': ['confirm', 'revert', 'reset to active'],
    'shelved': ['offload', 'unshelve'],
    'shelved_offloaded': ['unshelve'],
    'soft-delete': ['restore', 'force delete'],
    'error': ['reboot hard', 'rebuild', 'evacuate', 'stop', 'reset to active'],
}
# Requests at the most awkward moments.
SUDDEN = ['force delete', 'reset to active', 'reset to error', 'reboot hard', 'make image', 'lock']
NUMBERS, STEPS = st.integers(0, 3), st.integers(0, 20)
BODIES = {
    'plain': lambda world: {},
    'without-networks': lambda world: {'networks': 'none'},
    'on-any-network': lambda world: {'networks': 'auto'},
    'several': lambda world: {'min_count': 2, 'max_count': 3},
    'on-a-port': lambda world: {'networks': [{'port': world.port_id}, {'uuid': NETWORK}]},
    'with-a-volume': lambda world: {'block_device_mapping_v2': [ROOT, existing(world.volume_id, -1)]},
    'on-a-volume': lambda world: {'imageRef': None, 'block_device_mapping_v2': [NEW_ROOT]},
    'large': lambda world: {'flavorRef': '2', 'tags': ['a', 'b'], 'metadata': {'key': 'value'}},
    'unknown-flavor': lambda world: {'flavorRef': 'unknown'},
    'too-many': lambda world: {'min_count': 20, 'max_count': 20},
}
# Operations that may fail. `destroy` is left out: a machine that cannot be destroyed is kept, and looks like a leak.
FAILING = ('spawn', 'power_on', 'power_off', 'reboot', 'pause', 'suspend', 'resume', 'rescue', 'snapshot', 'migrate')
FAILING += ('check_live_migration', 'prepare_live_migration', 'live_migrate', 'attach', 'detach')
# Tables that a refused request must not change.
KEPT = [table for table in metadata.sorted_tables if table.name not in ('quota_locks', 'network_quota_locks')]

ACTION_TABLES = ('server_actions', 'server_action_events')


def existing(volume_id, boot_index):
    return {'source_type': 'volume', 'destination_type': 'volume', 'uuid': volume_id, 'boot_index': boot_index}


class Machine(RuleBasedStateMachine):
    """A cloud of three hosts, with a few servers."""

    def __init__(self, store, folder):
        super().__init__()
        self.wrong = []
        self.store = Interruptible(store)
        with self.store.write() as connection:
            for table in reversed(metadata.sorted_tables):
                connection.execute(table.delete())
        overrides = {
            ('api', 'auth_strategy'): 'none',
            ('api', 'response_validation'): 'error',
            ('simulated', 'hosts'): 3,
            ('standalone', 'data_dir'): str(folder),
        }
        self.service = Service(config.load(overrides=overrides), self.store)
        self.api = Client(load(self.service, 'compute'))
        self.world = World(self.service)
        self.service.hosts.register()
        self.world.image(IMAGE)
        self.world.network(NETWORK)
        self.world.flavor()
        self.world.flavor('2', vcpus=2, memory_mb=128)
        self.world.volume_id, self.world.port_id = self.world.volume(name='data'), self.world.port(name='given')
        self.other_volume = self.world.volume(2, name='other')
        self.share = self.service.shares.create(self.world.bob, 1, 'NFS', name='share').id

    # ------------------------------------------------------------ requests

    @initialize(kind=st.sampled_from(['plain', 'several', 'on-a-port', 'with-a-volume', 'on-a-volume']))
    def begin(self, kind):
        self.create(kind)
        self.settle()

    @precondition(lambda self: len(self.servers()) < 4)
    @rule(kind=st.sampled_from(sorted(BODIES)))
    def create(self, kind):
        self.ask('POST', '/servers', body(**BODIES[kind](self.world)), BOB)

    @rule(number=NUMBERS, name=st.sampled_from(sorted(ACTIONS)), as_=st.sampled_from([BOB, ADMIN]))
    def act(self, number, name, as_):
        """A client sends any request, whether it makes sense or not."""
        version = '2.72' if name == 'unlock' else LATEST
        self.ask('POST', f'/servers/{self.server(number)}/action', ACTIONS[name], as_, version)

    @rule(number=NUMBERS, choice=st.integers(0, 99), rested=st.booleans())
    def act_sensibly(self, number, choice, rested):
        """A client sends a possible request, provided that the server is at rest."""
        if rested:
            self.settle()
        server = Cloud(self.store).servers.get(self.server(number))
        if server is not None and server.vm_state in POSSIBLE:
            names = POSSIBLE[server.vm_state]
            name = names[choice % len(names)]
            if name == 'evacuate':
                self.world.down(server.host)
            self.act(number, name, ADMIN)

    @rule(number=NUMBERS, choice=st.integers(0, 99), other=st.integers(0, 99))
    def act_twice(self, number, choice, other):
        self.act_sensibly(number, choice, True)
        self.act_sensibly(number, other, True)

    @rule(number=NUMBERS, choice=st.integers(0, 99), step=STEPS, name=st.sampled_from(SUDDEN))
    def act_in_between(self, number, choice, step, name):
        """A request arrives while a worker is processing another one."""
        self.act_sensibly(number, choice, True)
        self.store.after(step, functools.partial(self.act, number, name, ADMIN))
        self.service.worker.step()
        self.store.revive()

    @rule(number=NUMBERS, choice=st.integers(0, 99), step=STEPS)
    def die(self, number, choice, step):
        """A worker dies while processing a request; its lease has not expired."""
        self.act_sensibly(number, choice, True)
        self.store.after(step, self.store.die)
        with contextlib.suppress(Killed):
            self.service.worker.step()
        self.store.revive()

    @rule(number=NUMBERS, kept=st.booleans())
    def delete(self, number, kept):
        self.keep(kept)
        self.ask('DELETE', f'/servers/{self.server(number)}', None, BOB)
        self.keep(False)

    def keep(self, kept):
        self.service.conf.set_override('reclaim_instance_interval', 3600 if kept else 0)

    @rule(number=NUMBERS, attach=st.booleans(), version=st.sampled_from(['2.100', LATEST]))
    def change_volumes(self, number, attach, version):
        """Until 2.100, the request itself reserves the volume; from 2.101 on, a worker does."""
        path = f'/servers/{self.server(number)}/os-volume_attachments'
        if attach:
            self.ask('POST', path, {'volumeAttachment': {'volumeId': self.world.volume_id}}, BOB, version)
        else:
            self.ask('DELETE', f'{path}/{self.world.volume_id}', None, BOB)

    @rule(number=NUMBERS, wanted=st.sampled_from(['new', 'given', 'less']))
    def change_interfaces(self, number, wanted):
        path, port = f'/servers/{self.server(number)}/os-interface', self.world.port_id
        if wanted == 'less':
            self.ask('DELETE', f'{path}/{port}', None, BOB)
        else:
            asked = {'port_id': port} if wanted == 'given' else {'net_id': NETWORK}
            self.ask('POST', path, {'interfaceAttachment': asked}, BOB, records=True)

    @rule(number=NUMBERS, back=st.booleans())
    def swap_volumes(self, number, back):
        """The volume service has copied one volume to another one, which takes its place."""
        old, new = (self.world.volume_id, self.other_volume)[:: -1 if back else 1]
        self.world.volumes.reset_status(self.world.admin, old, migration_status='migrating')
        path = f'/servers/{self.server(number)}/os-volume_attachments/{old}'
        self.ask('PUT', path, {'volumeAttachment': {'volumeId': new}}, ADMIN)

    @rule(number=NUMBERS, attach=st.booleans())
    def change_shares(self, number, attach):
        path = f'/servers/{self.server(number)}/shares'
        if attach:
            self.ask('POST', path, {'share': {'share_id': self.share}}, BOB, '2.97')
        else:
            self.ask('DELETE', f'{path}/{self.share}', None, BOB, '2.97')

    @rule(number=NUMBERS, choice=STEPS, add=st.booleans())
    def change_addresses(self, number, choice, add):
        server = self.server(number)
        known = Cloud(self.store).servers.get(server)
        addresses = [each['address'] for nic in known.network_info for each in nic['addresses']] if known else []
        request = {'addFixedIp': {'networkId': NETWORK}}
        if addresses and not add:
            request = {'removeFixedIp': {'address': addresses[choice % len(addresses)]}}
        self.ask('POST', f'/servers/{server}/action', request, BOB, '2.43')

    @rule(number=NUMBERS)
    def describe(self, number):
        server = self.server(number)
        self.ask('PUT', f'/servers/{server}', {'server': {'name': 'renamed'}}, BOB)
        self.ask('PUT', f'/servers/{server}/tags/new', None, BOB)
        self.ask('POST', f'/servers/{server}/metadata', {'metadata': {'key': 'other'}}, BOB)

    @rule(number=NUMBERS, zone=st.sampled_from([None, 'nova', 'elsewhere']))
    def pin(self, number, zone):
        """The server stays in its availability zone from now on, or may leave it."""
        self.ask('PUT', f'/servers/{self.server(number)}', {'server': {'pinned_availability_zone': zone}}, ADMIN)

    @rule(number=NUMBERS, abort=st.booleans())
    def steer(self, number, abort):
        path = f'/servers/{self.server(number)}/migrations'
        found = self.api.get(path, LATEST)
        for migration in found.json.get('migrations', ()):
            one = f'{path}/{migration["id"]}'
            if abort:
                self.ask('DELETE', one, None, ADMIN)
            else:
                self.ask('POST', f'{one}/action', {'force_complete': None}, ADMIN)

    def ask(self, method, path, request, as_, version=LATEST, records=False):
        """records: whether a refusal is recorded as an action of the server."""
        kept = [table for table in KEPT if not records or table.name not in ACTION_TABLES]
        before = self.everything(kept)
        answer = self.api.request(method, path, version, request, as_=as_)
        # A worker may be in the middle of a task, and would take an assertion for its own failure.
        if answer.status >= 500 or answer.status >= 400 and self.everything(kept) != before:
            self.wrong.append(answer)

    # ------------------------------------------------------------ disturbances

    @rule(steps=st.integers(1, 3))
    def work(self, steps):
        for _ in range(steps):
            self.service.worker.step()

    @rule(host=st.sampled_from(HOSTS), down=st.booleans())
    def switch(self, host, down):
        self.world.down(host, down)

    @rule(operations=st.lists(st.sampled_from(FAILING), max_size=2))
    def fail(self, operations):
        self.service.conf.set_override('fail', operations, 'simulated')

    @rule()
    def wait(self):
        """Everything scheduled for later is due."""
        with self.store.write() as connection:
            connection.execute(tasks.update().values(not_before=None))

    @rule()
    def settle(self):
        self.service.platform.tasks.release_all()
        while self.service.worker.step():
            pass
        assert self.wrong == []
        assert problems(self.store) == []
        self.check_limits()

    # ------------------------------------------------------------ invariants

    def check_limits(self):
        counted = [each for each in Cloud(self.store).servers.values() if each.vm_state != states.VMState.SOFT_DELETED]
        shown = self.api.get('/limits', LATEST, as_=BOB).json['limits']['absolute']
        used = [shown[f'total{name}Used'] for name in ('Instances', 'Cores', 'RAM')]
        assert used == [len(counted), sum(each.vcpus for each in counted), sum(each.memory_mb for each in counted)]
        listed = self.api.get('/servers/detail?all_tenants=1', LATEST).json['servers']
        assert {each['id'] for each in listed} == {each.uuid for each in counted}
        assert {each['status'] for each in listed} <= set(states.STATUS.values())

    def servers(self):
        with self.store.read() as connection:
            return [each.uuid for each in server_search.page(connection, WHOLE, Search(soft_deleted=True)).servers]

    def server(self, number):
        """An existing server, or an ID that does not exist."""
        there = self.servers()
        return there[number % len(there)] if there else IMAGE

    def everything(self, kept):
        with self.store.read() as connection:
            return {table.name: connection.execute(table.select().order_by(*table.primary_key)).all() for table in kept}

    def teardown(self):
        self.keep(False)
        self.fail([])
        self.settle()
        for server in self.servers():
            self.ask('POST', f'/servers/{server}/action', {'forceDelete': None}, ADMIN)
        self.settle()
        assert self.servers() == []
        left = Cloud(self.store)
        assert not left.ports and not left.attachments and not any(left.claims.values())


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp('images')


def test_the_cloud_is_sound_whatever_happens(stores, folder):
    settings = hypothesis.settings(
        max_examples=EXAMPLES,
        stateful_step_count=25,
        derandomize=EXAMPLES == 20,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    run_state_machine_as_test(lambda: Machine(stores('sqlite'), folder), settings=settings)
