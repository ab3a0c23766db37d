"""The behaviour of every Placement, as far as compute reports hosts and allocations."""

import uuid
from dataclasses import replace

import pytest

from computeapi import config
from computeapi.backends.placement import (
    ConcurrentUpdate,
    ConsumerAllocations,
    Inventory,
    PlacementRefused,
    Provider,
    ResourceRequest,
)
from computeapi.backends.placement.service import PlacementService
from tests.backends.implementations import PLACEMENT

ROOM = {'VCPU': Inventory(4, 2.0, 8), 'MEMORY_MB': Inventory(1024, 1.0, 1024, reserved=24)}
TRAITS = {'COMPUTE_NODE': True, 'COMPUTE_STATUS_DISABLED': False, 'COMPUTE_NOT_KNOWN_YET': False}
OWNER = {'project_id': 'apples', 'user_id': 'alice'}


@pytest.fixture(params=PLACEMENT)
def world(request):
    world = request.param()
    yield world
    world.end()


@pytest.fixture
def placement(world):
    return world.placement


@pytest.fixture
def host(world):
    """A provider that Placement knows."""
    return world.host(new())


def new(**kwargs):
    provider_id = str(uuid.uuid4())
    return Provider(provider_id, f'host-{provider_id}', ROOM, TRAITS, {}, **kwargs)


def holding(host, consumer_id=None, **resources):
    return ConsumerAllocations(consumer_id or str(uuid.uuid4()), resources={host.id: resources}, **OWNER)


def test_a_host_is_declared_once_and_again(world, placement):
    host = new()
    assert placement.differences(host) == ['provider']
    world.host(host)
    assert placement.differences(host) == []
    less, aggregate = {'VCPU': Inventory(2, 1.0, 2), 'MEMORY_MB': Inventory(0, 1.0, 1)}, str(uuid.uuid4())
    other = replace(
        host, inventories=less, traits=TRAITS | {'COMPUTE_STATUS_DISABLED': True}, aggregates={aggregate: True}
    )
    assert placement.differences(other) == ['inventories', 'traits', 'aggregates']
    for _ in range(2):
        placement.declare(other)
        assert placement.differences(other) == []
    placement.declare(replace(host, aggregates={aggregate: False}))
    assert placement.differences(host) == []


def test_what_others_wrote_there_stays(world, placement, host):
    aggregate = str(uuid.uuid4())
    world.write(host, 'inventories', 'VGPU')
    world.write(host, 'traits', 'HW_GPU_API_VULKAN')
    world.write(host, 'aggregates', aggregate)
    assert placement.differences(host) == []
    placement.declare(replace(host, inventories=ROOM | {'DISK_GB': Inventory(5, 1.0, 5)}, traits={'OWNER_NOVA': True}))
    assert world.there(host) == {
        'inventories': {'VCPU', 'MEMORY_MB', 'DISK_GB', 'VGPU'},
        'traits': {'COMPUTE_NODE', 'OWNER_NOVA', 'HW_GPU_API_VULKAN'},
        'aggregates': {aggregate},
    }


def test_a_server_holds_something_and_gives_it_back(placement, host):
    wanted = holding(host, VCPU=2, MEMORY_MB=64)
    assert placement.allocations_of(wanted.consumer_id) == ConsumerAllocations(wanted.consumer_id)
    placement.set_allocations([wanted])
    held = placement.allocations_of(wanted.consumer_id)
    assert held == wanted._replace(generation=held.generation) and held.generation is not None
    assert placement.consumers_of(host.id) == {wanted.consumer_id: {'VCPU': 2, 'MEMORY_MB': 64}}
    placement.set_allocations([held._replace(resources={})])
    assert placement.allocations_of(wanted.consumer_id) == ConsumerAllocations(wanted.consumer_id)
    assert placement.consumers_of(host.id) == {}


def test_what_a_server_leaves_its_move_holds(world, placement, host):
    source = holding(host, VCPU=8)
    placement.set_allocations([source])
    there = world.host(new())
    held = placement.allocations_of(source.consumer_id)
    move = holding(host, VCPU=8)._replace(type='MIGRATION')
    placement.set_allocations([held._replace(resources={there.id: {'VCPU': 8}}), move])
    assert placement.consumers_of(host.id) == {move.consumer_id: {'VCPU': 8}}
    assert placement.consumers_of(there.id) == {source.consumer_id: {'VCPU': 8}}
    assert placement.allocations_of(move.consumer_id).type == 'MIGRATION'


def test_who_knows_something_older_is_refused(placement, host):
    wanted = holding(host, VCPU=1)
    placement.set_allocations([wanted])
    first = placement.allocations_of(wanted.consumer_id)
    with pytest.raises(ConcurrentUpdate):
        placement.set_allocations([wanted])
    placement.set_allocations([first._replace(resources={host.id: {'VCPU': 2}})])
    other = holding(host, VCPU=1)
    with pytest.raises(ConcurrentUpdate):
        placement.set_allocations([other, first._replace(resources={})])
    assert placement.consumers_of(host.id) == {wanted.consumer_id: {'VCPU': 2}}


def test_what_is_not_there_is_held_by_nobody(placement, host):
    for wanted in (holding(new(), VCPU=1), holding(host, VCPU=9), holding(host, DISK_GB=1)):
        with pytest.raises(PlacementRefused):
            placement.set_allocations([wanted])
    assert placement.consumers_of(new().id) == {}


