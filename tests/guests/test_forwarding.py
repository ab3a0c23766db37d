"""Floating IPs of guests in user mode, in a namespace of the tests' own, whose loopback has no other listeners."""

import contextlib
import os
import signal
import socket
from ipaddress import IPv4Address, IPv4Network
from operator import itemgetter

import pytest

from computeapi.backends.hypervisor.qemu import monitor
from computeapi.backends.hypervisor.qemu.bridges.wires import WireRule
from computeapi.backends.hypervisor.qemu.drivers import GuestServices, local_driver
from computeapi.backends.hypervisor.qemu.forwarding import Forward, Forwarding, admits, forwards_of, loopback_of
from computeapi.backends.hypervisor.qemu.process import GuestProcess
from computeapi.errors import Error
from tests.backends.implementations import ADMIN
from tests.conftest import FLAVOR
from tests.guests.screens import wrote
from tests.guests.test_bridges import make_group, make_port, networks  # noqa: F401

pytestmark = pytest.mark.usefixtures('namespace')
SSH = {'direction': 'ingress', 'protocol': 'tcp', 'port_range_min': 22, 'port_range_max': 22}
OPEN = {'security_groups': [], 'port_security_enabled': False}


@pytest.fixture
def driver(guests, networks):
    return local_driver(guests.conf, guests.images, GuestServices(networks.resources))


@pytest.fixture
def boot(driver, servers):
    """boot(port, **facts) -> a running server with the port."""

    def boot(port, **kwargs):
        info = port | {'addresses': [{'address': port['address'], 'version': 4, 'floating': []}]}
        server = servers.get(servers.add(host='compute1', network_info=[info], **kwargs))
        driver.spawn(server, [])
        return server

    return boot


@pytest.fixture
def floating(networks):
    """floating(port) -> a floating IP associated with it, and its address on the loopback."""

    def floating(port):
        address = networks.create_floating_ip(ADMIN).address
        networks.associate_floating_ip(ADMIN, address, port['port_id'])
        return address, loopback_of(IPv4Address(address))

    return floating


def answers(address, port):
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection((address, port), timeout=20):
        return True
    return False


def test_a_guest_is_reached_by_its_floating_address(networks, driver, boot, floating, tiny_linux):
    port = make_port(networks, security_groups=[make_group(networks, **SSH)])
    server = boot(port, image_id=tiny_linux, flavor=FLAVOR | {'memory_mb': 128})
    address, here = floating(port)
    driver.upkeep()
    wrote(driver, server, 'computeapi-guest: ready')
    with socket.create_connection((here, 10022), timeout=20) as connection:
        assert connection.recv(100).startswith(b'SSH-2.0-')
    assert not answers(here, 10080)


def test_the_ports_follow_the_network_service(networks, driver, boot, floating, guests):
    port = make_port(networks, security_groups=[make_group(networks)])
    boot(port)
    address, here = floating(port)
    driver.upkeep()
    assert not answers(here, 10022)
    make_rule(networks, port)
    driver.upkeep()
    assert answers(here, 10022)
    # Another process knows what the previous one configured.
    networks.disassociate_floating_ip(ADMIN, address)
    local_driver(guests.conf, guests.images, GuestServices(networks.resources)).upkeep()
    assert not answers(here, 10022)


def test_the_ports_go_with_a_guest_that_moves(networks, driver, boot, floating):
    port = make_port(networks, **OPEN)
    server = boot(port)
    address, here = floating(port)
    driver.upkeep()
    facts = driver.prepare_live_migration(server, 'compute2', driver.describe(server))
    driver.upkeep()
    assert driver.live_migrate(server, 'compute2', facts, 'running')
    driver.upkeep()
    assert answers(here, 10022)


def make_rule(networks, port):
    group = networks.resources.find(ADMIN, 'ports', {'id': [port['port_id']]})[0]['security_groups'][0]
    networks.create_security_group_rule(ADMIN, group, ethertype='IPv4', **SSH)


def test_a_port_that_is_taken_is_told_and_the_others_are_passed_on(networks, driver, boot, floating, caplog):
    port = make_port(networks, **OPEN)
    boot(port)
    address, here = floating(port)
    with socket.create_server((here, 10022)):
        driver.upkeep()
        driver.upkeep()
    assert answers(here, 10080)
    assert len([each for each in caplog.messages if 'is not passed on' in each]) == 1
    driver.upkeep()
    assert answers(here, 10022)


def test_an_address_goes_from_one_guest_to_another(networks, driver, boot, floating):
    ports = [make_port(networks, **OPEN) for _ in range(2)]
    servers = [boot(port) for port in ports]
    (_, first), (_, second) = sorted(zip((server.uuid for server in servers), ports, strict=True), key=itemgetter(0))
    address, here = floating(second)
    driver.upkeep()
    networks.disassociate_floating_ip(ADMIN, address)
    networks.associate_floating_ip(ADMIN, address, first['port_id'])
    # The new owner is configured before the old one.
    driver.upkeep()
    driver.upkeep()
    assert answers(here, 10022)


