"""Servers are placed on hosts where Placement finds the resources that their ports request, which they then hold."""

import threading
import uuid
from dataclasses import replace

import pytest
import sqlalchemy as sa

from computeapi.backends.placement import ConsumerAllocations, Inventory, PlacementRefused, Provider
from computeapi.compute.mirror import Mirror
from computeapi.db.tables import compute
from tests.api.servers.conftest import BOB
from tests.invariants import problems
from tests.placement import PlacementInMemory

BANDWIDTH = 'NET_BW_EGR_KILOBIT_PER_SEC'
TRAIT = 'CUSTOM_VNIC_TYPE_NORMAL'


@pytest.fixture
def placement():
    return PlacementInMemory()


@pytest.fixture
def service(store, service, placement):
    before, store.noted = store.noted, threading.Event()
    service.mirror = Mirror(store, placement, service.hypervisor, service.conf)
    yield service
    store.noted = before


@pytest.fixture
def parts(service, cloud, placement, store):
    """By host, the ID of the provider of 1000 kbps there."""
    service.mirror.catch_up()
    rows = store.query(lambda connection: connection.execute(sa.select(compute.hypervisors)).all())
    made = {row.host: str(uuid.uuid4()) for row in rows}
    for row in rows:
        facts = ({BANDWIDTH: Inventory(1000, 1.0, 1000)}, {TRAIT: True}, {})
        placement.part(row.uuid, Provider(made[row.host], f'{row.host}:ovs', *facts))
    return made


@pytest.fixture
def port(cloud):
    """The ID of a port that requests 600 kbps."""
    create = cloud.networks.resources.create
    policy = create(cloud.admin, 'qos/policies', {'name': 'gold'})['id']
    rule = {'qos_policy_id': policy, 'type': 'minimum_bandwidth', 'direction': 'egress', 'min_kbps': 600}
    create(cloud.admin, 'qos/rules', rule)
    return cloud.port(qos_policy_id=policy)


@pytest.fixture
def boot(create, port, settle):
    """boot(): the ID of a server with the port."""

    def post(work=True):
        made = create('2.72', networks=[{'port': port}]).json['server']['id']
        if work:
            settle()
        return made

    return post


@pytest.fixture
def used(service, placement, parts):
    """used(): the allocations of bandwidth by host, after all changes were reported."""

    def look():
        service.mirror.catch_up()
        return {host: dict(held) for host, part in parts.items() if (held := placement.consumers_of(part))}

    return look


def take(placement, part, amount=500):
    placement.set_allocations(
        [ConsumerAllocations(str(uuid.uuid4()), 'INSTANCE', 'p', 'u', {part: {BANDWIDTH: amount}})]
    )


@pytest.mark.parametrize('host', ['compute1', 'compute2'])
def test_where_there_is_enough(api, cloud, parts, placement, boot, port, used, state, settle, host, store):
    [other] = set(parts) - {host}
    take(placement, parts[other])
    server = boot()
    assert state(server)[0::4] == ('ACTIVE', host)
    assert placement.consumers_of(parts[host]) == {server: {BANDWIDTH: 600}}
    assert problems(store) == []
    profile = {'allocation': parts[host]}
    assert cloud.networks.resources.get(cloud.admin, 'ports', port)['binding:profile'] == profile
    api.delete(f'/servers/{server}', as_=BOB)
    settle()
    assert host not in used()
    assert cloud.networks.resources.get(cloud.admin, 'ports', port)['binding:profile'] == {}


def test_where_there_is_not(api, parts, placement, boot, used, state, store):
    for part in parts.values():
        take(placement, part)
    server = boot()
    assert state(server)[0::4] == ('ERROR', None)
    assert 'No valid host was found' in api.get(f'/servers/{server}').json['server']['fault']['message']
    used()
    assert placement.allocations_of(server).resources == {}
    assert problems(store) == []


def test_somebody_else_is_quicker(parts, placement, boot, used, state, monkeypatch):
    hold, refused = placement.set_allocations, []

    def refuse_once(found):
        if not refused:
            refused.extend(found)
            raise PlacementRefused('It has not so much.')
        hold(found)

    monkeypatch.setattr(placement, 'set_allocations', refuse_once)
    server = boot()
    status, *_, host = state(server)
    assert status == 'ACTIVE' and parts[host] not in refused[0].resources
    assert used() == {host: {server: {BANDWIDTH: 600}}}


