"""Guests on bridges, in a network namespace of the tests' own, so that the machine's network is not touched."""

import base64
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from contextlib import ExitStack, contextmanager
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from oslo_config import cfg

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu import detached_process
from computeapi.backends.hypervisor.qemu.bridges import Bridges
from computeapi.backends.hypervisor.qemu.bridges.dhcp import DhcpServer
from computeapi.backends.hypervisor.qemu.drivers import GuestServices, guest_subnets_of, local_driver
from computeapi.backends.network.local import LocalNetworks
from computeapi.backends.network.protocols import NUMBERS, OF_IPV6
from computeapi.errors import SecurityGroupRuleExists
from tests.backends.implementations import ADMIN
from tests.deployment.conftest import serve, start  # noqa: F401
from tests.guests.machine import SECONDS, disk, machine
from tests.guests.screens import wait_until

pytestmark = pytest.mark.usefixtures('namespace')

WITHIN = [IPv4Network('10.0.0.0/8'), IPv4Network('192.168.0.0/16')]


@pytest.fixture
def networks(store):
    service = LocalNetworks(store)
    service.populate(ADMIN)
    return service


@pytest.fixture
def bridges(tmp_path, networks):
    found = bridges_in(tmp_path, networks)
    yield found
    with found.locked() as ports:
        ports.known.clear()
        found.bring_about(ports)


def bridges_in(folder, networks, *arguments):
    return Bridges(folder / 'bridges', networks.resources, WITHIN, *arguments)


def make_network(networks, cidr, **kwargs):
    """Creates a network with a subnet; returns its name."""
    network = networks.resources.create(ADMIN, 'networks', {'name': str(uuid.uuid4())})
    networks.resources.create(ADMIN, 'subnets', {'network_id': network['id'], 'cidr': cidr} | kwargs)
    return network['name']


def lead_outside(networks, name):
    """Creates a router between that network and `public`."""
    [public] = networks.resources.find(ADMIN, 'networks', {'name': ['public']})
    [network] = networks.resources.find(ADMIN, 'networks', {'name': [name]})
    router = networks.resources.create(ADMIN, 'routers', {'external_gateway_info': {'network_id': public['id']}})
    networks.resources.add_router_interface(ADMIN, router['id'], {'subnet_id': network['subnets'][0]})


def make_port(networks, name='private', **kwargs):
    """Creates a port; returns its entry of network_info."""
    network = networks.resources.find(ADMIN, 'networks', {'name': [name]})[0]
    held = {'device_id': str(uuid.uuid4()), 'device_owner': 'compute:nova', 'binding:host_id': 'here'}
    port = networks.resources.create(ADMIN, 'ports', {'network_id': network['id']} | held | kwargs)
    return {'port_id': port['id'], 'mac_address': port['mac_address'], 'address': port['fixed_ips'][0]['ip_address']}


def make_group(networks, **rule):
    group = networks.create_security_group(ADMIN, 'group', '')
    if rule:
        networks.create_security_group_rule(ADMIN, group.id, ethertype='IPv4', **rule)
    return group.id


def started(stack, folder, bridges, port, image=None):
    """A tiny Linux at the port."""
    folder = folder / port['port_id'][:8]
    folder.mkdir()
    overlay = folder / 'disk'
    image = Path(os.environ['COMPUTEAPI_TEST_GUESTS'], 'linux.qcow2')
    subprocess.run(['qemu-img', 'create', '-q', '-f', 'qcow2', '-F', 'qcow2', '-b', image, overlay], check=True)
    server_id = str(uuid.uuid4())
    bridges.set_up(server_id, port)
    netdev = json.dumps(bridges.netdev(server_id, port) | {'id': 'net'})
    card = f'virtio-net-pci,netdev=net,mac={port["mac_address"]}'
    return stack.enter_context(machine(folder, *disk(overlay, 'qcow2'), '-netdev', netdev, '-device', card))


def run(*arguments):
    return subprocess.check_output(arguments, text=True, timeout=SECONDS)


