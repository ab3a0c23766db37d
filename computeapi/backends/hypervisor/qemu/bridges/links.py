"""Bridges and taps of the host, managed with the program `ip`. All functions are idempotent."""

import fcntl
import hashlib
import json
import os
import socket
import struct
from collections.abc import Iterable
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.bridges.command import run

SETTINGS = Path('/proc/sys/net')
# From linux/if_tun.h: plain frames, preceded by the virtio header with the work that is offloaded to the card.
TUNSETIFF, IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x400454CA, 0x0002, 0x1000, 0x4000


def names() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def make_bridge(name: str, mtu: int) -> None:
    if name not in names():
        run('ip', 'link', 'add', 'name', name, 'address', address_of(name), 'type', 'bridge')
        switch_off_ipv6(name)
    run('ip', 'link', 'set', 'dev', name, 'mtu', str(mtu), 'up')


def address_of(bridge: str) -> str:
    """A MAC address that does not depend on the ports of the bridge: guests cache the address of their router."""
    digest = hashlib.sha256(bridge.encode()).digest()
    return ':'.join(f'{byte:02x}' for byte in (0x0A, *digest[:5]))


def make_tap(name: str, mtu: int) -> None:
    if name not in names():
        # A tap without an owner can be opened by everybody.
        run('ip', 'tuntap', 'add', 'dev', name, 'mode', 'tap', 'user', 'root')
        switch_off_ipv6(name)
    run('ip', 'link', 'set', 'dev', name, 'mtu', str(mtu), 'up')


def opened_tap(name: str) -> int:
    """The guest's side of a tap, as an open file; HypervisorError."""
    file = os.open('/dev/net/tun', os.O_RDWR)
    try:
        fcntl.ioctl(file, TUNSETIFF, struct.pack('16sH22x', name.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
    except OSError as error:
        os.close(file)
        raise HypervisorError(f'The tap of a port could not be opened: {error.strerror}.') from None
    return file


def put_on(name: str, bridge: str) -> None:
    run('ip', 'link', 'set', 'dev', name, 'master', bridge)


def switch_off_ipv6(name: str) -> None:
    """The host itself must not be reachable by IPv6 addresses that nobody assigned."""
    setting = SETTINGS / 'ipv6' / 'conf' / name / 'disable_ipv6'
    if setting.exists():
        setting.write_text('1')


def lead_to_loopback(bridge: str, *, leads: bool) -> None:
    """Whether traffic from the bridge may be routed to the host's loopback; the firewall decides which traffic."""
    setting = SETTINGS / 'ipv4' / 'conf' / bridge / 'route_localnet'
    wanted = '1' if leads else '0'
    if setting.read_text().strip() != wanted:
        setting.write_text(wanted)


def remove(name: str) -> None:
    if name in names():
        run('ip', 'link', 'delete', 'dev', name)


def set_addresses(bridge: str, wanted: Iterable[str]) -> None:
    """Set exactly these addresses, which include their prefix lengths."""
    found = {(f'{each["local"]}/{each["prefixlen"]}', each.get('label')) for each in addresses(bridge)}
    keep = {(address, label_of(bridge, address)) for address in wanted}
    for address, _ in sorted(found - keep):
        run('ip', 'address', 'delete', address, 'dev', bridge)
    for address, label in sorted(keep - found):
        run('ip', 'address', 'add', address, 'dev', bridge, 'label', label)


def label_of(bridge: str, address: str) -> str:
    """The label of an address. dnsmasq listens on those whose label is the name of its interface. A lone address, of
    a guest or of a gateway outside, must not be one of them: it can be on several bridges, and move to another."""
    return f'{bridge}:' if address.endswith('/32') else bridge


def addresses(name: str) -> list[dict[str, Any]]:
    found = json.loads(run('ip', '-json', '-4', 'address', 'show', 'dev', name))
    return [address for each in found for address in each.get('addr_info', ())]


def ways() -> list[tuple[IPv4Network, str]]:
    """The networks that the host reaches, each with its link, except for the default route."""
    routes = json.loads(run('ip', '-json', '-4', 'route', 'show') or '[]')
    reached = [(str(route.get('dst', 'default')), str(route.get('dev'))) for route in routes]
    return [(IPv4Network(to, strict=False), link) for to, link in reached if to != 'default']


def forward() -> None:
    """Enable IP forwarding."""
    setting = SETTINGS / 'ipv4' / 'ip_forward'
    if setting.read_text().strip() != '1':
        setting.write_text('1')


def counters(name: str) -> dict[str, Any]:
    """The traffic counters from the host's point of view; empty if there is no such link."""
    if name not in names():
        return {}
    found = json.loads(run('ip', '-json', '-statistics', 'link', 'show', 'dev', name))
    return dict(found[0].get('stats64', {})) if found else {}