def test_placement_is_waited_for(api, parts, placement, boot, used, state, settle):
    placement.away = True
    server = boot()
    assert state(server)[0] == 'BUILD'
    placement.away = False
    settle(later=True)
    status, *_, host = state(server)
    assert status == 'ACTIVE' and used() == {host: {server: {BANDWIDTH: 600}}}


def test_who_dies_before_placement_knows(parts, boot, used, state, die, service, settle):
    server = boot(work=False)
    die(service.mirror, 'publish_server', settle)
    status, *_, host = state(server)
    assert status == 'ACTIVE' and used() == {host: {server: {BANDWIDTH: 600}}}


@pytest.mark.parametrize('how', ['detached', 'deleted'])
def test_a_port_that_leaves_gives_it_back(api, cloud, parts, placement, boot, port, used, settle, how):
    server = boot()
    assert len(used()) == 1
    if how == 'detached':
        assert api.delete(f'/servers/{server}/os-interface/{port}', as_=BOB).status == 202
    else:
        cloud.networks.resources.delete(cloud.admin, 'ports', port)
        cloud.service.refresh_addresses(cloud.admin, [server])
    settle()
    assert used() == {}
    assert len(placement.allocations_of(server).resources) == 1


def test_a_neutron_with_groups_of_requests(service, cloud, parts, placement, boot, port, used, monkeypatch, store):

    ports = cloud.networks.ports
    groups = [{'id': str(uuid.uuid4()), 'resources': {BANDWIDTH: n}, 'required': [TRAIT]} for n in (300, 400)]
    asked = {'request_groups': groups, 'same_subtree': [each['id'] for each in groups]}

    def described(*args, **kwargs):
        return [replace(each, resource_request=asked) for each in ports(*args, **kwargs)]

    monkeypatch.setattr(cloud.networks, 'ports', described)
    server = boot()
    [(host, held)] = used().items()
    assert held == {server: {BANDWIDTH: 700}}
    claims = store.query(lambda connection: connection.execute(sa.select(compute.allocations.c.ports)).scalars().all())
    assert [each[port]['allocation'] for each in claims] == [dict.fromkeys((g['id'] for g in groups), parts[host])]


def test_the_audit_looks_at_it_too(service, parts, placement, boot, used):
    server = boot()
    assert list(service.audit.placement()) == []
    held = placement.allocations_of(server)
    without = {key: each for key, each in held.resources.items() if key not in parts.values()}
    placement.set_allocations([held._replace(resources=without)])
    assert [found.server_id for found in service.audit.placement()] == [server]
    assert all(mended for _, mended in service.audit.repair())
    assert len(used()) == 1


# ------------------------------------------------------------------ existing servers


def profile(cloud, port):
    return cloud.networks.resources.get(cloud.admin, 'ports', port)['binding:profile']


def other(parts, host):
    [found] = set(parts) - {host}
    return found


@pytest.fixture
def agrees(service, cloud, store, parts, port, used):
    """agrees(server, host): only this server has bandwidth allocated, on that host, and all records agree."""

    def check(server, host):
        assert used() == {host: {server: {BANDWIDTH: 600}}}
        assert profile(cloud, port) == {'allocation': parts[host]}
        assert list(service.audit.placement()) == []
        # The killed process is not a bug, although it is recorded like one.
        assert [each for each in problems(store) if 'Killed' not in each] == []

    return check


@pytest.fixture
def move(act, cloud):
    """move('migrate'): starts to move the server."""
    cloud.flavor('2', vcpus=2)

    def begin(server, kind, work=True):
        if kind == 'evacuate':
            cloud.down('compute1')
        if kind == 'unshelve':
            act(server, 'shelve')
        name, argument, version = {
            'resize': ('resize', {'flavorRef': '2'}, '2.72'),
            'migrate': ('migrate', None, '2.72'),
            'live': ('os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.72'),
            'checked': ('os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.30'),
            'evacuate': ('evacuate', {}, '2.72'),
            'unshelve': ('unshelve', None, '2.72'),
        }[kind]
        return act(server, name, argument, version, as_='admin:project', work=work)

    return begin


