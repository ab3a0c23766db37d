"""Networks as bridges of the host: a bridge per network, a tap per port, a DHCP server per bridge, and nftables.

    wires     reads the ports here from the network service
    admission decides which subnets can be on this host
    links     bridges, taps, addresses
    taps      the guest's side of taps
    dhcp      gives guests their addresses
    firewall  which packets pass, and with which source address they leave
    command   runs programs of the host

The desired state is always applied as a whole: a folder records which ports are here, all else is read from the network
service. The previous state does not matter, nor does an interruption halfway. Whatever cannot be applied is left out,
and does not keep the rest from being applied.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from computeapi.backends.atomic_files import write
from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.bridges import firewall, links
from computeapi.backends.hypervisor.qemu.bridges.admission import admitted
from computeapi.backends.hypervisor.qemu.bridges.command import run
from computeapi.backends.hypervisor.qemu.bridges.dhcp import DhcpServer
from computeapi.backends.hypervisor.qemu.bridges.taps import Interface, Taps, changing, port_of, tap_of
from computeapi.backends.hypervisor.qemu.bridges.wires import Documents, Segment, Wire, Wiring, read
from computeapi.context import Context

LOG = logging.getLogger(__name__)
AMISS = 'The networks of the host are not as they should be: %s'


class Bridges(Taps):
    """folder: records what is here.  service: the network service.

    within: the networks in which subnets here must lie.  metadata_port: the port of the loopback that answers
    guests' requests to the metadata address; None: there is no such service."""

    def __init__(
        self, folder: Path, service: Documents, within: Sequence[IPv4Network], metadata_port: int | None = None
    ):
        self.folder, self.service, self.within, self.metadata_port = folder, service, within, metadata_port
        self.said: dict[str, str] = {}

    # ------------------------------------------------------------ called by the driver

    def set_up(self, server_id: str, interface: Interface) -> None:
        port_id = port_of(interface)
        with self.locked() as ports:
            ports.add(port_id, server_id)
            problem = self.bring_about(ports).get(port_id)
            if problem is not None:
                ports.remove(port_id)
                self.try_to_bring_about(ports)
                raise HypervisorError(problem)

    def tear_down(self, server_id: str, interface: Interface) -> None:
        with self.locked() as ports:
            port_id = port_of(interface)
            ports.remove(port_id)
            links.remove(tap_of(port_id))
            self.try_to_bring_about(ports)

    def guest_at(self, address: str) -> str | None:
        """Subnets of one host do not overlap, and only the holder of an address can ask for metadata from it."""
        here = PortsHere(self.path)
        ports = self.service.find(Context().elevated(), 'ports', {'id': sorted(here.known)}) if here.known else []
        held = [(port['id'], each) for port in ports for each in port['fixed_ips'] if each['subnet_id'] in here.subnets]
        holders = [port_id for port_id, each in held if each['ip_address'] == address]
        return here.known[holders[0]] if len(holders) == 1 else None

    def refresh(self) -> None:
        """Apply what has changed in the network service, e.g. security groups; called periodically."""
        try:
            with self.locked() as ports:
                if ports.known or ports.bridges:
                    self.try_to_bring_about(ports)
        except HypervisorError as error:
            LOG.warning(AMISS, error)

    # ------------------------------------------------------------ the desired state

    @contextmanager
    def locked(self) -> Iterator['PortsHere']:
        """The ports that are here, under the lock; HypervisorError if it takes too long to get it."""
        with changing(self.folder):
            yield PortsHere(self.path)

    @property
    def path(self) -> Path:
        return self.folder / 'ports.json'

    def try_to_bring_about(self, ports: 'PortsHere') -> None:
        """Apply the desired state; failures are logged and retried at the next occasion."""
        try:
            problems = self.bring_about(ports)
        except HypervisorError as error:
            LOG.warning(AMISS, error)
        else:
            for port_id in problems.keys() - self.said.keys():
                LOG.warning('Port %s could not be connected: %s', port_id, problems[port_id])
            self.said = problems

    def bring_about(self, ports: 'PortsHere') -> dict[str, str]:
        """Apply what the network service wants for these ports; returns why some are not connected, by port."""
        wanted = read(self.service, Context().elevated(), ports.known.keys())
        bridges, taps = {each.bridge for each in wanted.segments.values()}, {wire.tap for wire in wanted.wires}
        self.remove_others(ports, bridges, taps)
        ways = links.ways()
        wiring, refused = admitted(wanted, ports.subnets, ways, self.within)
        ports.write(bridges, taps, {subnet.id for each in wiring.segments.values() for subnet in each.subnets})
        others = [network for network, link in ways if link not in bridges]
        broken = {each.id: problem_of(self.bridge, each, wiring, others) for each in wiring.segments.values()}
        self.guard(ports, wiring)
        ports.save()
        unknown = ports.known.keys() - {wire.port_id for wire in wanted.wires}
        problems = {port_id: f'The network service knows no port {port_id}.' for port_id in unknown}
        return problems | self.plug_in_all(wanted, refused | broken)

    def bridge(self, segment: Segment, wiring: Wiring, others: Iterable[IPv4Network]) -> None:
        """others: networks that the host reaches by other links."""
        links.make_bridge(segment.bridge, segment.mtu)
        links.lead_to_loopback(segment.bridge, leads=self.metadata_port is not None)
        # The host acts as the outside gateway, too, unless it reaches that address by another link.
        outside = [f'{gateway}/32' for gateway in segment.outside if not any(gateway in other for other in others)]
        links.set_addresses(segment.bridge, [*firewall.addresses_of(segment, wiring), *outside])
        DhcpServer(self.folder, segment.bridge).serve(segment, wiring.wires_of(segment))

    def guard(self, ports: 'PortsHere', wiring: Wiring) -> None:
        if not wiring.wires:
            for family in ('bridge', 'ip'):
                run(
                    'nft',
                    '--file',
                    '-',
                    stdin=f'add table {family} {firewall.TABLE}\ndelete table {family} {firewall.TABLE}\n',
                )
            return
        links.forward()
        run('nft', 'add', 'table', 'bridge', firewall.TABLE)
        there = firewall.listed(json.loads(run('nft', '--json', '--terse', 'list', 'table', 'bridge', firewall.TABLE)))
        changed = ports.changed({wire.tap: digest_of(wire) for wire in wiring.wires})
        forgotten = [tap for tap in changed if f'set {firewall.sets_of(tap)[0]}' in there]
        run(
            'nft',
            '--file',
            '-',
            stdin=firewall.guard(wiring, there, forgotten) + firewall.route(wiring, self.metadata_port),
        )

    def plug_in_all(self, wiring: Wiring, amiss: Mapping[str, str | None]) -> dict[str, str]:
        """Connect the ports once their rules are in place. amiss: why a subnet or a network is not here, by ID."""
        problems = {}
        for wire in wiring.wires:
            around = [*(subnet_id for subnet_id, _ in wire.addresses), wire.network_id]
            reason = next(filter(None, map(amiss.get, around)), None)
            problem = reason or problem_of(self.plug_in, wire, wiring.segments[wire.network_id])
            if problem:
                problems[wire.port_id] = problem
        return problems

    def plug_in(self, wire: Wire, segment: Segment) -> None:
        links.make_tap(wire.tap, segment.mtu)
        links.put_on(wire.tap, segment.bridge)

    def remove_others(self, ports: 'PortsHere', bridges: set[str], taps: set[str]) -> None:
        """Remove what is here and no longer wanted; whatever cannot be removed stays recorded."""
        problems = [problem_of(links.remove, tap) for tap in ports.taps - taps]
        problems += [problem_of(self.remove_bridge, bridge) for bridge in ports.bridges - bridges]
        for problem in filter(None, problems):
            LOG.warning(AMISS, problem)

    def remove_bridge(self, bridge: str) -> None:
        DhcpServer(self.folder, bridge).end()
        links.remove(bridge)


