"""Servers go where the ports that they are given find what they ask for, as Placement says, and hold it there."""

import threading
import uuid
from dataclasses import replace

import pytest
import sqlalchemy as sa

from computeapi.backends.placement import Holding, Inventory, PlacementRefused, Provider
from computeapi.compute.mirror import Mirror
from computeapi.db.tables import compute
from tests.api.servers.conftest import BOB
from tests.placement import PlacementInMemory
from tests.soundness import problems

BANDWIDTH = 'NET_BW_EGR_KILOBIT_PER_SEC'
TRAIT = 'CUSTOM_VNIC_TYPE_NORMAL'


@pytest.fixture
def placement():
    return PlacementInMemory()


@pytest.fixture
def service(store, service, placement, monkeypatch):
    monkeypatch.setattr(store, 'noted', threading.Event())
    service.mirror = Mirror(store, placement, service.hypervisor, service.conf)
    return service


@pytest.fixture
def parts(service, cloud, placement, store):
    """By host, the id of what has 1000 kbps there."""
    service.mirror.catch_up()
    rows = store.ask(lambda connection: connection.execute(sa.select(compute.hypervisors)).all())
    made = {row.host: str(uuid.uuid4()) for row in rows}
    for row in rows:
        facts = ({BANDWIDTH: Inventory(1000, 1.0, 1000)}, {TRAIT: True}, {})
        placement.part(row.uuid, Provider(made[row.host], f'{row.host}:ovs', *facts))
    return made


@pytest.fixture
def port(cloud):
    """The id of a port that asks for 600 kbps."""
    create = cloud.networks.resources.create
    policy = create(cloud.admin, 'qos/policies', {'name': 'gold'})['id']
    rule = {'qos_policy_id': policy, 'type': 'minimum_bandwidth', 'direction': 'egress', 'min_kbps': 600}
    create(cloud.admin, 'qos/rules', rule)
    return cloud.port(qos_policy_id=policy)


@pytest.fixture
def boot(create, port, settle):
    """boot(): the id of a server with the port."""

    def post(work=True):
        made = create('2.72', networks=[{'port': port}]).json['server']['id']
        if work:
            settle()
        return made

    return post


@pytest.fixture
def used(service, placement, parts):
    """used(): of which hosts bandwidth is held, when all is told."""

    def look():
        service.mirror.catch_up()
        return {host: dict(held) for host, part in parts.items() if (held := placement.holders(part))}

    return look


def take(placement, part, amount=500):
    placement.hold([Holding(str(uuid.uuid4()), 'INSTANCE', 'p', 'u', {part: {BANDWIDTH: amount}})])


@pytest.mark.parametrize('host', ['compute1', 'compute2'])
def test_where_there_is_enough(api, cloud, parts, placement, boot, port, used, state, settle, host, store):
    [other] = set(parts) - {host}
    take(placement, parts[other])
    server = boot()
    assert state(server)[0::4] == ('ACTIVE', host)
    assert placement.holders(parts[host]) == {server: {BANDWIDTH: 600}}
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
    assert placement.holding(server).resources == {}
    assert problems(store) == []


def test_somebody_else_is_quicker(parts, placement, boot, used, state, monkeypatch):
    hold, refused = placement.hold, []

    def refuse_once(found):
        if not refused:
            refused.extend(found)
            raise PlacementRefused('It has not so much.')
        hold(found)

    monkeypatch.setattr(placement, 'hold', refuse_once)
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
    die(service.mirror, 'tell_of_server', settle)
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
    assert len(placement.holding(server).resources) == 1


def test_a_neutron_with_groups_of_requests(service, cloud, parts, placement, boot, port, used, monkeypatch, store):

    ports = cloud.networks.ports
    groups = [{'id': str(uuid.uuid4()), 'resources': {BANDWIDTH: n}, 'required': [TRAIT]} for n in (300, 400)]
    asked = {'request_groups': groups, 'same_subtree': [each['id'] for each in groups]}

    def described(*arguments, **facts):
        return [replace(each, resource_request=asked) for each in ports(*arguments, **facts)]

    monkeypatch.setattr(cloud.networks, 'ports', described)
    server = boot()
    [(host, held)] = used().items()
    assert held == {server: {BANDWIDTH: 700}}
    claims = store.ask(lambda connection: connection.execute(sa.select(compute.allocations.c.ports)).scalars().all())
    assert [each[port]['allocation'] for each in claims] == [dict.fromkeys((g['id'] for g in groups), parts[host])]


def test_the_audit_looks_at_it_too(service, parts, placement, boot, used):
    server = boot()
    assert list(service.audit.placement()) == []
    held = placement.holding(server)
    without = {key: each for key, each in held.resources.items() if key not in parts.values()}
    placement.hold([held._replace(resources=without)])
    assert [found.server_id for found in service.audit.placement()] == [server]
    assert all(mended for _, mended in service.audit.repair())
    assert len(used()) == 1
