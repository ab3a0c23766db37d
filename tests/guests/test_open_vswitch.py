"""Guests on an Open vSwitch with its database and os-vif, in a network namespace of the tests' own, with a fake
Neutron."""

import json
import os
import signal
import subprocess
import time
import uuid
from contextlib import ExitStack

import os_vif
import pytest
from oslo_config import cfg
from vif_plug_ovs.ovsdb.impl_idl import NeutronOvsdbIdl

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.drivers import GuestServices, local_driver
from computeapi.backends.hypervisor.qemu.open_vswitch import OpenVSwitch
from computeapi.backends.network import PortBinding
from computeapi.errors import PortNotFound
from tests.guests.machine import SECONDS
from tests.guests.test_bridges import run, started

SCHEMA = '/usr/share/openvswitch/vswitch.ovsschema'
DATABASE = 'tcp:127.0.0.1:6640'


@pytest.fixture
def switch(namespace, tmp_path):
    """A userspace switch, which needs no kernel module."""
    folder = tmp_path / 'switch'
    folder.mkdir()
    (folder / 'log').mkdir()
    paths = {'OVS_RUNDIR': folder, 'OVS_DBDIR': folder, 'OVS_LOGDIR': folder / 'log'}
    environment = os.environ | {name: str(path) for name, path in paths.items()}

    def begin(program, *arguments):
        return subprocess.Popen([program, *arguments], env=environment, stderr=subprocess.DEVNULL)

    subprocess.run(['ovsdb-tool', 'create', folder / 'conf.db', SCHEMA], check=True)
    with ExitStack() as stack:
        for program, *arguments in (
            ('ovsdb-server', folder / 'conf.db', '--remote=ptcp:6640:127.0.0.1'),
            ('ovs-vswitchd', DATABASE),
        ):
            process = stack.enter_context(begin(program, *arguments))
            stack.callback(process.send_signal, signal.SIGTERM)
        vsctl('--no-wait', 'init')
        vsctl('add-br', 'br-int', '--', 'set', 'bridge', 'br-int', 'datapath_type=netdev')
        yield
        forget_connection()
        vsctl('del-br', 'br-int')


def forget_connection():
    """os-vif keeps a connection as long as the process runs, and the next test has another switch."""
    if NeutronOvsdbIdl._ovsdb_connection is not None:
        NeutronOvsdbIdl._ovsdb_connection.stop()
        NeutronOvsdbIdl._ovsdb_connection = None
    os_vif.initialize(reset=True)


def vsctl(*arguments):
    return run('ovs-vsctl', f'--db={DATABASE}', f'--timeout={SECONDS}', '--retry', *arguments)


class Neutron:
    def __init__(self):
        self.bound, self.network_id = {}, str(uuid.uuid4())

    def port(self, host='compute', vif_type='ovs', **details):
        port_id = str(uuid.uuid4())
        details = {'port_filter': True, 'bridge_name': 'br-int', 'datapath_type': 'netdev', **details}
        self.bound[port_id, host] = PortBinding(self.network_id, uuid.uuid4().hex, 1450, vif_type, details)
        mac = ':'.join(['fa', '16', '3e', port_id[:2], port_id[2:4], port_id[4:6]])
        return {'port_id': port_id, 'mac_address': mac}

    def binding(self, context, port_id, host):
        assert context.is_admin
        if (port_id, host) not in self.bound:
            raise PortNotFound(id=port_id)
        return self.bound[port_id, host]


@pytest.fixture
def neutron():
    return Neutron()


@pytest.fixture
def switched(switch, tmp_path, neutron):
    return OpenVSwitch(tmp_path / 'networks', neutron, 'compute', DATABASE)


def ports():
    return vsctl('list-ports', 'br-int').split()


def link(name):
    return json.loads(run('ip', '-json', 'link', 'show', 'dev', name))[0]


def links():
    return {each['ifname'] for each in json.loads(run('ip', '-json', 'link'))}


