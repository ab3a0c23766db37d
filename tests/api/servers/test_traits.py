"""Servers are placed on hosts with the resources and traits that their flavors and images require; they hold the
resources."""

import threading
import uuid

import pytest
import sqlalchemy as sa

from computeapi.backends.hypervisor import Capability
from computeapi.backends.placement import ConsumerAllocations, Inventory, PlacementRefused, Provider
from computeapi.compute.mirror import Mirror
from computeapi.db.placement_changes import HOST, note
from computeapi.db.tables import compute
from tests.api.servers.conftest import Killed
from tests.invariants import problems
from tests.placement import PlacementInMemory

ADMIN = 'admin:project'
FPGA, FAST, SLOW = 'CUSTOM_FPGA', 'CUSTOM_FAST', 'CUSTOM_SLOW'
ONE = {f'resources:{FPGA}': '1'}
NO_HOST = (
    'No valid host was found. There are not enough hosts available. Filter results: 2 hosts to begin with; '
    'Required resources and traits: 0 hosts'
)


class OwnProviders:
    """The hosts have what the operator declared."""

    def __init__(self, service):
        self.store = service.store

    def give(self, host, traits=(), resources=None):
        """Declare these traits and resources of a host."""
        values = {'traits': [*traits], 'resources': resources or {}}
        chosen = compute.hypervisors.update().where(compute.hypervisors.c.host == host)
        self.store.change(lambda connection: connection.execute(chosen.values(**values)))

    def settle(self):
        """Wait until what has changed about hosts is known."""

    def used(self):
        """What servers hold of CUSTOM_FPGA, by host and server."""
        columns = (compute.allocations.c.host, compute.allocations.c.server_id, compute.allocations.c.flavors)
        found = {}
        for host, server, flavors in self.store.query(lambda connection: connection.execute(sa.select(*columns)).all()):
            amount = sum(each.get(FPGA, 0) for held in (flavors or {}).values() for each in held.values())
            if amount:
                found.setdefault(host, {})[server] = amount
        return found


class PlacementProviders(OwnProviders):
    """The hosts have what an operator entered in Placement: resources are those of a provider below the host."""

    def __init__(self, service):
        super().__init__(service)
        self.mirror, self.placement = service.mirror, service.mirror.placement
        self.mirror.catch_up()
        rows = self.store.query(lambda connection: connection.execute(sa.select(compute.hypervisors)).all())
        self.ids, self.parts = {row.host: row.uuid for row in rows}, {}

    def give(self, host, traits=(), resources=None):
        provider = self.placement.providers[self.ids[host]]
        self.placement.declare(Provider(provider.id, provider.name, {}, dict.fromkeys(traits, True), {}))
        part = self.parts.setdefault(host, str(uuid.uuid4()))
        inventories = {name: Inventory(total, 1.0, total) for name, total in (resources or {}).items()}
        self.placement.part(provider.id, Provider(part, f'{host}:card', inventories, {}, {}))

    def settle(self):
        self.mirror.catch_up()

    def used(self):
        self.settle()
        found = {host: self.placement.consumers_of(part) for host, part in self.parts.items()}
        used = {host: {key: each[FPGA] for key, each in held.items()} for host, held in found.items() if held}
        own = super().used()
        assert [sorted(used[host].values()) for host in used] == [sorted(own[host].values()) for host in used]
        assert used.keys() == own.keys()
        return used


@pytest.fixture(params=[OwnProviders, PlacementProviders])
def kind_of_providers(request):
    return request.param


WITH_PLACEMENT = pytest.mark.parametrize('kind_of_providers', [PlacementProviders], indirect=True)


@pytest.fixture
def service(store, service, kind_of_providers):
    before = store.noted
    if kind_of_providers is PlacementProviders:
        store.noted = threading.Event()
        service.mirror = Mirror(store, PlacementInMemory(), service.hypervisor, service.conf)
    yield service
    store.noted = before


@pytest.fixture
def providers(service, cloud, kind_of_providers):
    return kind_of_providers(service)