@pytest.fixture
def first(parts, placement, boot, state):
    """first(): a server on compute1, while compute2 was full; then compute2 has room, too."""

    def made():
        consumer = str(uuid.uuid4())
        placement.set_allocations(
            [ConsumerAllocations(consumer, 'INSTANCE', 'p', 'u', {parts['compute2']: {BANDWIDTH: 500}})]
        )
        server = boot()
        assert state(server)[0::4] == ('ACTIVE', 'compute1')
        placement.set_allocations([placement.allocations_of(consumer)._replace(resources={})])
        return server

    return made


@pytest.mark.parametrize('settled', ['confirmResize', 'revertResize'])
@pytest.mark.parametrize('kind', ['resize', 'migrate'])
def test_a_cold_move_takes_it_along(cloud, act, parts, port, first, move, state, used, agrees, service, kind, settled):
    server = first()
    assert move(server, kind).status == 202
    assert state(server)[0::4] == ('VERIFY_RESIZE', 'compute2')
    held = used()
    assert held['compute2'] == {server: {BANDWIDTH: 600}}
    [(consumer, amount)] = held['compute1'].items()
    assert consumer != server and amount == {BANDWIDTH: 600}
    assert profile(cloud, port) == {'allocation': parts['compute2']} and list(service.audit.placement()) == []
    act(server, settled)
    agrees(server, 'compute2' if settled == 'confirmResize' else 'compute1')


@pytest.mark.parametrize('kind', ['live', 'checked', 'evacuate'])
def test_a_server_moves_where_there_is_enough(first, move, state, agrees, cloud, service, kind):
    server = first()
    assert move(server, kind).status in (200, 202)
    assert state(server)[0::4] == ('ACTIVE', 'compute2')
    cloud.up('compute1')
    agrees(server, 'compute2')


def test_a_shelved_server_holds_nothing(act, cloud, first, move, parts, placement, port, state, used, agrees):
    server = first()
    act(server, 'shelve')
    assert state(server)[0] == 'SHELVED_OFFLOADED' and used() == {} and profile(cloud, port) == {}
    take(placement, parts['compute1'])
    assert act(server, 'unshelve', version='2.72').status == 202
    assert state(server)[0::4] == ('ACTIVE', 'compute2')
    placement.consumers = {key: each for key, each in placement.consumers.items() if each.project_id != 'p'}
    agrees(server, 'compute2')


@pytest.mark.parametrize('kind', ['resize', 'migrate', 'live', 'checked', 'evacuate', 'unshelve'])
def test_it_does_not_go_where_there_is_not_enough(act, cloud, first, move, parts, placement, state, used, store, kind):
    server = first()
    if kind == 'unshelve':
        act(server, 'shelve')
        assert used() == {}
        take(placement, parts['compute1'])
    take(placement, parts['compute2'])
    if kind == 'unshelve':
        assert act(server, 'unshelve', version='2.72').status == 202
    else:
        assert move(server, kind).status == {'checked': 400, 'evacuate': 200}.get(kind, 202)
    status, *_, task, host = state(server)
    expected = {'evacuate': ('ERROR', 'compute1'), 'unshelve': ('SHELVED_OFFLOADED', None)}
    assert (status, host) == expected.get(kind, ('ACTIVE', 'compute1')) and task is None
    holding = {key: held.get(server) for key, held in used().items()}
    assert holding.get('compute1') == (None if kind == 'unshelve' else {BANDWIDTH: 600})
    assert holding['compute2'] is None and problems(store) == []


@pytest.mark.parametrize('kind', ['resize', 'live', 'evacuate'])
def test_somebody_is_quicker_than_a_move(first, move, state, placement, parts, monkeypatch, agrees, cloud, kind):
    """The migration looks for another host, but there is none."""
    server, hold = first(), placement.set_allocations

    def refuse(found):
        if any(parts['compute2'] in each.resources for each in found):
            raise PlacementRefused('It has not so much.')
        hold(found)

    monkeypatch.setattr(placement, 'set_allocations', refuse)
    move(server, kind)
    assert state(server)[0::4] == ('ERROR' if kind == 'evacuate' else 'ACTIVE', 'compute1')
    cloud.up('compute1')
    agrees(server, 'compute1')