def test_nobody_gets_the_connections_to_an_older_floating_address_that_ends_alike(
    networks, driver, boot, floating, caplog
):
    port = make_port(networks, **OPEN)
    boot(port)
    address, here = floating(port)
    [young] = networks.resources.find(ADMIN, 'floatingips')
    other = f'198.{address.partition(".")[2]}'
    networks.resources.delete(ADMIN, 'floatingips', young['id'])
    old = address_outside(networks, other)
    facts = {name: young[name] for name in ('floating_network_id', 'floating_ip_address', 'port_id')}
    networks.resources.create(ADMIN, 'floatingips', facts)
    for _ in range(2):
        driver.upkeep()
    assert not answers(here, 10022)
    said = f'Floating address {address} is not passed on: {here} belongs to {other}'
    assert caplog.messages.count(said) == 1
    networks.resources.delete(ADMIN, 'floatingips', old)
    driver.upkeep()
    assert answers(here, 10022)


def address_outside(networks, address):
    """The ID of a floating IP with that address, on a network of its own."""
    network = networks.resources.create(ADMIN, 'networks', {'name': 'other', 'router:external': True})['id']
    subnet = {'network_id': network, 'ip_version': 4, 'cidr': str(IPv4Network(f'{address}/24', strict=False))}
    networks.resources.create(ADMIN, 'subnets', subnet)
    facts = {'floating_network_id': network, 'floating_ip_address': address}
    return networks.resources.create(ADMIN, 'floatingips', facts)['id']


def test_a_guest_that_did_not_answer_is_told_when_it_does(networks, driver, boot, floating, monkeypatch):
    port = make_port(networks, **OPEN)
    server = boot(port)
    address, here = floating(port)
    driver.upkeep()
    networks.disassociate_floating_ip(ADMIN, address)
    pid = GuestProcess(driver.folder(server)).pid
    os.kill(pid, signal.SIGSTOP)
    with monkeypatch.context() as patched:
        patched.setattr(monitor, 'CONNECT_SECONDS', 0.5)
        driver.upkeep()
    os.kill(pid, signal.SIGCONT)
    driver.upkeep()
    assert not answers(here, 10022)


def test_of_guests_that_hang_one_is_asked_at_a_time(networks, driver, boot, floating, monkeypatch, caplog):
    ports = [make_port(networks, **OPEN) for _ in range(3)]
    pids = [GuestProcess(driver.folder(boot(port))).pid for port in ports]
    here = [floating(port)[1] for port in ports]
    asked, apply = [], Forwarding._apply

    def counted(self, folder, wanted):
        asked.append(folder.server_id)
        return apply(self, folder, wanted)

    monkeypatch.setattr(Forwarding, '_apply', counted)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    with monkeypatch.context() as patched:
        patched.setattr(monitor, 'CONNECT_SECONDS', 0.5)
        for _ in range(4):
            driver.upkeep()
    assert asked[3:] == asked[:3] and len(caplog.messages) == 3
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    for _ in range(3):
        driver.upkeep()
    assert all(answers(each, 10022) for each in here)


def test_a_network_service_that_is_away_changes_nothing(networks, driver, boot, floating, caplog, monkeypatch):
    port = make_port(networks, **OPEN)
    boot(port)
    address, here = floating(port)
    driver.upkeep()

    def away(*arguments):
        raise Error('It is away.')

    monkeypatch.setattr(networks.resources, 'find', away)
    driver.upkeep()
    assert answers(here, 10080)
    assert 'do not lead where they should' in caplog.text


USERNET = """Hub -1 (net-aaaaaaaa):
  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ
  TCP[ESTABLISHED]   15        10.0.0.7 39002       127.0.0.1  8080     0     0
  TCP[HOST_FORWARD]  12      127.24.4.7 10022        10.0.0.7    22     0     0
  UDP[HOST_FORWARD]  13      127.24.4.7 10053        10.0.0.7    53     0     0
Hub -1 (net-bbbbbbbb):
  TCP[HOST_FORWARD]  14      127.24.4.8 10080        10.0.0.8    80     0     0
"""


def test_what_qemu_says_of_its_ports():
    assert forwards_of(USERNET) == {
        Forward('net-aaaaaaaa', '127.24.4.7', 10022, '10.0.0.7', 22),
        Forward('net-bbbbbbbb', '127.24.4.8', 10080, '10.0.0.8', 80),
    }


@pytest.mark.parametrize(
    ('rule', 'passes'),
    [
        (WireRule(True, 6, 22, 22, None), True),
        (WireRule(True, 6, 22, None, None), True),
        (WireRule(True, None, None, None, (IPv4Network('0.0.0.0/0'),)), True),
        (WireRule(True, 6, 20, 30, (IPv4Network('127.0.0.0/8'),)), True),
        (WireRule(True, 6, 20, 21, None), False),
        (WireRule(True, 17, 22, 22, None), False),
        (WireRule(False, 6, 22, 22, None), False),
        (WireRule(True, 6, 22, 22, (IPv4Network('10.0.0.0/8'),)), False),
        (WireRule(True, 6, 22, 22, ()), False),
    ],
)
def test_rules_say_who_may_call(rule, passes):
    assert admits([rule], 22) is passes and admits(None, 22) and not admits([], 22)
