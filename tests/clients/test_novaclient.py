"""novaclient at the first version, at an important one, and at its newest."""

import time

import pytest
from keystoneauth1 import session
from keystoneauth1.identity import v3
from novaclient import client

pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.fixture(scope='module')
def login(cloud):
    password = v3.Password(
        f'{cloud.url}/identity/v3',
        username='admin',
        password=cloud.password,
        project_name='admin',
        user_domain_id='default',
        project_domain_id='default',
    )
    return session.Session(auth=password)


@pytest.mark.parametrize('version', ['2.1', '2.47', '2.96'])
def test_a_server_from_creation_to_deletion(login, version):
    nova = client.Client(version, session=login, region_name='RegionOne')
    network = nova.neutron.find_network('private')
    image = nova.glance.list()[0]
    flavor = nova.flavors.find(name='m1.tiny')
    server = nova.servers.create(f'nova{version}', image, flavor, nics=[{'net-id': network.id}])
    server = wait(nova, server, 'ACTIVE')
    assert server.networks['private']
    server.stop()
    assert wait(nova, server, 'SHUTOFF').status == 'SHUTOFF'
    nova.servers.set_meta(server, {'key': 'value'})
    assert nova.servers.get(server.id).metadata == {'key': 'value'}
    server.delete()
    until = time.monotonic() + 30
    while any(each.id == server.id for each in nova.servers.list()) and time.monotonic() < until:
        time.sleep(0.1)
    assert all(each.id != server.id for each in nova.servers.list())


def test_the_service_type_of_the_first_days_of_2_1(login):
    nova = client.Client('2.1', session=login, region_name='RegionOne', service_type='computev21')
    assert nova.flavors.find(name='m1.tiny').id == '1' and nova.servers.list() == []


def wait(nova, server, status):
    until = time.monotonic() + 30
    while time.monotonic() < until:
        server = nova.servers.get(server.id)
        if server.status == status:
            return server
        assert server.status != 'ERROR', server.fault
        time.sleep(0.1)
    raise AssertionError(server.status)
