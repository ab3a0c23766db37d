"""A server with a port that requests bandwidth, in a cloud with a real Neutron and Placement."""

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
def store(stores, monkeypatch):
    found = emptied(stores('sqlite'))
    monkeypatch.setattr(found, 'noted', threading.Event())
    return found


@pytest.fixture
def apples():
    """The ID of a project, whose resources in Neutron are deleted at the end."""
    running = cloud.running()
    running.clean('network')
    yield running.project_id('apples')
    running.clean('network')


@pytest.fixture
def port(apples):
    """The ID of a port that requests 600 kbps."""
    neutron = cloud.running().service('network')

    def make(path, kind, /, **kwargs):
        return neutron.post(path, json={kind: kwargs}).json()[kind]['id']

    network = make('/networks', 'network', name='hers', project_id=apples)
    make('/subnets', 'subnet', network_id=network, cidr='10.8.0.0/24', ip_version=4, project_id=apples)
    policy = make('/qos/policies', 'policy', name='gold', project_id=apples)
    rule = {'min_kbps': 600, 'direction': 'egress'}
    make(f'/qos/policies/{policy}/minimum_bandwidth_rules', 'minimum_bandwidth_rule', **rule)
    return make('/ports', 'port', network_id=network, project_id=apples, qos_policy_id=policy)


@pytest.fixture
def parts(service, store):
    """By host, the ID of the provider declared by a Neutron agent there; all are deleted at the end."""
    real = cloud.running().service('placement')
    service.hosts.register()
    service.mirror.catch_up()
    rows = store.query(lambda connection: connection.execute(sa.select(compute.hypervisors)).all())
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
    """The allocations of a provider."""
    answer = cloud.running().service('placement').get(f'/resource_providers/{provider_id}/allocations')
    return {key: each['resources'] for key, each in answer.json()['allocations'].items()}


def take(provider_id):
    """Another consumer takes so much that too little is left for the port; returns its ID."""
    other = {'allocations': {provider_id: {'resources': {BANDWIDTH: 500}}}, 'project_id': 'p', 'user_id': 'u'}
    document, consumer_id = other | {'consumer_generation': None, 'consumer_type': 'OTHER'}, str(uuid.uuid4())
    answer = cloud.running().service('placement').put(f'/allocations/{consumer_id}', json=document, microversion='1.38')
    assert answer.status_code == 204, answer.text
    return consumer_id


def leave(consumer_id):
    cloud.running().service('placement').delete(f'/allocations/{consumer_id}')


def settle(service):
    while service.worker.step():
        pass
    service.mirror.catch_up()


class Rig:
    """Alice's servers, and the state of the port that requests bandwidth."""

    def __init__(self, api, service, port, parts):
        self.api, self.service, self.port, self.parts = api, service, port, parts
        self.full, self.free = sorted(parts)
        running = cloud.running()
        self.neutron = running.service('network')
        self.alice, self.admin = (running.context(each).auth_token for each in (ALICE, ADMIN))
        self.world = World(service)
        self.world.image(IMAGE, context=self.world.admin, visibility='public')
        self.world.flavor()

    def create(self, networks):
        """Creates a server; returns its ID when the work is done."""
        answer = self.api.post('/servers', body(networks=networks), '2.72', as_=self.alice)
        assert answer.status == 202, answer
        settle(self.service)
        return answer.json['server']['id']

    def boot(self):
        """Creates a server with the port, on the host that is not full at that time."""
        consumer = take(self.parts[self.full])
        server = self.create([{'port': self.port}])
        assert self.shown(server) == ('ACTIVE', self.free)
        leave(consumer)
        return server

    def act(self, server, **action):
        answer = self.api.post(f'/servers/{server}/action', action, '2.72', as_=self.admin)
        assert answer.status in (200, 202, 204), answer
        settle(self.service)

    def shown(self, server):
        found = self.api.get(f'/servers/{server}', as_=self.admin).json['server']
        return found['status'], found['OS-EXT-SRV-ATTR:host']

    def bound(self):
        return self.neutron.get(f'/ports/{self.port}').json()['port']

    def agrees(self, server, host):
        """Only this server has bandwidth allocated, on that host, and its port is bound there and refers to the
        provider."""
        other = self.full if host == self.free else self.free
        assert held(self.parts[host]) == {server: {BANDWIDTH: 600}} and held(self.parts[other]) == {}
        port = self.bound()
        assert port['binding:host_id'] == host
        assert list(port['binding:profile']) == ['allocation']
        assert list(port['binding:profile']['allocation'].values()) == [self.parts[host]]
        assert list(self.service.audit.placement()) == []


