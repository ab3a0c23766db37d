"""Servers are placed on hosts where a real Placement has the resources and traits that their flavors require."""

import uuid

import pytest

from computeapi.backends.placement import Inventory, Provider
from tests.api.servers.conftest import BOB, body
from tests.neighbours import cloud
from tests.neighbours.test_placement import act, conf, ids, line, seen, store, there, world

__all__ = ['act', 'conf', 'ids', 'line', 'seen', 'store', 'world']

NAMES = [f'CUSTOM_{uuid.uuid4().hex.upper()}' for _ in range(3)]
FPGA, FAST, SLOW = NAMES


@pytest.fixture
def card(service, ids, seen):
    """The ID of a provider of one FPGA below the second host, which has a trait; the first host has another."""
    seen()
    real, placement = cloud.running().service('placement'), service.mirror.placement
    (slow, slow_id), (fast, fast_id) = ids.items()
    placement.declare(Provider(slow_id, slow, {}, {SLOW: True}, {}))
    placement.declare(Provider(fast_id, fast, {}, {FAST: True}, {}))
    made = str(uuid.uuid4())
    facts = {'uuid': made, 'name': made, 'parent_provider_uuid': fast_id}
    real.post('/resource_providers', json=facts, microversion='1.20')
    placement.declare(Provider(made, made, {FPGA: Inventory(1, 1.0, 1)}, {}, {}))
    yield made
    for consumer_id in there(made):
        real.delete(f'/allocations/{consumer_id}')
    real.delete(f'/resource_providers/{made}')


@pytest.fixture
def boot(api, service, world):
    def booted(number, **extra_specs):
        specs = {key.replace('__', ':'): value for key, value in extra_specs.items()}
        world.flavor(number, extra_specs=specs)
        server = api.post('/servers', body(flavorRef=number), as_=BOB).json['server']['id']
        while service.worker.step():
            pass
        shown = api.get(f'/servers/{server}').json['server']
        return server, shown['status'], shown['OS-EXT-SRV-ATTR:host']

    return booted


def test_what_flavors_and_images_require(api, service, world, ids, card, seen, boot, act):
    slow, fast = ids
    required = {f'trait__{FAST}': 'required', f'resources1__{FPGA}': '1'}
    server, *where = boot('10', **required, resources__VCPU='0')
    assert where == ['ACTIVE', fast]
    assert there(card) == {server: {FPGA: 1}}
    assert seen()[1] == {server: {'MEMORY_MB': 64, 'DISK_GB': 1}} and list(service.audit.placement()) == []
    refused, *where = boot('11', **required)
    assert where == ['ERROR', None]
    fault = api.get(f'/servers/{refused}').json['server']['fault']['message']
    assert fault.endswith('2 hosts to begin with; Required resources and traits: 0 hosts')
    assert boot('12', **{f'trait__{FAST}': 'forbidden'})[1:] == ('ACTIVE', slow)
    assert boot('13', trait__CUSTOM_NOBODY_KNOWS_IT='required')[1:] == ('ERROR', None)
    act(server, 'rebuild', {'imageRef': world.image(properties={f'trait:{FAST}': 'required'})})
    assert api.get(f'/servers/{server}').json['server']['status'] == 'ACTIVE'
    act(server, 'migrate', as_='admin:project')
    assert api.get(f'/servers/{server}').json['server']['OS-EXT-SRV-ATTR:host'] == fast
    act(server, 'rebuild', {'imageRef': world.image(properties={f'trait:{SLOW}': 'required'})})
    assert api.get(f'/servers/{server}').json['server']['status'] == 'ERROR'
    api.delete(f'/servers/{server}', as_=BOB)
    while service.worker.step():
        pass
    assert boot('14', **required)[1:] == ('ACTIVE', fast)
