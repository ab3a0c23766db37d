"""The ports on this host and their surroundings, as read from the network service."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, ip_network
from typing import Any, Protocol

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.bridges.taps import tap_of
from computeapi.backends.network.protocols import NUMBERS
from computeapi.context import Context
from computeapi.errors import Error

Document = Mapping[str, Any]
ROUTER_INTERFACE = 'network:router_interface'
MAC = re.compile(r'[0-9a-f]{2}(:[0-9a-f]{2}){5}')
SMALLEST_MTU, LARGEST_MTU = 576, 65535


class Documents(Protocol):
    """The network service, with Neutron's resources and fields."""

    def find(
        self, context: Context, kind: str, filters: Mapping[str, list[str]] | None = None, /
    ) -> Sequence[Document]: ...


@dataclass(frozen=True)
class Subnet:
    """routes: pairs of a network and the next hop."""

    id: str
    network: IPv4Network
    gateway: IPv4Address | None
    has_dhcp: bool
    name_servers: tuple[IPv4Address, ...]
    routes: tuple[tuple[IPv4Network, IPv4Address], ...]


@dataclass(frozen=True)
class Segment:
    """A network. routers: IDs of the routers that it is attached to.  way_out: one of them has a gateway with SNAT.

    outside: the gateway addresses of the networks that those lead to."""

    id: str
    mtu: int
    subnets: tuple[Subnet, ...]
    routers: frozenset[str]
    way_out: bool
    outside: frozenset[IPv4Address] = frozenset()

    @property
    def bridge(self) -> str:
        return f'cbr{self.id[:11]}'


@dataclass(frozen=True)
class WireRule:
    """protocol: its number; None: any.  remotes: None: anywhere."""

    ingress: bool
    protocol: int | None
    first: int | None
    last: int | None
    remotes: tuple[IPv4Network, ...] | None


@dataclass(frozen=True)
class Wire:
    """A port. may_use: source addresses that it may use.  rules: None: no port security.

    floating: pairs of a floating address and the fixed address of the port that it leads to."""

    port_id: str
    network_id: str
    mac_address: str
    addresses: tuple[tuple[str, IPv4Address], ...]
    may_use: tuple[IPv4Network, ...]
    macs: tuple[str, ...]
    is_up: bool
    rules: tuple[WireRule, ...] | None
    floating: tuple[tuple[IPv4Address, IPv4Address], ...]

    @property
    def tap(self) -> str:
        return tap_of(self.port_id)


@dataclass(frozen=True)
class Wiring:
    segments: Mapping[str, Segment]
    wires: Sequence[Wire]

    def wires_of(self, segment: Segment) -> list[Wire]:
        return [wire for wire in self.wires if wire.network_id == segment.id]


NOTHING = Wiring({}, ())


def read(service: Documents, context: Context, port_ids: Collection[str]) -> Wiring:
    """The wiring of those of the ports that exist. HypervisorError if the service gives no usable answer."""
    if not port_ids:
        return NOTHING
    with understood():
        ports = service.find(context, 'ports', {'id': sorted(port_ids)})
        network_ids = sorted({port['network_id'] for port in ports})
        wires = _wires(service, context, ports)
        segments = _segments(service, context, network_ids) if network_ids else {}
        # The network may have been deleted with its ports meanwhile.
        return Wiring(segments, [wire for wire in wires if wire.network_id in segments])


def read_wires(service: Documents, context: Context, port_ids: Collection[str]) -> list[Wire]:
    """Like `read`, without the surroundings of the ports."""
    if not port_ids:
        return []
    with understood():
        return _wires(service, context, service.find(context, 'ports', {'id': sorted(port_ids)}))


@contextmanager
def understood() -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, KeyError) as error:
        raise HypervisorError(f'The network service returned wiring that is not valid: {error}') from None
    except HypervisorError:
        raise
    except Error as error:
        raise HypervisorError(f'The network service did not return the wiring of the ports: {error}') from None


# ------------------------------------------------------------------ networks


def _segments(service: Documents, context: Context, network_ids: list[str]) -> dict[str, Segment]:
    subnets = service.find(context, 'subnets', {'network_id': network_ids})
    interfaces = service.find(context, 'ports', {'network_id': network_ids, 'device_owner': [ROUTER_INTERFACE]})
    router_ids = sorted({port['device_id'] for port in interfaces})
    routers = service.find(context, 'routers', {'id': router_ids}) if router_ids else []
    leading = {router['id'] for router in routers if (router['external_gateway_info'] or {}).get('enable_snat')}
    beyond = _beyond(service, context, [router for router in routers if router['id'] in leading])
    found = {}
    for network in service.find(context, 'networks', {'id': network_ids}):
        behind = frozenset(port['device_id'] for port in interfaces if port['network_id'] == network['id'])
        mine = [each for each in subnets if each['network_id'] == network['id'] and each['ip_version'] == 4]
        mtu = min(max(int(network['mtu']), SMALLEST_MTU), LARGEST_MTU)
        outside = frozenset(gateway for router in behind & leading for gateway in beyond[router])
        facts = (mtu, tuple(map(_subnet, mine)), behind, bool(behind & leading), outside)
        found[network['id']] = Segment(network['id'], *facts)
    return found