def test_a_host_goes_when_nobody_holds_anything(placement, host):
    wanted = holding(host, VCPU=1)
    placement.set_allocations([wanted])
    with pytest.raises(PlacementRefused):
        placement.withdraw(host.id)
    placement.set_allocations([placement.allocations_of(wanted.consumer_id)._replace(resources={})])
    for _ in range(2):
        placement.withdraw(host.id)
        assert placement.differences(host) == ['provider']


def test_two_hosts_have_two_names(placement, host):
    with pytest.raises(PlacementRefused):
        placement.declare(replace(new(), name=host.name))


def test_an_aggregate_that_is_gone(world, placement, host):
    aggregate = str(uuid.uuid4())
    other = world.host(new())
    for each in (host, other):
        placement.declare(replace(each, aggregates={aggregate: True}))
    for _ in range(2):
        placement.leave_aggregate(aggregate, [host.id])
        assert world.there(host)['aggregates'] == set()
    assert world.there(other)['aggregates'] == {aggregate}


def test_two_processes_remove_a_host_from_an_aggregate(monkeypatch):
    host, aggregate, sent = str(uuid.uuid4()), str(uuid.uuid4()), []
    answers = {'?member_of=': {'resource_providers': [{'uuid': host}]}, '/aggregates': {'aggregates': ['other']}}

    def ask(self, method, path, body=None):
        sent.append((method, body))
        return next(answer for part, answer in answers.items() if part in path)

    monkeypatch.setattr(PlacementService, '_request', ask)
    PlacementService(config.load([])).leave_aggregate(aggregate, [host])
    assert sent[-1] == ('PUT', {'aggregates': ['other']})


BANDWIDTH = 'NET_BW_EGR_KILOBIT_PER_SEC'


def test_what_ports_ask_for_is_found_below_hosts(world, placement, host):
    trait = f'CUSTOM_PHYSNET_{uuid.uuid4().hex.upper()}'
    facts = {'inventories': {BANDWIDTH: Inventory(1000, 1.0, 1000)}, 'traits': {trait: True}}
    part, other = (world.part(host, replace(new(), **facts)) for _ in range(2))
    world.host(new())
    small, large = (ResourceRequest(f'p-{n}', {BANDWIDTH: n}, [trait]) for n in (600, 700))
    found = placement.candidates([small, large], [['p-600'], ['p-700']])
    assert set(found) == {host.id}
    chosen, resources = found[host.id]
    assert set(chosen) == {'p-600', 'p-700'} and set(chosen.values()) == set(resources) == {part.id, other.id}
    assert sorted(resources.values(), key=str) == [{BANDWIDTH: 600}, {BANDWIDTH: 700}]
    assert placement.candidates([small._replace(resources={BANDWIDTH: 1001})]) == {}
    for each in (part, other):
        placement.set_allocations([holding(each, **{BANDWIDTH: 500})])
    assert placement.candidates([small]) == {}


def test_what_flavors_require(world, placement, host):
    trait, other = (f'CUSTOM_{uuid.uuid4().hex.upper()}' for _ in range(2))
    facts = {'inventories': {'VGPU': Inventory(2, 1.0, 2)}, 'traits': {trait: True}}
    parts = [world.part(host, replace(new(), **facts)) for _ in range(2)]
    plain = world.part(world.host(new()), replace(new(), **facts | {'traits': {other: True}}))
    common = ResourceRequest('', {'VCPU': 1, 'VGPU': 1}, [trait], [other])
    candidate = placement.candidates([common])[host.id]
    assert candidate.resources[host.id] == {'VCPU': 1}
    assert [each for key, each in candidate.resources.items() if key in {part.id for part in parts}] == [{'VGPU': 1}]
    assert set(placement.candidates([common])) == {host.id}
    assert placement.candidates([common._replace(forbidden=[trait])]) == {}
    groups = [ResourceRequest('a', {'VGPU': 1}, [trait]), ResourceRequest('b', {'VGPU': 1}, [trait])]
    [found] = placement.candidates(groups, isolated=True).values()
    assert {found.chosen['a'], found.chosen['b']} == {part.id for part in parts}
    assert placement.candidates([*groups, groups[0]._replace(id='c')], isolated=True) == {}
    assert set(placement.candidates([*groups, groups[0]._replace(id='c')])) == {host.id}
    assert placement.traits_of(plain.id) >= {other} and placement.traits_of(str(uuid.uuid4())) == set()


def test_new_traits_and_resource_classes_are_created(world, placement, host):
    name = f'CUSTOM_{uuid.uuid4().hex.upper()}'
    declared = replace(host, traits={**TRAITS, name: True}, inventories={**ROOM, name: Inventory(2, 1.0, 2)})
    for _ in range(2):
        placement.declare(declared)
        assert placement.differences(declared) == []
    assert name in world.there(host)['traits'] and name in world.there(host)['inventories']


def test_nobody_has_what_placement_does_not_know(placement, host):
    unknown = f'CUSTOM_{uuid.uuid4().hex.upper()}'
    assert placement.candidates([ResourceRequest('', {'VCPU': 1})]) != {}
    assert placement.candidates([ResourceRequest('', {'VCPU': 1}, [unknown])]) == {}
    assert placement.candidates([ResourceRequest('', {unknown: 1})]) == {}
