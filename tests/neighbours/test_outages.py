"""Another service becomes unavailable during boots and deletions, and comes back: every server settles, nothing is
left."""

import random
import threading
import time
from urllib.parse import urlsplit

import pytest

from computeapi.compute.notifications.outbox import NOBODY
from computeapi.main import Service
from computeapi.pipeline import load
from tests.backends.implementations import ALICE
from tests.conftest import Client, emptied
from tests.neighbours import cloud as clouds
from tests.proxy import Proxy

SERVICES = {'image': ('Glance', 'glance'), 'network': ('Neutron', 'neutron'), 'block-storage': ('Cinder', 'cinder')}
KEYSTONE = 'identity'
OPTIONS = """
[DEFAULT]
workers = 4
task_sweep_interval = 0.5
neighbour_timeout = {timeout}
vif_plugging_timeout = 0
[glance]
endpoint_override = {image}
connect_retries = 0
[neutron]
endpoint_override = {network}
connect_retries = 0
[cinder]
endpoint_override = {block-storage}
connect_retries = 0
[quota]
instances = -1
cores = -1
ram = -1
[simulated]
passing_seconds = 0.1
"""
SERVERS = 10
SETTLE_SECONDS = 120


class Compute:
    """The service with a proxy in front of each other service, and its workers, from Alice's point of view."""

    def __init__(self, cloud, store, timeout):
        self.cloud, self.store = cloud, store
        endpoints = {kind: root(cloud.service(kind)) for kind in SERVICES}
        self.lines = {kind: line(url) for kind, url in {**endpoints, KEYSTONE: cloud.url}.items()}
        reached = {kind: through(url, self.lines[kind]) for kind, url in endpoints.items()}
        text = OPTIONS.format(timeout=timeout, **reached)
        url = through(cloud.url, self.lines[KEYSTONE])
        backends = {'identity': 'keystone', 'image': 'glance', 'network': 'neutron', 'volume': 'cinder'}
        self.service = Service(cloud.conf(text=text, url=url, **backends), store)
        self.service.start()
        alice = cloud.context(ALICE)
        self.project_id = alice.project_id
        self.api = Client(load(self.service, 'compute'), token=alice.auth_token)
        self.image, self.network = self.make_image(), self.make_network()
        self.make_flavor()

    def make_image(self):
        glance = self.cloud.service('image', ALICE)
        facts = {'name': 'tiny', 'disk_format': 'raw', 'container_format': 'bare'}
        image = glance.post('/images', json=facts).json()['id']
        headers = {'Content-Type': 'application/octet-stream'}
        glance.put(f'/images/{image}/file', data=b'\0' * 1024, headers=headers)
        return image

    def make_network(self):
        neutron = self.cloud.service('network', ALICE)
        network = neutron.post('/networks', json={'network': {'name': 'hers'}}).json()['network']['id']
        subnet = {'network_id': network, 'cidr': '10.9.0.0/24', 'ip_version': 4}
        neutron.post('/subnets', json={'subnet': subnet})
        return network

    def make_flavor(self):
        self.service.cloud.flavors.create(
            NOBODY,
            'tiny',
            flavorid='1',
            memory_mb=64,
            vcpus=1,
            root_gb=0,
            ephemeral_gb=0,
            swap=0,
            rxtx_factor=1.0,
            is_public=True,
            description=None,
        )

    def body(self, number):
        disk = {
            'boot_index': 0,
            'source_type': 'image',
            'destination_type': 'volume',
            'uuid': self.image,
            'volume_size': 1,
            'delete_on_termination': True,
        }
        facts = {'name': f'server-{number}', 'flavorRef': '1', 'networks': [{'uuid': self.network}]}
        return {'server': facts | {'block_device_mapping_v2': [disk]}}

    def boot(self, number):
        """Send the request until it is accepted; returns the server's ID."""
        return self.asked(lambda: self.api.post('/servers', self.body(number), '2.79')).json['server']['id']

    def delete(self, server):
        self.asked(lambda: self.api.delete(f'/servers/{server}'))

    def asked(self, ask):
        deadline = time.monotonic() + SETTLE_SECONDS
        while (answer := ask()).status == 503 and time.monotonic() < deadline:
            time.sleep(0.2)
        assert answer.status in (202, 204), answer
        return answer

    def servers(self):
        return self.api.get('/servers/detail', '2.79').json['servers']

    def settle(self):
        """Wait until no work is in progress, and none is queued."""
        self.rest()
        until(self.service.platform.tasks.idle, self.servers)

    def rest(self):
        """Wait until no server has a task state."""
        until(lambda: not any(each['OS-EXT-STS:task_state'] for each in self.servers()), self.servers)

    def held(self):
        """The servers that have ports and volumes in the other services, and the number of volumes."""
        neutron, cinder = self.cloud.service('network', ALICE), self.cloud.service('block-storage', ALICE)
        ports = neutron.get('/ports').json()['ports']
        volumes = cinder.get('/volumes/detail').json()['volumes']
        return (
            sorted(port['device_id'] for port in ports if port['device_owner'].startswith('compute:')),
            sorted(each['server_id'] for volume in volumes for each in volume['attachments']),
            len(volumes),
        )

    def end(self):
        for each in self.lines.values():
            each.go_on()
        self.service.stop()
        for each in self.lines.values():
            each.close()


