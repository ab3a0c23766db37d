"""What stands behind the network cards of guests.

A kind of network is told of each interface (an entry of network_info) before the card is there, and after it has gone.
"""

import ipaddress
from collections.abc import Mapping
from typing import Any, Protocol

from computeapi.backends.hypervisor.qemu.forwarding import Forwarding

Interface = Mapping[str, Any]
# As many hosts as the network of a guest in user mode has, whatever that of its address has.
PREFIX = 24


class GuestNetworks(Protocol):
    """Each method may be called again after it was cut short. Errors: HypervisorError."""

    def set_up(self, server_id: str, interface: Interface) -> None:
        """Make on the host what `netdev` names. It may be there from before the host was restarted, or not."""

    def netdev(self, server_id: str, interface: Interface) -> dict[str, Any]:
        """The arguments of QMP's netdev_add, without the id."""

    def card(self, server_id: str, interface: Interface) -> dict[str, Any]:
        """More properties of the card, e.g. its mtu."""

    def tear_down(self, server_id: str, interface: Interface) -> None:
        """Leave nothing of it on the host; what is gone is no error."""

    def counters(self, server_id: str, interface: Interface) -> Mapping[str, int]:
        """INTERFACE_COUNTERS as the guest sees them, less what is not known."""

    def guest_at(self, address: str) -> str | None:
        """The server whose guest can speak to the host from that address, and nobody else."""

    def refresh(self) -> None:
        """Let the host be as the network service says now; asked now and then, beside what guests are told."""


class UserMode:
    """QEMU itself is the network, without any privileges: a guest has its own address, and sees no other guest.

    way_out: whether it reaches what the host's processes reach, their services on the loopback among them; QEMU cannot
    tell these from the rest. Else it reaches nothing.  forwarding: by what ports of this machine it is reached.
    """

    def __init__(self, *, way_out: bool, forwarding: Forwarding | None = None):
        self.way_out, self.forwarding = way_out, forwarding

    def set_up(self, server_id: str, interface: Interface) -> None:
        """It comes and goes with its QEMU."""

    tear_down = set_up

    def refresh(self) -> None:
        if self.forwarding is not None:
            self.forwarding.refresh()

    def guest_at(self, address: str) -> str | None:
        """It speaks to nobody."""
        return None

    def netdev(self, server_id: str, interface: Interface) -> dict[str, Any]:
        found = {'type': 'user', 'restrict': not self.way_out, 'ipv6': False}
        fixed = next((each['address'] for each in interface.get('addresses', ()) if each['version'] == 4), None)
        return found if fixed is None else found | addresses(fixed)

    def card(self, server_id: str, interface: Interface) -> dict[str, Any]:
        return {}

    def counters(self, server_id: str, interface: Interface) -> Mapping[str, int]:
        return {}


def addresses(fixed: str) -> dict[str, str]:
    """A network around the address, which is the only one that is given away: its router is the first host, its name
    server the last one, or each the next to it where that is the guest."""
    network = ipaddress.ip_network(f'{fixed}/{PREFIX}', strict=False)
    first, last = network.network_address + 1, network.broadcast_address - 1
    guest = ipaddress.ip_address(fixed)
    router, names = (first + (first == guest), last - (last == guest))
    return {'net': str(network), 'host': str(router), 'dns': str(names), 'dhcpstart': fixed}