def _beyond(service: Documents, context: Context, routers: Sequence[Document]) -> dict[str, list[IPv4Address]]:
    """By router, the gateways of the network that it leads to."""
    networks = {router['id']: router['external_gateway_info']['network_id'] for router in routers}
    wanted = sorted({*networks.values()})
    subnets = service.find(context, 'subnets', {'network_id': wanted}) if wanted else []
    gateways = [(each['network_id'], each['gateway_ip']) for each in subnets if each['ip_version'] == 4]
    return {
        router: [IPv4Address(gateway) for network, gateway in gateways if network == leads_to and gateway]
        for router, leads_to in networks.items()
    }


def _subnet(subnet: Document) -> Subnet:
    return Subnet(
        subnet['id'],
        IPv4Network(subnet['cidr']),
        _gateway(subnet),
        bool(subnet['enable_dhcp']),
        tuple(IPv4Address(each) for each in subnet['dns_nameservers'] if _is_ipv4(each)),
        tuple(
            (IPv4Network(each['destination']), IPv4Address(each['nexthop']))
            for each in subnet['host_routes']
            if _is_ipv4(each['destination']) and _is_ipv4(each['nexthop'])
        ),
    )


def _gateway(subnet: Document) -> IPv4Address | None:
    """The host itself takes the gateway's address, so it must be one of the subnet's own."""
    gateway = IPv4Address(subnet['gateway_ip']) if subnet['gateway_ip'] else None
    return gateway if gateway is not None and gateway in IPv4Network(subnet['cidr']) else None


def _is_ipv4(written: str) -> bool:
    return ':' not in written


# ------------------------------------------------------------------ ports


def _wires(service: Documents, context: Context, ports: Sequence[Document]) -> list[Wire]:
    floating = service.find(context, 'floatingips', {'port_id': [port['id'] for port in ports]}) if ports else []
    rules = _rules(service, context, {group for port in ports for group in port['security_groups']})
    return [_wire(port, rules, [each for each in floating if each['port_id'] == port['id']]) for port in ports]


def _wire(port: Document, rules: Mapping[str, Sequence[WireRule]], floating: Iterable[Document]) -> Wire:
    held = [(each['subnet_id'], each['ip_address']) for each in port['fixed_ips'] if _is_ipv4(each['ip_address'])]
    pairs = port.get('allowed_address_pairs') or ()
    own = [str(address) for _, address in held]
    usable = [*own, *(each['ip_address'] for each in pairs)]
    groups = port['security_groups']
    return Wire(
        port['id'],
        port['network_id'],
        _mac(port['mac_address']),
        tuple((subnet_id, IPv4Address(address)) for subnet_id, address in held),
        tuple(found for each in usable if isinstance(found := ip_network(each, strict=False), IPv4Network)),
        tuple(
            dict.fromkeys(_mac(each) for each in (port['mac_address'], *(p.get('mac_address') for p in pairs)) if each)
        ),
        bool(port['admin_state_up']),
        tuple(rule for group in groups for rule in rules[group]) if port['port_security_enabled'] else None,
        tuple((IPv4Address(each['floating_ip_address']), IPv4Address(each['fixed_ip_address'])) for each in floating),
    )


def _mac(written: str) -> str:
    if not MAC.fullmatch(written.lower()):
        raise ValueError(f'{written!r} is not a MAC address')
    return written.lower()


# ------------------------------------------------------------------ security groups

ANY = (None, '', 'any', '0', 0)


def _rules(service: Documents, context: Context, group_ids: Collection[str]) -> dict[str, list[WireRule]]:
    """By group; a remote group stands for the addresses of all its members, on any host."""
    if not group_ids:
        return {}
    groups = service.find(context, 'security-groups', {'id': sorted(group_ids)})
    written = [rule for group in groups for rule in group['security_group_rules']]
    remote = sorted({rule['remote_group_id'] for rule in written if rule['remote_group_id']})
    inside: dict[str, set[IPv4Network]] = {group_id: set() for group_id in remote}
    for port in service.find(context, 'ports', {'security_groups': remote}) if remote else ():
        addresses = {IPv4Network(each['ip_address']) for each in port['fixed_ips'] if _is_ipv4(each['ip_address'])}
        for group_id in inside.keys() & set(port['security_groups']):
            inside[group_id] |= addresses
    return {group['id']: list(_rules_of(group, inside)) for group in groups}


def _rules_of(group: Document, inside: Mapping[str, set[IPv4Network]]) -> Iterable[WireRule]:
    for rule in group['security_group_rules']:
        protocol = rule['protocol']
        if rule['ethertype'] != 'IPv4':
            continue
        number = None if protocol in ANY else _protocol(str(protocol))
        remotes: tuple[IPv4Network, ...] | None = None
        if rule['remote_group_id']:
            remotes = tuple(sorted(inside[rule['remote_group_id']]))
        elif rule['remote_ip_prefix']:
            remotes = (IPv4Network(rule['remote_ip_prefix'], strict=False),)
        first, last = (None if each is None else int(each) for each in (rule['port_range_min'], rule['port_range_max']))
        yield WireRule(rule['direction'] == 'ingress', number, first, last, remotes)


def _protocol(written: str) -> int:
    number = NUMBERS[written] if written in NUMBERS else int(written)
    if not 0 < number < 256:
        raise ValueError(f'{written!r} is not a protocol')
    return number
