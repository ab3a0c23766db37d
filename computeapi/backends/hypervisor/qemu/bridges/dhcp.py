"""The DHCP server of a network: one dnsmasq per network, which answers only the ports that it knows."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.bridges.command import run
from computeapi.backends.hypervisor.qemu.bridges.wires import Segment, Subnet, Wire
from computeapi.backends.hypervisor.qemu.detached_process import DetachedProcess

LEASE_SECONDS = 86400
ROUTER, NAME_SERVERS, MTU, ROUTES = 3, 6, 26, 121


class DhcpServer:
    """folder: holds the process's PID and a digest of its configuration."""

    def __init__(self, folder: Path, bridge: str):
        self.bridge = bridge
        self.number, self.digest = folder / f'{bridge}.pid', folder / f'{bridge}.dhcp'
        self.running = DetachedProcess(self.number, str(self.number))

    def serve(self, segment: Segment, wires: Sequence[Wire]) -> None:
        """Serve these ports; a running server with the same configuration is left alone."""
        configured = ''.join(f'{line}\n' for line in configuration(segment, wires))
        digest = hashlib.sha256(configured.encode()).hexdigest()
        if self.running.runs and self.digest.exists() and self.digest.read_text() == digest:
            return
        self.end()
        if any(map(is_served, segment.subnets)):
            # dnsmasq reads its configuration before it drops its privileges: the folder is not readable for everybody.
            run('dnsmasq', '--conf-file=-', f'--pid-file={self.number}', stdin=configured)
            self.digest.write_text(digest)

    def end(self) -> None:
        if not self.running.end():
            raise HypervisorError(f'The DHCP server of {self.bridge} could not be stopped.')
        self.digest.unlink(missing_ok=True)


def is_served(subnet: Subnet) -> bool:
    """The server uses the address of the router; a subnet without a gateway is not served."""
    return subnet.has_dhcp and subnet.gateway is not None


def configuration(segment: Segment, wires: Sequence[Wire]) -> Iterator[str]:
    served = {subnet.id: f'subnet{number}' for number, subnet in enumerate(segment.subnets) if is_served(subnet)}
    # dnsmasq answers DNS queries only if some subnet has no name servers of its own.
    asks_here = any(not subnet.name_servers for subnet in segment.subnets if subnet.id in served)
    yield f'interface={segment.bridge}'
    yield from ('except-interface=lo', 'bind-interfaces', 'no-hosts', 'leasefile-ro', 'dhcp-authoritative')
    yield from ('dhcp-ignore=tag:!known', 'no-ping', 'quiet-dhcp', *(() if asks_here else ('port=0',)))
    yield f'dhcp-option-force={MTU},{segment.mtu}'
    for subnet in segment.subnets:
        if subnet.id in served:
            yield from _subnet(subnet, served[subnet.id])
    for wire in wires:
        first = next((str(address) for subnet_id, address in wire.addresses if subnet_id in served), None)
        if first is not None:
            yield f'dhcp-host={wire.mac_address},{first},{LEASE_SECONDS}'


def _subnet(subnet: Subnet, tag: str) -> Iterator[str]:
    network = subnet.network
    yield f'dhcp-range=set:{tag},{network.network_address},static,{network.netmask},{LEASE_SECONDS}'
    yield f'dhcp-option=tag:{tag},{ROUTER},{subnet.gateway}'
    if subnet.name_servers:
        yield f'dhcp-option=tag:{tag},{NAME_SERVERS},{",".join(map(str, subnet.name_servers))}'
    if subnet.routes:
        # Clients that accept this option ignore the router option, so the default route is included.
        pairs = [*subnet.routes, ('0.0.0.0/0', subnet.gateway)]
        yield f'dhcp-option=tag:{tag},{ROUTES},{",".join(f"{to},{by}" for to, by in pairs)}'