@pytest.fixture
def boot(create, cloud, settle, state):
    """boot({'trait:CUSTOM_FAST': 'required'}): the ID of a new server of a flavor with these extra specs."""
    numbers = iter(range(10, 100))

    def booted(extra_specs=None, work=True, **kwargs):
        number = str(next(numbers))
        cloud.flavor(number, extra_specs=extra_specs or {})
        answer = create('2.74', as_=ADMIN, **{'flavorRef': number, 'networks': 'none'} | kwargs)
        assert answer.status == 202, answer
        if work:
            settle()
        return answer.json['server']['id']

    return booted


@pytest.fixture
def host_of(state):
    """host_of(server): its host if it is ACTIVE; else None."""
    return lambda server: state(server)[-1] if state(server)[0] == 'ACTIVE' else None


MET = {
    'a trait': {f'trait:{FAST}': 'required'},
    'a standard trait': {'trait:COMPUTE_NODE': 'required', f'trait:{FAST}': 'required'},
    'no other trait': {f'trait:{SLOW}': 'forbidden'},
    'a resource': {f'resources:{FPGA}': '2'},
    'all of them': {f'resources:{FPGA}': '1', f'trait:{FAST}': 'required', f'trait:{SLOW}': 'forbidden'},
    'a group': {'resources1:VCPU': '1', f'trait1:{FAST}': 'required'},
    'two groups': {
        'resources1:VCPU': '1',
        f'trait1:{FAST}': 'required',
        f'resources_F:{FPGA}': '1',
        'group_policy': 'none',
    },
}
UNMET = {
    'an unknown trait': {'trait:CUSTOM_GPU': 'required'},
    'a capability that is absent': {'trait:COMPUTE_RESCUE_BFV': 'required'},
    'traits of two hosts': {f'trait:{FAST}': 'required', f'trait:{SLOW}': 'required'},
    'a trait and not': {f'trait:{FAST}': 'required', 'resources1:VCPU': '1', f'trait1:{FAST}': 'forbidden'},
    'too much': {f'resources:{FPGA}': '3'},
    'too much in groups': {f'resources1:{FPGA}': '2', f'resources2:{FPGA}': '1', 'group_policy': 'none'},
    'groups without a policy': {f'resources1:{FPGA}': '1', 'resources2:VCPU': '1'},
    'groups of sizes without a policy': {'resources1:VCPU': '1', 'resources2:MEMORY_MB': '64'},
    'sizes of their own providers': {'resources1:VCPU': '1', 'resources2:VCPU': '1', 'group_policy': 'isolate'},
    'groups with an unknown policy': {f'resources1:{FPGA}': '1', 'resources2:VCPU': '1', 'group_policy': 'any'},
    'an unknown resource': {'resources:VGPU': '1'},
    'a group without resources': {f'trait1:{FAST}': 'required'},
    'providers of their own': {f'resources1:{FPGA}': '1', f'resources2:{FPGA}': '1', 'group_policy': 'isolate'},
}


@pytest.mark.parametrize('what', MET)
def test_the_host_that_has_it(service, providers, boot, host_of, store, what):
    providers.give('compute1', [SLOW])
    providers.give('compute2', [FAST], {FPGA: 2})
    assert host_of(boot(MET[what])) == 'compute2'
    assert host_of(boot(MET[what], availability_zone='nova:compute2')) == (None if what == 'a resource' else 'compute2')
    assert host_of(boot(MET[what], availability_zone='nova:compute1')) is None
    assert problems(store) == []


@pytest.mark.parametrize('what', UNMET)
def test_no_host_has_it(api, service, providers, boot, state, store, monkeypatch, what):
    capabilities = service.hypervisor.capabilities - {Capability.RESCUE_ON_VOLUME}
    monkeypatch.setattr(service.hypervisor, 'capabilities', capabilities)
    service.hosts.register()
    providers.settle()
    providers.give('compute1', [SLOW])
    providers.give('compute2', [FAST], {FPGA: 2})
    server = boot(UNMET[what])
    assert state(server)[0::4] == ('ERROR', None)
    fault = api.get(f'/servers/{server}').json['server']['fault']
    assert (fault['code'], fault['message']) == (500, NO_HOST)
    assert providers.used() == {} and problems(store) == []