def make_office(address):
    """Create a network link that belongs to the host itself."""
    run('ip', 'link', 'add', 'office', 'type', 'bridge')
    run('ip', 'address', 'add', address, 'dev', 'office')
    run('ip', 'link', 'set', 'office', 'up')


def links():
    return {each['ifname'] for each in json.loads(run('ip', '-json', 'link'))} - {'lo'}


LISTEN = """
import socket
input()
with socket.create_server(('198.51.100.2', 7)) as server:
    print(flush=True)
    while True:
        print(server.accept()[1][0], flush=True)
"""


@contextmanager
def listener():
    """Another machine, 198.51.100.2, on a link to this one. It prints the addresses of its callers."""
    machine = subprocess.Popen(
        ['unshare', '--net', sys.executable, '-c', LISTEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        own = os.stat('/proc/thread-self/ns/net').st_ino
        while os.stat(f'/proc/{machine.pid}/ns/net').st_ino == own:
            time.sleep(0.01)
        run('ip', 'link', 'add', 'outside', 'type', 'veth', 'peer', 'name', 'inside', 'netns', str(machine.pid))
        run('ip', 'address', 'add', '198.51.100.1/24', 'dev', 'outside')
        run('ip', 'link', 'set', 'outside', 'up')
        there = ('nsenter', '--target', str(machine.pid), '--net', 'ip')
        run(*there, 'address', 'add', '198.51.100.2/24', 'dev', 'inside')
        run(*there, 'link', 'set', 'inside', 'up')
        run(*there, 'route', 'add', '203.0.113.0/24', 'via', '198.51.100.1')
        machine.stdin.write('\n')
        machine.stdin.flush()
        assert machine.stdout.readline() == '\n'
        yield machine
    finally:
        machine.kill()
        machine.communicate()


def processes(folder):
    """The processes of DHCP servers."""
    return [int(path.read_text()) for path in (folder / 'bridges').glob('*.pid')]


def greeting(address):
    """The greeting of an SSH server."""
    with socket.create_connection((address, 22), timeout=SECONDS) as connection:
        return connection.recv(100)


def reaches(guest, command):
    """Whether a command in the guest succeeds."""
    guest.type(f'{command} >/dev/null 2>&1; echo "en""ded: $?"\n')
    guest.expect('ended: ')
    return guest.expect('\r\n').strip() == '0'


def test_guests_reach_each_other_as_their_security_groups_allow(tmp_path, networks, bridges):
    pinged = make_group(networks, direction='ingress', protocol='icmp')
    first, second = make_port(networks), make_port(networks, security_groups=[pinged])
    with ExitStack() as stack:
        guests = [started(stack, tmp_path, bridges, port) for port in (first, second)]
        for guest, port in zip(guests, (first, second), strict=True):
            guest.expect(f'computeapi-guest: address eth0 {port["address"]}/16\r\n')
            guest.expect('# ')
        assert reaches(guests[0], f'ping -c 1 -W 30 {second["address"]}')
        assert not reaches(guests[0], f'nc -w 1 {second["address"]} 22 </dev/null')
        rule = {'direction': 'ingress', 'protocol': 'tcp', 'port_range_min': 22, 'port_range_max': 22}
        networks.create_security_group_rule(ADMIN, pinged, ethertype='IPv4', **rule)
        bridges.refresh()
        assert reaches(guests[0], f'nc -w 30 {second["address"]} 22 </dev/null')
        assert greeting(second['address']).startswith(b'SSH-2.0')


def test_a_guest_speaks_as_itself_and_reaches_no_services_of_its_host(tmp_path, networks, bridges):
    port = make_port(networks)
    with ExitStack() as stack:
        guest = started(stack, tmp_path, bridges, port)
        guest.expect('# ')
        stack.enter_context(socket.create_server(('0.0.0.0', 8774)))
        assert reaches(guest, 'ping -c 1 -W 30 10.0.0.1')
        assert reaches(guest, 'nc -w 30 10.0.0.1 53 </dev/null')
        assert not reaches(guest, 'nc -w 1 10.0.0.1 8774 </dev/null')
        guest.ask('ip address add 10.0.9.9/16 dev eth0')
        assert not reaches(guest, 'ping -c 1 -W 1 -I 10.0.9.9 10.0.0.1')
        guest.ask('ip link set dev eth0 address fa:16:3e:99:99:99')
        assert not reaches(guest, 'ping -c 1 -W 1 10.0.0.1')


def test_a_floating_address_leads_to_a_guest_and_is_its_own_outside(tmp_path, networks, bridges):
    group = make_group(networks, direction='ingress', protocol='tcp')
    port = make_port(networks, security_groups=[group])
    with ExitStack() as stack:
        guest = started(stack, tmp_path, bridges, port)
        guest.expect('# ')
        address = networks.create_floating_ip(ADMIN).address
        networks.associate_floating_ip(ADMIN, address, port['port_id'])
        bridges.refresh()
        assert greeting(address).startswith(b'SSH-2.0')
        assert reaches(guest, 'ping -c 1 -W 30 203.0.113.1')
        outside = stack.enter_context(listener())
        assert reaches(guest, 'nc -w 30 198.51.100.2 7 </dev/null')
        assert outside.stdout.readline() == f'{address}\n'
        networks.disassociate_floating_ip(ADMIN, address)
        bridges.refresh()
        with pytest.raises(OSError):
            greeting(address)
        assert reaches(guest, 'nc -w 30 198.51.100.2 7 </dev/null')
        assert outside.stdout.readline() == '198.51.100.1\n'


def test_a_guest_without_port_security_does_not_leave_as_a_guest_of_another_network(tmp_path, networks, bridges):
    """Its packets would leave with the floating address of the other guest."""
    victim = make_port(networks)
    networks.associate_floating_ip(ADMIN, networks.create_floating_ip(ADMIN).address, victim['port_id'])
    name = make_network(networks, '192.168.7.0/24')
    lead_outside(networks, name)
    port = make_port(networks, name, port_security_enabled=False, security_groups=[])
    with ExitStack() as stack:
        bridges.set_up('victim', victim)
        guest = started(stack, tmp_path, bridges, port)
        guest.expect('# ')
        outside = stack.enter_context(listener())
        assert reaches(guest, 'nc -w 30 198.51.100.2 7 </dev/null')
        assert outside.stdout.readline() == '198.51.100.1\n'
        guest.ask(f'ip address add {victim["address"]}/32 dev eth0')
        guest.ask(f'ip route add 198.51.100.2 via 192.168.7.1 src {victim["address"]}')
        run('nft', 'add', 'table', 'ip', 'spy')
        stack.callback(run, 'nft', 'delete', 'table', 'ip', 'spy')
        run('nft', 'add', 'chain', 'ip', 'spy', 'leaving', '{ type filter hook postrouting priority 300; }')
        run('nft', 'add', 'rule', 'ip', 'spy', 'leaving', 'oifname', 'outside', 'counter')
        assert not reaches(guest, 'ping -c 1 -W 1 198.51.100.2')
        assert 'packets 0' in run('nft', 'list', 'table', 'ip', 'spy')


def test_nothing_is_left_when_the_last_port_is_gone(tmp_path, networks, bridges):
    first, second = make_port(networks), make_port(networks)
    bridges.set_up('one', first)
    bridges.set_up('one', first)
    bridges.set_up('two', second)
    taps = {f'tap{port["port_id"][:11]}' for port in (first, second)}
    bridge = (links() - taps).pop()
    assert links() == {bridge, *taps} and len(processes(tmp_path)) == 1
    bridges.tear_down('one', first)
    assert links() == {bridge, f'tap{second["port_id"][:11]}'}
    # Another process finds the existing state.
    other = bridges_in(tmp_path, networks)
    other.tear_down('two', second)
    other.tear_down('two', second)
    assert links() == set() and processes(tmp_path) == []
    assert run('nft', 'list', 'ruleset') == ''


def test_what_is_there_is_not_disturbed(tmp_path, networks, bridges):
    port = make_port(networks)
    bridges.set_up('server', port)
    # The kernel notes a moment later that nothing is plugged into the tap, and so into the bridge.
    wait_until(lambda: run('ip', 'link').count('NO-CARRIER') == 2)
    before = processes(tmp_path), run('ip', 'link'), run('nft', 'list', 'ruleset')
    bridges_in(tmp_path, networks).refresh()
    assert (processes(tmp_path), run('ip', 'link'), run('nft', 'list', 'ruleset')) == before
    [server] = processes(tmp_path)
    assert detached_process.ended(server, signal.SIGKILL)
    bridges.refresh()
    assert processes(tmp_path) not in ([], [server])


def test_addresses_that_the_host_has_a_way_to_are_not_taken_over(networks, bridges):
    make_office('10.0.200.1/24')
    with pytest.raises(HypervisorError, match='a way to 10.0.0.0/16 already, by office'):
        bridges.set_up('server', make_port(networks))


def test_networks_that_lead_to_the_same_one_outside_share_a_host(networks, bridges):
    """The gateway out there is an address of both bridges, of which each DHCP server would take all."""
    name = make_network(networks, '192.168.7.0/24')
    lead_outside(networks, name)
    bridges.set_up('one', make_port(networks))
    bridges.set_up('two', make_port(networks, name))
    assert run('ip', 'address').count('inet 203.0.113.1/32') == 2


def test_a_floating_address_moves_from_network_to_network(tmp_path, networks, bridges):
    name = make_network(networks, '192.168.7.0/24')
    lead_outside(networks, name)
    first, second = make_port(networks), make_port(networks, name)
    address = networks.create_floating_ip(ADMIN).address
    networks.associate_floating_ip(ADMIN, address, first['port_id'])
    bridges.set_up('one', first)
    # A new port restarts the DHCP server of its network.
    bridges.set_up('two', make_port(networks))
    networks.associate_floating_ip(ADMIN, address, second['port_id'])
    bridges.set_up('three', second)
    bridges.set_up('four', make_port(networks, name))
    assert run('ip', 'address').count(f'inet {address}/32') == 1


@pytest.mark.parametrize('there', [True, False])
def test_the_host_is_the_gateway_outside_where_there_is_no_other(networks, bridges, there):
    if there:
        make_office('203.0.113.7/24')
    bridges.set_up('server', make_port(networks))
    assert ('inet 203.0.113.1/32' in run('ip', 'address')) != there


@pytest.mark.parametrize(
    ('cidr', 'reason'), [('10.0.7.0/24', 'overlap'), ('198.51.100.0/24', 'may not be at 198.51.100.0/24')]
)
def test_networks_that_overlap_and_addresses_of_others_are_not_on_the_host(networks, bridges, cidr, reason):
    bridges.set_up('server', make_port(networks))
    before = links()
    with pytest.raises(HypervisorError, match=reason):
        bridges.set_up('server', make_port(networks, make_network(networks, cidr)))
    assert links() == before


def test_a_gateway_is_an_address_of_its_subnet_or_not_on_the_host(networks, bridges):
    port = make_port(networks, make_network(networks, '192.168.7.0/24', gateway_ip='198.51.100.9'))
    bridges.set_up('server', port)
    assert '198.51.100.9' not in run('ip', 'address')


def test_what_cannot_be_connected_keeps_nothing_else_from_being_so(tmp_path, networks, bridges):
    """A tenant creates a network that overlaps with another one, and takes an address from it."""
    first, second = make_port(networks), make_port(networks, make_network(networks, '192.168.7.0/24'))
    for server, port in (('one', first), ('two', second)):
        bridges.set_up(server, port)
    network = networks.resources.get(ADMIN, 'ports', second['port_id'])['network_id']
    subnet = networks.resources.create(ADMIN, 'subnets', {'network_id': network, 'cidr': '10.0.0.0/16'})
    taken = [{'subnet_id': subnet['id'], 'ip_address': first['address']}, {'ip_address': second['address']}]
    networks.resources.update(ADMIN, 'ports', second['port_id'], {'fixed_ips': taken})
    address = networks.create_floating_ip(ADMIN).address
    networks.associate_floating_ip(ADMIN, address, first['port_id'])
    group = make_group(networks, direction='ingress', protocol='tcp', port_range_min=4711, port_range_max=4711)
    networks.resources.update(ADMIN, 'ports', first['port_id'], {'security_groups': [group]})
    bridges.refresh()
    assert run('ip', 'address').count('10.0.0.1/16') == 1
    assert bridges.guest_at(first['address']) == 'one' and bridges.guest_at(second['address']) == 'two'
    assert 'dport 4711' in run('nft', 'list', 'ruleset') and address in run('nft', 'list', 'ruleset')
    third = make_port(networks)
    bridges.set_up('three', third)
    assert {f'tap{port["port_id"][:11]}' for port in (first, second, third)} <= links()


def test_what_was_here_goes_before_what_was_not_whoever_noted_it(networks, bridges):
    """An older release did not record the local subnets, and kept ports that it could not connect."""
    first = make_port(networks)
    bridges.set_up('server', first)
    second = make_port(networks, make_network(networks, '10.0.0.0/16'))
    with bridges.locked() as ports:
        ports.subnets = set()
        ports.add(second['port_id'], 'other')
        assert bridges.bring_about(ports).keys() == {second['port_id']}


def test_what_comes_onto_the_host_later_takes_no_guests_off(networks, bridges):
    """Nor does a later change of the configured subnet ranges."""
    port = make_port(networks)
    bridges.set_up('server', port)
    make_office('10.0.200.1/24')
    before = run('ip', 'address'), run('nft', 'list', 'ruleset')
    bridges.within = WITHIN[1:]
    bridges.refresh()
    bridges.set_up('server', port)
    assert (run('ip', 'address'), run('nft', 'list', 'ruleset')) == before


def test_what_fails_with_one_network_is_no_matter_of_others(networks, bridges, monkeypatch):
    first, second = make_port(networks), make_port(networks, make_network(networks, '192.168.7.0/24'))
    serve = DhcpServer.serve

    def fails(server, segment, wires):
        if str(segment.subnets[0].network) == '192.168.7.0/24':
            raise HypervisorError('dnsmasq failed on the host.')
        serve(server, segment, wires)

    monkeypatch.setattr(DhcpServer, 'serve', fails)
    with pytest.raises(HypervisorError, match='dnsmasq failed'):
        bridges.set_up('two', second)
    bridges.set_up('one', first)
    assert len([link for link in links() if link.startswith('tap')]) == 1


@pytest.mark.parametrize('ethertype', ['IPv4', 'IPv6'])
def test_whatever_a_security_group_may_say_the_firewall_takes(networks, bridges, ethertype):
    """A rule that the firewall refused would prevent updates for all guests of the host."""
    anywhere, group = {'IPv4': '0.0.0.0/0', 'IPv6': '::/0'}[ethertype], networks.create_security_group(ADMIN, 'odd', '')
    networks.resources.set_quotas(ADMIN, 'admin', {'security_group_rule': -1})
    of_version = [n for n in {*NUMBERS.values(), 0, 255} if ethertype == 'IPv6' or n not in OF_IPV6]
    names = [name for name, number in NUMBERS.items() if number in of_version]
    rules = [{'protocol': each} for each in [*names, *map(str, of_version)]]
    icmp = {'IPv4': 'icmp', 'IPv6': 'icmpv6'}[ethertype]
    for low, high in ((0, 0), (0, 255), (255, 255), (255, None)):
        rules.append({'protocol': icmp, 'port_range_min': low, 'port_range_max': high})
    for protocol in ('tcp', 'udp', 'sctp', 'dccp', 'udplite'):
        rules += [{'protocol': protocol, 'port_range_min': low, 'port_range_max': 65535} for low in (1, 65535)]
    rules += [
        {'remote_ip_prefix': anywhere},
        {'remote_group_id': group.id},
        {'protocol': 'tcp', 'remote_group_id': group.id},
    ]
    for direction in ('ingress', 'egress'):
        for rule in rules:
            given = {'security_group_id': group.id, 'direction': direction, 'ethertype': ethertype, **rule}
            with contextlib.suppress(SecurityGroupRuleExists):
                networks.resources.create(ADMIN, 'security-group-rules', given)
    pairs = [{'ip_address': each} for each in ('0.0.0.0/0', '10.0.0.9', '10.0.0.0/16', '::/0', '255.255.255.255')]
    bridges.set_up('server', make_port(networks, security_groups=[group.id], allowed_address_pairs=pairs))
    assert 'dport 65535' in run('nft', 'list', 'ruleset') or ethertype == 'IPv6'


def test_a_network_without_subnets_has_ports_too(networks, bridges):
    network = networks.resources.create(ADMIN, 'networks', {'name': 'bare'})
    port = networks.resources.create(ADMIN, 'ports', {'network_id': network['id']})
    bridges.set_up('server', {'port_id': port['id']})
    assert len(links()) == 2


def test_whatever_a_subnet_may_say_its_dhcp_server_takes(networks, bridges):
    far = [{'destination': f'198.51.{n}.128/25', 'nexthop': '192.168.7.1'} for n in range(20)]
    facts = {
        'host_routes': far,
        'dns_nameservers': [f'198.51.100.{n}' for n in range(1, 6)],
        'gateway_ip': '192.168.7.9',
    }
    bridges.set_up('one', make_port(networks, make_network(networks, '192.168.7.0/24', **facts)))
    bridges.set_up('two', make_port(networks, make_network(networks, '192.168.8.0/30')))


def test_a_port_that_there_is_not_is_not_wired(networks, bridges):
    with pytest.raises(HypervisorError):
        bridges.set_up('server', {'port_id': str(uuid.uuid4())})
    with pytest.raises(HypervisorError):
        bridges.set_up('server', {'port_id': '; rm -rf /'})


# ------------------------------------------------------------------ metadata


def callers(listening, found):
    with contextlib.suppress(OSError):
        while True:
            connection, (address, _) = listening.accept()
            found.append(address)
            connection.close()


def test_nobody_asks_for_metadata_from_the_address_of_another(tmp_path, networks):
    """Not even a guest without port security."""
    first = make_port(networks, port_security_enabled=False, security_groups=[])
    second = make_port(networks)
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(('127.0.0.1', 0)))
        bridges = bridges_in(tmp_path, networks, listening.getsockname()[1])
        for port in (second, first):
            stack.callback(bridges.tear_down, 'server', port)
        bridges.set_up('other', second)
        guest = started(stack, tmp_path, bridges, first)
        guest.expect('# ')
        threading.Thread(target=callers, args=(listening, asked := []), daemon=True).start()
        assert reaches(guest, 'nc -w 30 169.254.169.254 80 </dev/null')
        assert bridges.guest_at(first['address']) == bridges.guest_at(asked[0]) not in (None, 'other')
        assert bridges.guest_at(second['address']) == 'other' and bridges.guest_at('10.0.77.77') is None
        guest.ask(f'ip address add {second["address"]}/16 dev eth0')
        guest.ask(f'ip route add 10.0.0.1 dev eth0 src {second["address"]}')
        guest.ask(f'ip route add 169.254.169.254 via 10.0.0.1 src {second["address"]}')
        assert reaches(guest, 'nc -w 30 10.0.0.1 53 </dev/null')
        assert not reaches(guest, 'nc -w 1 169.254.169.254 80 </dev/null')
        assert set(asked) == {first['address']}


def test_guests_of_a_served_cloud_read_what_is_theirs(serve, tmp_path):
    options = {'OS_QEMU__NETWORK': 'bridge', 'OS_QEMU__USER': 'nobody', 'OS_DEFAULT__FORCE_CONFIG_DRIVE': 'false'}
    client = serve('--hypervisor', 'qemu', '--data-dir', str(tmp_path / 'data'), **options).connect()
    disk = Path(os.environ['COMPUTEAPI_TEST_GUESTS'], 'linux.qcow2').read_bytes()
    image = client.create_image('linux', data=disk, disk_format='qcow2', container_format='bare', wait=True)
    flavor, network = client.create_flavor('small', 128, 1, 1), client.network.find_network('private')
    asks = 'wget -q -O - --header "X-Instance-ID: other" http://169.254.169.254/openstack/latest/meta_data.json'
    script = base64.b64encode(f'#!/bin/sh\n{asks} | jq -r ".uuid"\n'.encode()).decode()
    facts = {'image_id': image.id, 'flavor_id': flavor.id, 'networks': [{'uuid': network.id}], 'user_data': script}
    servers = [client.compute.create_server(name=name, **facts) for name in ('one', 'two')]
    try:
        for server in servers:
            client.compute.wait_for_server(server, 'ACTIVE', interval=0.1, wait=60)
            said = wait_until(lambda server=server: ended(client.get_server_console(server)))
            assert f'hostname {server.name}' in said and server.id in said
    finally:
        for server in servers:
            client.compute.delete_server(server)
        wait_until(lambda: links() == set())


def ended(said):
    return said if 'user_data ended with 0' in said else None


def test_the_driver_plugs_its_guests_in(guests, networks, servers):
    guests.conf.set_override('network', 'bridge', 'qemu')
    guests.conf.set_override('hosts', 1, 'qemu')
    driver = local_driver(guests.conf, guests.images, GuestServices(networks.resources))
    server = servers.get(servers.add(host='compute', network_info=[make_port(networks)]))
    driver.spawn(server, [])
    driver.plug(server, [make_port(networks)])
    found = json.loads(run('ip', '-json', '-details', 'link'))
    taps = [each for each in found if each['ifname'].startswith('tap')]
    assert ['LOWER_UP' in tap['flags'] for tap in taps] == [True, True]
    assert [tap['linkinfo']['info_data']['user'] for tap in taps] == ['root', 'root']
    assert set(driver.diagnostics(server, [])['interfaces'][0]) >= {'rx_octets', 'tx_packets'}
    address = networks.create_floating_ip(ADMIN).address
    networks.associate_floating_ip(ADMIN, address, server.network_info[0]['port_id'])
    # Periodic upkeep applies changes made since.
    driver.upkeep()
    assert address in run('nft', 'list', 'table', 'ip', 'computeapi')
    driver.destroy(server)
    assert links() == set()


def test_bridges_are_of_one_host_and_for_built_in_networks(guests, networks):
    guests.conf.set_override('network', 'bridge', 'qemu')
    with pytest.raises(cfg.ConfigFileValueError, match='several'):
        local_driver(guests.conf, guests.images, GuestServices(networks.resources))
    guests.conf.set_override('hosts', 1, 'qemu')
    with pytest.raises(cfg.ConfigFileValueError, match='built-in'):
        local_driver(guests.conf, guests.images)
    guests.conf.set_override('guest_subnets', ['10.0.0.1/8'], 'qemu')
    with pytest.raises(cfg.ConfigFileValueError, match='guest_subnets: 10.0.0.1/8 has host bits set'):
        local_driver(guests.conf, guests.images, GuestServices(networks.resources))


def test_guests_may_be_on_the_built_in_networks(guests, networks):
    within = guest_subnets_of(guests.conf.qemu)
    cidrs = [IPv4Network(each['cidr']) for each in networks.resources.find(ADMIN, 'subnets') if each['ip_version'] == 4]
    assert cidrs and all(any(cidr.subnet_of(each) for each in within) for cidr in cidrs)
