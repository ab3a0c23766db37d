"""Apache Libcloud, a client that shares no code with OpenStack's own."""

import pytest
from libcloud.compute.providers import get_driver
from libcloud.compute.types import NodeState, Provider

pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.fixture(scope='module')
def driver(cloud):
    return get_driver(Provider.OPENSTACK)(
        'admin',
        cloud.password,
        ex_force_auth_url=f'{cloud.url}/identity',
        ex_force_auth_version='3.x_password',
        ex_tenant_name='admin',
        ex_domain_name='Default',
        ex_force_service_region='RegionOne',
        api_version='2.2',
    )


def named(found, name):
    return next(each for each in found if each.name == name)


@pytest.fixture
def node(driver):
    node = driver.create_node(
        name='libcloud',
        size=named(driver.list_sizes(), 'm1.tiny'),
        image=named(driver.list_images(), 'cirros-0.6.3-x86_64-disk'),
        networks=[named(driver.ex_list_networks(), 'private')],
    )
    ((node, addresses),) = driver.wait_until_running([node], wait_period=0.1, timeout=60, ssh_interface='private_ips')
    assert addresses == node.private_ips != []
    yield node
    assert driver.destroy_node(node)


def test_a_node_and_its_life(driver, node):
    assert named(driver.list_nodes(), 'libcloud').id == node.id
    assert driver.reboot_node(node)
    driver.wait_until_running([node], wait_period=0.1, timeout=60, ssh_interface='private_ips')
    assert driver.ex_get_node_details(node.id).state == NodeState.RUNNING
    assert driver.ex_get_metadata(node) == {}
    assert driver.ex_set_metadata(node, {'role': 'web'}) == {'role': 'web'}


def test_a_key_pair(driver):
    pair = driver.create_key_pair('libcloud')
    assert 'PRIVATE KEY' in pair.private_key
    assert [each.name for each in driver.list_key_pairs()] == ['libcloud']
    assert driver.delete_key_pair(pair)