@pytest.fixture
def rig(api, service, port, parts):
    return Rig(api, service, port, parts)


def test_a_server_goes_where_its_port_has_its_bandwidth(api, service, rig):
    server = rig.boot()
    rig.agrees(server, rig.free)
    assert rig.bound()['status'] == 'ACTIVE'
    api.delete(f'/servers/{server}', as_=rig.alice)
    settle(service)
    assert held(rig.parts[rig.free]) == {}
    left = rig.bound()
    assert (left['device_id'], left['binding:profile']) == ('', {})


LIVE = {'os-migrateLive': {'host': None, 'block_migration': 'auto'}}


@pytest.mark.parametrize('settled', ['confirmResize', 'revertResize'])
def test_a_cold_migration_takes_it_along(rig, settled):
    server = rig.boot()
    rig.act(server, migrate=None)
    assert rig.shown(server) == ('VERIFY_RESIZE', rig.full)
    assert held(rig.parts[rig.full]) == {server: {BANDWIDTH: 600}}
    assert list(held(rig.parts[rig.free]).values()) == [{BANDWIDTH: 600}]
    rig.act(server, **{settled: None})
    rig.agrees(server, rig.full if settled == 'confirmResize' else rig.free)


@pytest.mark.parametrize('fails', [False, True])
def test_a_live_migration_takes_it_along_or_leaves_it(rig, service, fails):
    server = rig.boot()
    service.conf.set_override('fail', ['live_migrate'] if fails else [], 'simulated')
    rig.act(server, **LIVE)
    host = rig.free if fails else rig.full
    assert rig.shown(server) == ('ACTIVE', host)
    rig.agrees(server, host)


def test_it_does_not_go_where_there_is_not_enough(rig):
    server = rig.boot()
    consumer = take(rig.parts[rig.full])
    rig.act(server, **LIVE)
    assert rig.shown(server) == ('ACTIVE', rig.free)
    leave(consumer)
    rig.agrees(server, rig.free)


def test_an_evacuated_server_holds_it_elsewhere(rig):
    server = rig.boot()
    rig.world.down(rig.free)
    rig.act(server, evacuate={})
    assert rig.shown(server) == ('ACTIVE', rig.full)
    rig.agrees(server, rig.full)


def test_a_shelved_server_holds_nothing(rig):
    server = rig.boot()
    rig.act(server, shelve=None)
    assert rig.shown(server) == ('SHELVED_OFFLOADED', None)
    assert held(rig.parts[rig.free]) == {} and rig.bound()['binding:profile'] == {}
    consumer = take(rig.parts[rig.free])
    rig.act(server, unshelve=None)
    leave(consumer)
    rig.agrees(server, rig.full)


def test_a_port_is_attached_where_there_is_enough(api, rig):
    server = rig.create('none')
    _, host = rig.shown(server)
    consumer = take(rig.parts[host])
    wanted = {'interfaceAttachment': {'port_id': rig.port}}
    answer = api.post(f'/servers/{server}/os-interface', wanted, '2.72', as_=rig.alice)
    assert answer.status == 400 and 'Failed to allocate additional resources' in answer.text
    settle(rig.service)
    leave(consumer)
    assert api.post(f'/servers/{server}/os-interface', wanted, '2.72', as_=rig.alice).status == 200
    settle(rig.service)
    rig.agrees(server, host)