def test_it_is_held_until_the_server_is_gone(api, providers, boot, host_of, settle, store):
    providers.give('compute2', resources={FPGA: 2})
    first, second, third = (boot(ONE) for _ in range(3))
    assert [host_of(each) for each in (first, second, third)] == ['compute2', 'compute2', None]
    assert providers.used() == {'compute2': {first: 1, second: 1}}
    assert providers.used() == {'compute2': {first: 1, second: 1}}
    api.delete(f'/servers/{first}', as_=ADMIN)
    settle()
    assert host_of(boot({f'resources:{FPGA}': '2'})) is None
    last = boot(ONE)
    assert host_of(last) == 'compute2' and problems(store) == []
    assert providers.used() == {'compute2': {second: 1, last: 1}}


def test_what_images_require_is_added(providers, cloud, boot, host_of):
    providers.give('compute1', [FAST])
    providers.give('compute2', [FAST, SLOW])
    image = cloud.image(properties={f'trait:{SLOW}': 'required'})
    assert host_of(boot(imageRef=image)) == 'compute2'
    assert host_of(boot({f'trait:{FAST}': 'required'}, imageRef=image)) == 'compute2'
    assert host_of(boot({f'trait:{SLOW}': 'forbidden'}, imageRef=image)) is None
    # Images cannot forbid, and have no groups.
    ignored = cloud.image(properties={f'trait:{FAST}': 'forbidden', 'trait1:CUSTOM_GPU': 'required'})
    assert host_of(boot(imageRef=ignored)) is not None


@pytest.mark.parametrize('group', ['', '1'])
def test_resources_override_sizes(providers, boot, host_of, store, group):
    sizes = {f'resources{group}:{name}': value for name, value in (('VCPU', '0'), ('MEMORY_MB', '7'), ('DISK_GB', '3'))}
    server = boot(sizes)
    assert host_of(server) is not None
    columns = [compute.allocations.c[name] for name in ('vcpus', 'memory_mb', 'disk_gb', 'flavors')]
    [claim] = store.query(lambda connection: connection.execute(sa.select(*columns)).all())
    assert tuple(claim) == (0, 7, 3, None)
    assert boot({'resources:MEMORY_MB': str(2**40)}) and problems(store) == []


def test_hosts_have_what_is_configured(service, providers, boot, host_of):
    for option, value in (('traits', [FAST]), ('resources', {FPGA: 1})):
        service.conf.set_override(option, value, 'simulated')
    service.hosts.register()
    providers.settle()
    servers = [boot({**ONE, f'trait:{FAST}': 'required'}) for _ in range(3)]
    assert sorted(str(host_of(each)) for each in servers) == ['None', 'compute1', 'compute2']


# ------------------------------------------------------------------ existing servers

MOVES = {
    'migrate': ('migrate', None, '2.72'),
    'live': ('os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.72'),
    'checked': ('os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.30'),
    'evacuate': ('evacuate', {}, '2.72'),
    'unshelve': ('unshelve', None, '2.72'),
}


@pytest.fixture
def move(act, cloud):
    """move(server, 'migrate'): moves the server away from compute1."""

    def begin(server, kind, host=None):
        if kind == 'evacuate':
            cloud.down('compute1')
        if kind == 'unshelve':
            act(server, 'shelve', as_=ADMIN)
            cloud.down('compute1')
        answer = act(server, *MOVES[kind], as_=ADMIN)
        if kind == 'migrate':
            act(server, 'confirmResize', as_=ADMIN)
        cloud.up('compute1')
        return answer

    return begin


@pytest.mark.parametrize('kind', MOVES)
def test_servers_move_where_it_is(providers, boot, move, host_of, store, kind):
    providers.give('compute1', [FAST], {FPGA: 1})
    server = boot({**ONE, f'trait:{FAST}': 'required'})
    assert host_of(server) == 'compute1'
    providers.give('compute2', [FAST], {FPGA: 1})
    move(server, kind)
    assert host_of(server) == 'compute2'
    assert providers.used() == {'compute2': {server: 1}} and problems(store) == []


@pytest.mark.parametrize('kind', MOVES)
@pytest.mark.parametrize('missing', ['trait', 'resource'])
def test_servers_do_not_move_where_it_is_not(providers, boot, move, state, store, kind, missing):
    providers.give('compute1', [FAST], {FPGA: 1})
    server = boot({**ONE, f'trait:{FAST}': 'required'})
    providers.give('compute2', *(([], {FPGA: 1}) if missing == 'trait' else ([FAST], {})))
    move(server, kind)
    expected = {'evacuate': ('ERROR', 'compute1'), 'unshelve': ('SHELVED_OFFLOADED', None)}
    assert state(server)[0::4] == expected.get(kind, ('ACTIVE', 'compute1'))
    assert providers.used() == ({} if kind == 'unshelve' else {'compute1': {server: 1}})
    assert problems(store) == []