@pytest.mark.parametrize(
    ('kind', 'fails', 'status'),
    [('resize', 'migrate', 'ERROR'), ('live', 'live_migrate', 'ACTIVE'), ('evacuate', 'spawn', 'ERROR')],
)
def test_a_move_that_fails_gives_it_back(first, move, state, service, agrees, cloud, kind, fails, status):
    server = first()
    service.conf.set_override('fail', [fails], 'simulated')
    move(server, kind)
    assert state(server)[0::4] == (status, 'compute1')
    cloud.up('compute1')
    agrees(server, 'compute1')


@pytest.mark.parametrize('kind', ['migrate', 'live', 'evacuate', 'unshelve'])
def test_who_dies_while_it_moves(first, move, state, service, settle, die, agrees, act, cloud, kind):
    server = first()
    move(server, kind, work=False)
    die(service.mirror, 'publish_server', settle)
    status, *_, host = state(server)
    if kind == 'migrate':
        act(server, 'confirmResize')
    cloud.up('compute1')
    assert status == ('VERIFY_RESIZE' if kind == 'migrate' else 'ACTIVE')
    agrees(server, host)


def test_a_resize_on_its_own_host_asks_for_no_more(act, first, move, parts, placement, state, service, agrees):
    server = first()
    service.conf.set_override('allow_resize_to_same_host', True)
    take(placement, parts['compute2'])
    move(server, 'resize')
    assert state(server)[0::4] == ('VERIFY_RESIZE', 'compute1')
    act(server, 'confirmResize')
    placement.consumers = {key: each for key, each in placement.consumers.items() if each.project_id != 'p'}
    agrees(server, 'compute1')


@pytest.fixture
def attach(api, create, port, settle, state):
    """attach(): an existing server, its host, and the response to a request to attach the port."""

    def post():
        server = create(networks='none', version='2.72').json['server']['id']
        settle()
        wanted = {'interfaceAttachment': {'port_id': port}}
        return server, state(server)[-1], api.post(f'/servers/{server}/os-interface', wanted, '2.72', as_=BOB)

    return post


def test_a_port_that_is_attached_holds_it(api, attach, agrees, port, used, settle):
    server, host, answer = attach()
    assert answer.status == 200
    agrees(server, host)
    assert api.delete(f'/servers/{server}/os-interface/{port}', as_=BOB).status == 202
    settle()
    assert used() == {}


@pytest.mark.parametrize('when', ['before', 'meanwhile', 'away'])
def test_a_port_is_not_attached_where_there_is_not_enough(
    api, cloud, attach, parts, placement, port, used, settle, monkeypatch, store, when
):
    hold = placement.set_allocations

    def refuse(found):
        if any(set(parts.values()) & set(each.resources) for each in found):
            raise PlacementRefused('It has not so much.')
        hold(found)

    if when == 'before':
        for part in parts.values():
            take(placement, part)
    if when == 'meanwhile':
        monkeypatch.setattr(placement, 'set_allocations', refuse)
    placement.away = when == 'away'
    server, _, answer = attach()
    if when == 'away':
        assert answer.status == 503
        placement.away = False
    else:
        reason = f'Failed to allocate additional resources to {server} during interface attach'
        assert answer.status == 400 and answer.json['badRequest']['message'] == reason
    settle(later=True)
    assert not any(server in held for held in used().values())
    assert cloud.networks.resources.get(cloud.admin, 'ports', port)['device_id'] == ''
    assert api.get(f'/servers/{server}/os-interface').json['interfaceAttachments'] == [] and problems(store) == []


def test_who_dies_while_it_attaches(api, attach, agrees, die, service, settle, state):
    die(service.mirror, 'publish_server', attach)
    [server] = api.get('/servers', as_=BOB).json['servers']
    agrees(server['id'], state(server['id'])[-1])