def test_a_port_is_in_the_switch_under_the_name_that_neutron_looks_for(switched, neutron):
    port, server_id = neutron.port(), str(uuid.uuid4())
    switched.set_up(server_id, port)
    switched.set_up(server_id, port)
    [tap] = ports()
    assert tap == switched.netdev(server_id, port)['ifname'] == f'tap{port["port_id"][:11]}'
    told = vsctl('get', 'interface', tap, 'external_ids')
    for name, value in {'iface-id': port['port_id'], 'attached-mac': port['mac_address'], 'vm-uuid': server_id}.items():
        assert f'{name}="{value}"' in told
    assert link(tap)['mtu'] == 1450
    assert 'tx_packets' in switched.counters(server_id, port)
    neutron.bound.clear()
    switched.tear_down(server_id, port)
    switched.tear_down(server_id, port)
    assert ports() == []
    assert tap not in links()


def test_ports_come_and_go_while_neutron_is_slow_to_answer_for_another(switched, neutron, monkeypatch):
    port, slow, server_id, ask = neutron.port(), neutron.port(), str(uuid.uuid4()), neutron.binding
    switched.set_up(server_id, port)

    def slowly(*arguments):
        switched.tear_down(server_id, port)
        return ask(*arguments)

    monkeypatch.setattr(neutron, 'binding', slowly)
    switched.set_up(str(uuid.uuid4()), slow)
    assert ports() == [f'tap{slow["port_id"][:11]}']


def test_where_neutron_filters_by_the_rules_of_bridges_one_is_in_between(switched, neutron):
    port, server_id = neutron.port(ovs_hybrid_plug=True), str(uuid.uuid4())
    short = port['port_id'][:11]
    switched.set_up(server_id, port)
    assert ports() == [f'qvo{short}']
    assert link(f'tap{short}')['master'] == link(f'qvb{short}')['master'] == f'qbr{short}'
    switched.tear_down(server_id, port)
    assert ports() == []
    assert links() & {f'tap{short}', f'qbr{short}', f'qvb{short}'} == set()


def test_guests_at_the_switch_reach_each_other(switched, neutron, tmp_path):
    with ExitStack() as stack:
        first, second = (started(stack, tmp_path, switched, neutron.port()) for _ in range(2))
        for guest, address in ((first, '192.0.2.1'), (second, '192.0.2.2')):
            guest.expect('# ')
            guest.ask(f'ip address add {address}/24 dev eth0; ip link set eth0 up')
        assert '0% packet loss' in first.ask('ping -c 2 -W 5 192.0.2.2')


@pytest.mark.parametrize('vif_type', ['binding_failed', 'unbound', 'hostdev_physical', 'vhostuser'])
def test_ports_that_no_guest_can_be_plugged_into_are_refused(switched, neutron, vif_type):
    with pytest.raises(HypervisorError, match=vif_type):
        switched.set_up(str(uuid.uuid4()), neutron.port(vif_type=vif_type))
    with pytest.raises(HypervisorError, match='did not return the'):
        switched.set_up(str(uuid.uuid4()), neutron.port(host='elsewhere'))
    with pytest.raises(HypervisorError, match='is not a port'):
        switched.set_up(str(uuid.uuid4()), {'port_id': '; rm -rf /', 'mac_address': 'fa:16:3e:00:00:01'})
    assert ports() == []


def test_a_guest_of_the_driver_comes_and_goes_with_its_port(switch, guests, neutron, servers):
    for name, value in {'network': 'ovs', 'hosts': 1}.items():
        guests.conf.set_override(name, value, 'qemu')
    driver = local_driver(guests.conf, guests.images, GuestServices(bindings=neutron))
    server = servers.get(servers.add(host='compute', network_info=[neutron.port()]))
    driver.spawn(server, [])
    [tap] = ports()
    deadline = time.monotonic() + SECONDS
    while 'LOWER_UP' not in link(tap)['flags']:
        assert time.monotonic() < deadline
    more = neutron.port()
    driver.plug(server, [more])
    assert len(ports()) == 2
    driver.unplug(server, [more])
    driver.destroy(server)
    assert ports() == []


def test_a_switch_is_of_one_host_and_for_a_neutron(guests, neutron):
    guests.conf.set_override('network', 'ovs', 'qemu')
    with pytest.raises(cfg.ConfigFileValueError, match='several'):
        local_driver(guests.conf, guests.images, GuestServices(bindings=neutron))
    guests.conf.set_override('hosts', 1, 'qemu')
    with pytest.raises(cfg.ConfigFileValueError, match='Neutron'):
        local_driver(guests.conf, guests.images)
