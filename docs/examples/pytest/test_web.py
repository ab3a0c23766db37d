import pytest
from openstack.exceptions import ResourceFailure
from web import boot

CIRROS = {'image': 'cirros-0.6.3-x86_64-disk', 'flavor': 'm1.tiny'}


def test_a_server_boots(openstack_cloud):
    server = boot(openstack_cloud.connection(), 'web', **CIRROS)
    assert list(server.addresses) == ['web'] and server.key_name == 'web'


def test_it_retries_while_the_cloud_is_busy(openstack_cloud):
    openstack_cloud.faults.add(operation='POST /servers', status=503, count=2)
    boot(openstack_cloud.connection(), 'web', **CIRROS)
    assert openstack_cloud.journal.count('POST /servers') == 3


def test_a_server_that_fails_to_boot_is_an_error(openstack_cloud):
    openstack_cloud.faults.add(hypervisor='spawn', effect='fail', server='web')
    with pytest.raises(ResourceFailure):
        boot(openstack_cloud.connection(), 'web', **CIRROS)