@pytest.mark.parametrize('settled', ['confirmResize', 'revertResize'])
@pytest.mark.parametrize('here', [True, False])
def test_a_resize_holds_both_until_it_is_settled(service, providers, cloud, boot, act, state, store, settled, here):
    service.conf.set_override('allow_resize_to_same_host', True)
    providers.give('compute1', resources={FPGA: 3})
    server = boot(ONE)
    there = 'compute1' if here else 'compute2'
    providers.give(there, resources={FPGA: 3})
    if not here:
        boot({f'resources:{FPGA}': '2'}, availability_zone='nova:compute1')
    cloud.flavor('two', extra_specs={f'resources:{FPGA}': '2'})
    act(server, 'resize', {'flavorRef': 'two'}, as_=ADMIN)
    assert state(server)[0::4] == ('VERIFY_RESIZE', there)
    amounts = {host: held[server] for host, held in providers.used().items() if server in held}
    if isinstance(providers, PlacementProviders) and not here:
        # Meanwhile, the migration holds what is on the old host.
        assert amounts == {there: 2}
    else:
        assert amounts == ({there: 3} if here else {'compute1': 1, there: 2})
    act(server, settled, as_=ADMIN)
    final = (there, 2) if settled == 'confirmResize' else ('compute1', 1)
    mine = {host: held[server] for host, held in providers.used().items() if server in held}
    assert mine == dict([final]) and problems(store) == []


def test_a_resize_goes_where_the_new_flavor_can(providers, cloud, boot, act, state):
    providers.give('compute1', [FAST])
    server = boot({f'trait:{FAST}': 'required'})
    cloud.flavor('two', extra_specs={f'trait:{SLOW}': 'required'})
    act(server, 'resize', {'flavorRef': 'two'}, as_=ADMIN)
    assert state(server)[0::4] == ('ACTIVE', 'compute1')
    providers.give('compute2', [SLOW])
    act(server, 'resize', {'flavorRef': 'two'}, as_=ADMIN)
    assert state(server)[0::4] == ('VERIFY_RESIZE', 'compute2')


@pytest.mark.parametrize('kind', ['live', 'evacuate'])
def test_a_forced_move_ignores_traits(providers, boot, act, cloud, state, kind):
    providers.give('compute1', [FAST], {FPGA: 1})
    server = boot({**ONE, f'trait:{FAST}': 'required'})
    body = {'host': 'compute2', 'force': True}
    if kind == 'evacuate':
        cloud.down('compute1')

    def force():
        more = {'block_migration': 'auto'} if kind == 'live' else {}
        act(server, 'os-migrateLive' if kind == 'live' else 'evacuate', body | more, '2.30', as_=ADMIN)
        return state(server)[-1]

    if kind == 'live':
        assert force() == 'compute1'
    providers.give('compute2', resources={FPGA: 1})
    assert force() == 'compute2'
    cloud.up('compute1')
    assert providers.used()['compute2'] == {server: 1}


@pytest.mark.parametrize('image', ['on the host', 'elsewhere', 'forbidden', 'forbidden in a group'])
def test_rebuild(api, providers, cloud, boot, act, state, image):
    providers.give('compute1', [FAST])
    group = {'resources1:VCPU': '1', 'trait1:CUSTOM_OLD': 'forbidden'}
    server = boot({f'trait:{FAST}': 'required', f'trait:{SLOW}': 'forbidden', **group})
    traits = {'on the host': FAST, 'elsewhere': 'CUSTOM_GPU', 'forbidden': SLOW, 'forbidden in a group': 'CUSTOM_OLD'}
    trait = traits[image]
    wanted = cloud.image(properties={f'trait:{trait}': 'required'})
    act(server, 'rebuild', {'imageRef': wanted}, as_=ADMIN)
    status, *_, host = state(server)
    assert (status, host) == ('ACTIVE' if image == 'on the host' else 'ERROR', 'compute1')
    if status == 'ERROR':
        fault = api.get(f'/servers/{server}').json['server']['fault']['message']
        reason = 'cannot be satisfied by the current' if image == 'elsewhere' else 'are part of forbidden traits'
        assert fault.startswith(f'No valid host was found. Image traits {reason}')


