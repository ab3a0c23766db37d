"""Networks as bridges of the host: one for each network, a tap for each port, a DHCP server beside them, and nftables.

    wires     what the network service says of the ports here
    links     bridges, taps, addresses
    taps      what guests are told of theirs
    dhcp      who gives guests their addresses
    firewall  which packets pass, and under which address they leave
    command   programs that are run

What is wanted is always told as a whole: which ports are here is noted in a folder, all else is asked of the network
service. So it does not matter what was there, or who died in the middle of it.
"""

import hashlib
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.bridges import firewall, links
from computeapi.backends.hypervisor.qemu.bridges.command import run
from computeapi.backends.hypervisor.qemu.bridges.dhcp import DhcpServer
from computeapi.backends.hypervisor.qemu.bridges.taps import Interface, Taps, changing, port_of, tap_of
from computeapi.backends.hypervisor.qemu.bridges.wires import Documents, Segment, Wire, Wiring, read
from computeapi.backends.whole_files import write
from computeapi.context import Context

LOG = logging.getLogger(__name__)
AMISS = 'The networks of the host are not as they should be: %s'


class Bridges(Taps):
    """folder: where it is noted what is here.  service: the network service.

    metadata_port: of the loopback, where guests are answered that ask the metadata address; None: nobody does."""

    def __init__(self, folder: Path, service: Documents, metadata_port: int | None = None):
        self.folder, self.service, self.metadata_port = folder, service, metadata_port

    # ------------------------------------------------------------ what the driver asks

    def set_up(self, server_id: str, interface: Interface) -> None:
        port_id = port_of(interface)
        with self.locked() as ports:
            ports.add(port_id, server_id)
            wiring = self.bring_about(ports)
            if not any(wire.port_id == port_id for wire in wiring.wires):
                raise HypervisorError(f'The network service knows no port {port_id}.')

    def tear_down(self, server_id: str, interface: Interface) -> None:
        with self.locked() as ports:
            port_id = port_of(interface)
            ports.remove(port_id)
            links.remove(tap_of(port_id))
            self.try_to_bring_about(ports)

    def guest_at(self, address: str) -> str | None:
        """Networks of one host do not overlap, and only who holds an address asks for metadata from it."""
        known = PortsHere(self.path).known
        held = self.service.find(Context().elevated(), 'ports', {'id': sorted(known)}) if known else []
        holders = [port['id'] for port in held if address in {each['ip_address'] for each in port['fixed_ips']}]
        return known[holders[0]] if len(holders) == 1 else None

    def refresh(self) -> None:
        """What changed in the network service since, e.g. security groups; asked now and then."""
        try:
            with self.locked() as ports:
                if ports.known or ports.bridges:
                    self.bring_about(ports)
        except HypervisorError as error:
            LOG.warning(AMISS, error)

    # ------------------------------------------------------------ what is wanted, and made so

    @contextmanager
    def locked(self) -> Iterator['PortsHere']:
        """The ports that are here, while nobody else changes anything; HypervisorError when that takes too long."""
        with changing(self.folder):
            yield PortsHere(self.path)

    @property
    def path(self) -> Path:
        return self.folder / 'ports.json'

    def try_to_bring_about(self, ports: 'PortsHere') -> None:
        """What goes wrong is tried again at the next occasion."""
        try:
            self.bring_about(ports)
        except HypervisorError as error:
            LOG.warning(AMISS, error)

    def bring_about(self, ports: 'PortsHere') -> Wiring:
        """Let the host be as the network service wants it for these ports."""
        wiring = read(self.service, Context().elevated(), ports.known.keys())
        bridges = {segment.bridge for segment in wiring.segments.values()}
        taps = {wire.tap for wire in wiring.wires}
        self.remove_others(ports, bridges, taps)
        ports.write(bridges, taps)
        for segment in wiring.segments.values():
            self.bridge(segment, wiring)
        self.guard(ports, wiring)
        # A guest is plugged in when all is there that guards it.
        for wire in wiring.wires:
            segment = wiring.segments[wire.network_id]
            links.make_tap(wire.tap, segment.mtu)
            links.put_on(wire.tap, segment.bridge)
        ports.keep()
        return wiring

    def bridge(self, segment: Segment, wiring: Wiring) -> None:
        ours = {each.bridge for each in wiring.segments.values()}
        for subnet in segment.subnets:
            links.check_free(subnet.network, {segment.bridge})
            for other in wiring.segments.values():
                if other.bridge != segment.bridge and any(subnet.network.overlaps(o.network) for o in other.subnets):
                    raise HypervisorError(f'Two networks of the host overlap at {subnet.network}: {sorted(ours)}.')
        links.make_bridge(segment.bridge, segment.mtu)
        links.lead_to_loopback(segment.bridge, leads=self.metadata_port is not None)
        # The host is the world outside, too, but where there is another one.
        outside = [f'{gateway}/32' for gateway in segment.outside if not links.is_elsewhere(gateway, ours)]
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

    def remove_others(self, ports: 'PortsHere', bridges: set[str], taps: set[str]) -> None:
        """What was here and is not wanted any more."""
        for tap in ports.taps - taps:
            links.remove(tap)
        for bridge in ports.bridges - bridges:
            DhcpServer(self.folder, bridge).end()
            links.remove(bridge)


class PortsHere:
    """What is on the host, as a file keeps it.

    known: the servers of ports, by port.  bridges, taps: links that were made, or were to be.  digests: by tap, of the
    rules that hold."""

    def __init__(self, path: Path):
        self.path = path
        found = json.loads(path.read_bytes()) if path.exists() else {}
        self.known: dict[str, str] = found.get('ports', {})
        self.bridges, self.taps = set(found.get('bridges', ())), set(found.get('taps', ()))
        self.digests: dict[str, str] = found.get('digests', {})

    def add(self, port_id: str, server_id: str) -> None:
        self.known[port_id] = server_id
        self.keep()

    def remove(self, port_id: str) -> None:
        self.known.pop(port_id, None)
        self.keep()

    def changed(self, digests: dict[str, str]) -> list[str]:
        """Those with other rules than before; these are what holds from now on."""
        former, self.digests = self.digests, digests
        return [tap for tap, digest in digests.items() if former.get(tap) != digest]

    def write(self, bridges: set[str], taps: set[str]) -> None:
        self.bridges, self.taps = bridges, taps
        self.keep()

    def keep(self) -> None:
        facts = {
            'ports': self.known,
            'bridges': sorted(self.bridges),
            'taps': sorted(self.taps),
            'digests': self.digests,
        }
        write(self.path, json.dumps(facts).encode())


def digest_of(wire: Wire) -> str:
    return hashlib.sha256(repr(wire.rules).encode()).hexdigest()
