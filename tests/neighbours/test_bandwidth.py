"""A server with a port that asks for bandwidth, in a cloud whose Neutron and Placement are real."""

import threading
import uuid

import pytest
import sqlalchemy as sa

from computeapi.db.tables import compute
from tests.api.servers.conftest import IMAGE, World, body
from tests.backends.implementations import ADMIN, ALICE
from tests.conftest import emptied
from tests.neighbours import cloud

BANDWIDTH = 'NET_BW_EGR_KILOBIT_PER_SEC'
TRAITS = ('CUSTOM_NETWORK_TUNNEL_PROVIDER', 'CUSTOM_VNIC_TYPE_NORMAL')
OPTIONS = """
[placement]
enabled = true
[simulated]
hosts = 2
host_name = {name}-
"""


@pytest.fixture
def conf(tmp_path):
    made = cloud.running().conf(text=OPTIONS.format(name=f'host-{uuid.uuid4()}'), network='neutron')
    for (group, option), value in {
        ('api', 'response_validation'): 'error',
        ('standalone', 'data_dir'): str(tmp_path),
        ('DEFAULT', 'vif_plugging_timeout'): 0,
    }.items():
        made.set_override(option, value, None if group == 'DEFAULT' else group)
    return made


@pytest.fixture
def store(databases, monkeypatch):
    found = emptied(databases('sqlite'))
    monkeypatch.setattr(found, 'noted', threading.Event())
    return found


@pytest.fixture
def apples():
    """The id of a project, which has nothing in Neutron at the end."""
    running = cloud.running()
    running.clean('network')
    yield running.project_id('apples')
    running.clean('network')


@pytest.fixture
def port(apples):
    """The id of a port that asks for 600 kbps."""
    neutron = cloud.running().service('network')

    def make(path, kind, /, **facts):
        return neutron.post(path, json={kind: facts}).json()[kind]['id']

    network = make('/networks', 'network', name='hers', project_id=apples)
    make('/subnets', 'subnet', network_id=network, cidr='10.8.0.0/24', ip_version=4, project_id=apples)
    policy = make('/qos/policies', 'policy', name='gold', project_id=apples)
    rule = {'min_kbps': 600, 'direction': 'egress'}
    make(f'/qos/policies/{policy}/minimum_bandwidth_rules', 'minimum_bandwidth_rule', **rule)
    return make('/ports', 'port', network_id=network, project_id=apples, qos_policy_id=policy)


@pytest.fixture
def parts(service, store):
    """By host, the id of what an agent of Neutron has declared there; nothing is left of it at the end."""
    real = cloud.running().service('placement')
    service.hosts.register()
    service.mirror.catch_up()
    rows = store.ask(lambda connection: connection.execute(sa.select(compute.hypervisors)).all())
    made = {row.host: str(uuid.uuid4()) for row in rows}
    for trait in TRAITS:
        real.put(f'/traits/{trait}', microversion='1.6')
    for row in rows:
        facts = {'uuid': made[row.host], 'name': f'{row.host}:agent:br-tun', 'parent_provider_uuid': row.uuid}
        real.post('/resource_providers', json=facts, microversion='1.20')
        path, generation = f'/resource_providers/{made[row.host]}', {'resource_provider_generation': 0}
        room = {'inventories': {BANDWIDTH: {'total': 1000}}, **generation}
        real.put(f'{path}/inventories', json=room, microversion='1.38')
        traits = {'traits': TRAITS, 'resource_provider_generation': 1}
        real.put(f'{path}/traits', json=traits, microversion='1.6')
    yield made
    for each in (*made.values(), *(row.uuid for row in rows)):
        for consumer_id in held(each):
            real.delete(f'/allocations/{consumer_id}')
        real.delete(f'/resource_providers/{each}')


def held(provider_id):
    """Who holds what of a provider."""
    answer = cloud.running().service('placement').get(f'/resource_providers/{provider_id}/allocations')
    return {key: each['resources'] for key, each in answer.json()['allocations'].items()}


def test_a_server_goes_where_its_port_has_its_bandwidth(api, service, port, parts):
    neutron, placement = (cloud.running().service(kind) for kind in ('network', 'placement'))
    alice, admin = (cloud.running().context(each).auth_token for each in (ALICE, ADMIN))
    world = World(service)
    world.image(IMAGE, context=world.admin, visibility='public')
    world.flavor()
    full, free = sorted(parts)
    other = {'allocations': {parts[full]: {'resources': {BANDWIDTH: 500}}}, 'project_id': 'p', 'user_id': 'u'}
    document = other | {'consumer_generation': None, 'consumer_type': 'OTHER'}
    placement.put(f'/allocations/{uuid.uuid4()}', json=document, microversion='1.38')
    answer = api.post('/servers', body(networks=[{'port': port}]), '2.72', as_=alice)
    assert answer.status == 202, answer
    server = answer.json['server']['id']
    settle(service)
    shown = api.get(f'/servers/{server}', as_=admin).json['server']
    assert (shown['status'], shown['OS-EXT-SRV-ATTR:host']) == ('ACTIVE', free), shown
    assert held(parts[free]) == {server: {BANDWIDTH: 600}}
    bound = neutron.get(f'/ports/{port}').json()['port']
    assert bound['binding:host_id'] == free and bound['status'] == 'ACTIVE'
    assert list(bound['binding:profile']['allocation'].values()) == [parts[free]]
    assert list(service.audit.placement()) == []
    api.delete(f'/servers/{server}', as_=alice)
    settle(service)
    service.mirror.catch_up()
    assert held(parts[free]) == {}
    left = neutron.get(f'/ports/{port}').json()['port']
    assert (left['device_id'], left['binding:profile']) == ('', {})


def settle(service):
    while service.worker.step():
        pass