def test_many_at_once_get_no_more_than_there_is(providers, boot, service, cloud, state, store):
    providers.give('compute1', resources={FPGA: 2})
    providers.give('compute2', resources={FPGA: 1})
    servers = [boot(ONE, work=False) for _ in range(6)]
    workers = [threading.Thread(target=lambda: [None for _ in iter(service.worker.step, False)]) for _ in range(4)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert sorted(str(state(each)[-1]) for each in servers) == ['None'] * 3 + ['compute1'] * 2 + ['compute2']
    assert sorted(sum(held.values()) for held in providers.used().values()) == [1, 2] and problems(store) == []


@pytest.mark.parametrize('kind_of_providers', [OwnProviders], indirect=True)
def test_ordinary_servers_cost_no_more(create, settle, cloud, asked):
    numbers = []
    for extra_specs in ({}, {'resources:VCPU': '0'}, {'trait:COMPUTE_NODE': 'required'}):
        number = str(len(numbers) + 10)
        cloud.flavor(number, extra_specs=extra_specs)
        asked.clear()
        assert create('2.37', flavorRef=number, networks='none').status == 202
        settle()
        numbers.append(len(asked))
    assert numbers[0] == numbers[1] == numbers[2] - 1


# ------------------------------------------------------------------ with Placement


@WITH_PLACEMENT
def test_placement_has_what_is_declared(service, providers, boot, host_of, store):
    OwnProviders(service).give('compute2', [FAST], {FPGA: 2})
    hosts = [compute.hypervisors.c.uuid]
    for (hypervisor_id,) in store.query(lambda connection: connection.execute(sa.select(*hosts)).all()):
        store.change(lambda connection, id=hypervisor_id: note(connection, HOST, [id]))
    providers.mirror.catch_up()
    server = boot({**ONE, f'trait:{FAST}': 'required'})
    assert host_of(server) == 'compute2'
    assert providers.placement.consumers_of(providers.ids['compute2'])[server][FPGA] == 1
    assert host_of(boot({f'resources:{FPGA}': '2'})) is None and list(service.audit.placement()) == []


@WITH_PLACEMENT
def test_somebody_else_is_quicker(providers, boot, state, monkeypatch, store):
    providers.give('compute1', resources={FPGA: 1})
    providers.give('compute2', resources={FPGA: 1})
    hold, refused = providers.placement.set_allocations, []

    def refuse_once(found):
        if not refused:
            refused.extend(found)
            raise PlacementRefused('It has not so much.')
        hold(found)

    monkeypatch.setattr(providers.placement, 'set_allocations', refuse_once)
    server = boot(ONE)
    status, *_, host = state(server)
    assert status == 'ACTIVE' and providers.parts[host] not in refused[0].resources
    assert providers.used() == {host: {server: 1}} and problems(store) == []


@WITH_PLACEMENT
def test_placement_is_waited_for(providers, boot, state, settle):
    providers.give('compute2', resources={FPGA: 1})
    providers.placement.away = True
    server = boot(ONE)
    assert state(server)[0] == 'BUILD'
    providers.placement.away = False
    settle(later=True)
    assert state(server)[0::4] == ('ACTIVE', 'compute2') and providers.used() == {'compute2': {server: 1}}


@WITH_PLACEMENT
def test_somebody_else_is_quicker_than_who_died(service, providers, boot, state, settle, die):
    """The server leaves its host if Placement refuses the claim that it was not told of."""
    for host in ('compute1', 'compute2'):
        providers.give(host, resources={FPGA: 1})
    server, left = boot(ONE, work=False), []

    def work():
        try:
            settle()
        except Killed:
            left.append(state(server)[-1])
            held = {providers.parts[left[0]]: {FPGA: 1}}
            providers.placement.set_allocations([ConsumerAllocations(str(uuid.uuid4()), resources=held)])
            raise

    die(service.mirror, 'publish_server', work)
    status, *_, host = state(server)
    assert status == 'ACTIVE' and host not in left
    assert providers.placement.consumers_of(providers.parts[host]) == {server: {FPGA: 1}}