def until(is_so, what):
    deadline = time.monotonic() + SETTLE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, what()
        time.sleep(0.2)


def root(adapter):
    found = getattr(adapter, 'adapter', adapter)
    return found.get_endpoint()


def line(url):
    parts = urlsplit(url)
    return Proxy(parts.hostname, parts.port)


def through(url, proxy):
    return urlsplit(url)._replace(netloc=f'127.0.0.1:{proxy.port}').geturl()


@pytest.fixture
def compute(stores, request):
    cloud = clouds.running()
    cloud.clean()
    made = Compute(cloud, emptied(stores('sqlite')), getattr(request, 'param', 300))
    yield made
    made.end()
    cloud.clean()


def is_there(compute, alive):
    """The other services have exactly the resources of these servers."""
    deadline = time.monotonic() + 30
    expected = (sorted(alive), sorted(alive), len(alive))
    while compute.held() != expected and time.monotonic() < deadline:
        # Cinder deletes volumes asynchronously.
        time.sleep(0.5)
    assert compute.held() == expected


@pytest.mark.parametrize('kind', [*SERVICES, KEYSTONE])
def test_boots_and_deletions_go_on_when_it_is_back(compute, kind):
    old = [compute.boot(number) for number in range(SERVERS // 2)]
    compute.settle()
    outage = threading.Thread(target=fail, args=(compute.lines[kind],))
    outage.start()
    new = []
    for number, server in enumerate(old):
        compute.delete(server)
        new.append(compute.boot(number))
    outage.join()
    compute.settle()
    assert {each['id']: each['status'] for each in compute.servers()} == dict.fromkeys(new, 'ACTIVE')
    is_there(compute, new)
    for server in new:
        compute.delete(server)
    compute.settle()
    is_there(compute, [])


def fail(proxy):
    """Unavailable for a while, three times."""
    for _ in range(3):
        time.sleep(random.uniform(0, 1))
        proxy.refuse()
        time.sleep(random.uniform(0.5, 3))
        proxy.go_on()


@pytest.mark.parametrize('compute', [1], indirect=True)
@pytest.mark.parametrize('kind', ['network', 'block-storage'])
def test_who_stays_away_is_named_and_nothing_is_left(compute, kind):
    old = [compute.boot(number) for number in range(3)]
    compute.settle()
    new = [compute.boot(number) for number in range(3)]
    for server in old:
        compute.delete(server)
    compute.lines[kind].refuse()
    compute.rest()
    broken = [each for each in compute.servers() if each['status'] == 'ERROR']
    assert all(SERVICES[kind][0] in each['fault']['message'] for each in broken)
    compute.lines[kind].go_on()
    compute.settle()
    alive = [each['id'] for each in compute.servers() if each['status'] == 'ACTIVE']
    for server in set(old + new) - set(alive):
        compute.api.delete(f'/servers/{server}')
    compute.settle()
    is_there(compute, alive)


@pytest.mark.parametrize('kind', [*SERVICES, KEYSTONE])
def test_a_request_that_needs_it_is_told_who_is_away(compute, kind):
    compute.lines[kind].refuse()
    if kind == KEYSTONE:
        compute.api.token = 'gAAAAA-never-seen-before'
    # Only the worker calls Cinder for a server.
    volumes, servers = ('GET', '/os-volumes', '2.35'), ('POST', '/servers', '2.79', compute.body(1))
    answer = compute.api.request(*(volumes if kind == 'block-storage' else servers))
    name = SERVICES[kind][0] if kind in SERVICES else 'Keystone'
    assert answer.status == 503
    assert name in answer.text
    compute.lines[kind].go_on()