def problem_of(do: Callable[..., None], *arguments: Any) -> str | None:
    """The error message, if any: a failure of one network or port must not affect others."""
    try:
        do(*arguments)
    except (HypervisorError, OSError) as error:
        return str(error)
    return None


class PortsHere:
    """The record of what is on the host, kept in a file.

    known: server ID by port ID.  bridges, taps: links that were created, or were about to be.  subnets: the IDs of the
    subnets on them.  digests: by tap, of its current rules."""

    def __init__(self, path: Path):
        self.path = path
        found = json.loads(path.read_bytes()) if path.exists() else {}
        self.known: dict[str, str] = found.get('ports', {})
        self.bridges, self.taps = set(found.get('bridges', ())), set(found.get('taps', ()))
        self.subnets = set(found.get('subnets', ()))
        self.digests: dict[str, str] = found.get('digests', {})

    def add(self, port_id: str, server_id: str) -> None:
        self.known[port_id] = server_id
        self.save()

    def remove(self, port_id: str) -> None:
        self.known.pop(port_id, None)
        self.save()

    def changed(self, digests: dict[str, str]) -> list[str]:
        """The taps whose rules have changed; records the new digests."""
        former, self.digests = self.digests, digests
        return [tap for tap, digest in digests.items() if former.get(tap) != digest]

    def write(self, bridges: set[str], taps: set[str], subnets: set[str]) -> None:
        """Record what is to be here; links that were recorded before and still exist stay recorded."""
        left = links.names()
        self.bridges, self.taps, self.subnets = bridges | self.bridges & left, taps | self.taps & left, subnets
        self.save()

    def save(self) -> None:
        facts = {
            'ports': self.known,
            'bridges': sorted(self.bridges),
            'taps': sorted(self.taps),
            'subnets': sorted(self.subnets),
            'digests': self.digests,
        }
        write(self.path, json.dumps(facts).encode())


def digest_of(wire: Wire) -> str:
    return hashlib.sha256(repr(wire.rules).encode()).hexdigest()
