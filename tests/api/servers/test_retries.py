"""If a host fails to boot a new server, others are tried."""

import pytest

from computeapi.backends.hypervisor import Unfit
from computeapi.backends.hypervisor.simulated import SimulatedHypervisor
from computeapi.db import allocations
from computeapi.errors import Invalid, PortBindingFailed
from tests.api.servers.conftest import BOB, NETWORK, ROOT_VOLUME
from tests.invariants import problems

HOSTS = ('compute1', 'compute2', 'compute3', 'compute4')
ADMIN = 'admin:project'


@pytest.fixture
def cloud(world):
    world.service.conf.set_override('hosts', 4, 'simulated')
    world.service.hosts.register()
    return world


@pytest.fixture
def fail(service, cloud):
    """fail('compute1'): booting fails on these hosts."""
    return lambda *hosts: service.conf.set_override('fail', [f'spawn@{host}' for host in hosts], 'simulated')


@pytest.fixture
def boot(create, settle):
    def booted(version='2.74', as_=BOB, **kwargs):
        answer = create(version, as_=as_, **kwargs)
        assert answer.status == 202, answer
        settle()
        return answer.json['server']['id']

    return booted


@pytest.fixture
def fault(api):
    return lambda server: api.get(f'/servers/{server}', as_=ADMIN).json['server'].get('fault', {}).get('message')


@pytest.fixture
def events(api):
    """events(server): the host and the result of each attempt, in order."""

    def look(server):
        path = f'/servers/{server}/os-instance-actions'
        [action] = api.get(path, '2.51', as_=ADMIN).json['instanceActions']
        found = api.get(f'{path}/{action["request_id"]}', '2.84', as_=ADMIN).json['instanceAction']['events']
        assert {each['event'] for each in found} == {'compute__do_build_and_run_instance'}
        return [(each['host'], each['result']) for each in reversed(found)]

    return look


def nothing_is_left(world, server):
    assert world.networks.ports(world.admin, server_ids=[server]) == []
    assert world.store.query(allocations.hosts_of, server) == set()
    return problems(world.store) == []


@pytest.mark.parametrize('number', [1, 2])
def test_another_host_boots_it(boot, state, fail, cloud, fault, events, number):
    fail(*HOSTS[:number])
    given, data = cloud.port(), cloud.volume()
    disks = [
        ROOT_VOLUME,
        {'source_type': 'volume', 'destination_type': 'volume', 'uuid': data, 'boot_index': 1},
    ]
    networks = [{'uuid': NETWORK}, {'port': given}]
    server = boot(networks=networks, block_device_mapping_v2=disks, imageRef=None)
    status, *_, host = state(server)
    assert status == 'ACTIVE' and host not in HOSTS[:number] and fault(server) is None
    ports = cloud.networks.ports(cloud.admin, server_ids=[server])
    assert [port.host for port in ports] == [host, host] and given in [port.id for port in ports]
    attachments = cloud.volumes.attachments(cloud.admin, server_ids=[server])
    assert len(attachments) == 2 and all(each.is_used for each in attachments)
    assert cloud.store.query(allocations.hosts_of, server) == {host} and problems(cloud.store) == []
    tries = events(server)
    assert tries[-1] == (host, 'Success') and {result for _, result in tries[:-1]} <= {'Error'}
    assert {each for each, _ in tries[:-1]} <= set(HOSTS[:number])


def test_enough_is_enough(boot, state, fail, cloud, fault, events, api):
    fail(*HOSTS)
    server = boot()
    assert state(server)[0::4] == ('ERROR', None) and nothing_is_left(cloud, server)
    assert fault(server) == (
        f'Exceeded maximum number of retries. Exceeded max scheduling attempts 3 for instance {server}. '
        f'Last exception: The simulated hypervisor was told to fail: spawn@{events(server)[-1][0]}'
    )
    assert len({host for host, _ in events(server)}) == 3


def test_there_may_be_no_other(boot, state, fail, cloud, fault, service):
    service.conf.set_override('max_attempts', 10, 'scheduler')
    fail(*HOSTS)
    server = boot()
    assert fault(server) == (
        'Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for instance '
        f'{server}.'
    )
    assert nothing_is_left(cloud, server)


def test_there_is_to_be_no_other(boot, fail, cloud, fault, service):
    service.conf.set_override('max_attempts', 1, 'scheduler')
    fail(*HOSTS)
    server = boot()
    assert fault(server).startswith('The simulated hypervisor was told to fail') and nothing_is_left(cloud, server)


def test_a_host_that_is_named_is_the_only_one(boot, state, fail, cloud, fault):
    fail('compute2')
    named = boot(as_=ADMIN, host='compute2', networks='none')
    assert 'Exhausted all hosts available' in fault(named) and state(named)[0] == 'ERROR'
    forced = boot(as_=ADMIN, availability_zone='nova:compute2', networks='none')
    assert fault(forced).startswith('The simulated hypervisor was told to fail') and state(forced)[0] == 'ERROR'


def test_a_server_without_a_host_shows_the_zone_that_was_asked_for(api, create, fail, settle):
    fail(*HOSTS)
    server = create(availability_zone='nova').json['server']['id']
    for status in ('BUILD', 'ERROR'):
        shown = api.get(f'/servers/{server}', as_=ADMIN).json['server']
        zone = shown['OS-EXT-AZ:availability_zone']
        assert (shown['status'], shown['OS-EXT-SRV-ATTR:host'], zone) == (status, None, 'nova')
        settle()


def test_a_host_on_which_ports_cannot_be_bound(boot, state, cloud, fault, events, monkeypatch):
    create = cloud.networks.create_port

    def create_port(*args, host, **kwargs):
        port = create(*args, host=host, **kwargs)
        if host in HOSTS[:2]:
            raise PortBindingFailed(id=port.id, host=host)
        return port

    monkeypatch.setattr(cloud.networks, 'create_port', create_port)
    server = boot()
    status, *_, host = state(server)
    assert status == 'ACTIVE' and host not in HOSTS[:2] and len(events(server)) > 1
    assert [port.host for port in cloud.networks.ports(cloud.admin, server_ids=[server])] == [host]
    assert problems(cloud.store) == []


def test_what_would_go_wrong_everywhere_is_not_tried_elsewhere(boot, cloud, fault, events, monkeypatch):
    def reserve(*args, **kwargs):
        raise Invalid('no')

    monkeypatch.setattr(cloud.volumes, 'reserve', reserve)
    server = boot(block_device_mapping_v2=[ROOT_VOLUME], imageRef=None)
    assert fault(server) == 'no' and len(events(server)) == 1


def test_what_no_host_can_do_is_tried_once(boot, state, cloud, fault, events, monkeypatch):
    def spawn(*args, **kwargs):
        raise Unfit('The image is none.')

    monkeypatch.setattr(SimulatedHypervisor, 'spawn', spawn)
    server = boot()
    assert fault(server) == f'Build of instance {server} aborted: The image is none.' and len(events(server)) == 1
    assert state(server)[0] == 'ERROR' and nothing_is_left(cloud, server)


def test_who_deletes_it_does_not_wait_for_another_host(api, create, fail, cloud, service, settle):
    fail(*HOSTS)
    server = create('2.74').json['server']['id']
    service.worker.step()
    assert api.delete(f'/servers/{server}', as_=BOB).status == 204
    settle()
    assert api.get(f'/servers/{server}').status == 404 and nothing_is_left(cloud, server)
