"""The networks behind the cards of guests.

A network is set up for each interface (an entry of network_info) before its card exists, and torn down after it.
"""

import ipaddress
from collections.abc import Mapping
from typing import Any, Protocol

from computeapi.backends.hypervisor.qemu.forwarding import Forwarding

Interface = Mapping[str, Any]
# The network of a guest in user mode is a /24, whatever the subnet of its address is.
PREFIX = 24


class GuestNetworks(Protocol):
    """Every method is idempotent, also after an interruption. Errors: HypervisorError."""

    def set_up(self, server_id: str, interface: Interface) -> None:
        """Create what `netdev` refers to on the host. It may exist already, or be lost after a restart."""

    def netdev(self, server_id: str, interface: Interface) -> dict[str, Any]:
        """The arguments of QMP's netdev_add, without the ID."""

    def card(self, server_id: str, interface: Interface) -> dict[str, Any]:
        """More properties of the card, e.g. its mtu."""

    def tear_down(self, server_id: str, interface: Interface) -> None:
        """Remove all of it from the host; it is no error if it is gone."""

    def counters(self, server_id: str, interface: Interface) -> Mapping[str, int]:
        """INTERFACE_COUNTERS from the guest's point of view; unknown ones are omitted."""

    def guest_at(self, address: str) -> str | None:
        """The server whose guest, and nobody else, can contact the host from that address."""

    def refresh(self) -> None:
        """Apply the current state of the network service to the host; called periodically."""


class UserMode:
    """QEMU's user mode networking, which needs no privileges: a guest has its own address, and cannot reach other
    guests.

    way_out: whether it can reach whatever the host's processes can, including services on the host's loopback, which
    QEMU cannot tell apart; otherwise it reaches nothing.  forwarding: the ports of this machine by which it can be
    reached.
    """

    def __init__(self, *, way_out: bool, forwarding: Forwarding | None = None):
        self.way_out, self.forwarding = way_out, forwarding

    def set_up(self, server_id: str, interface: Interface) -> None:
        """The network exists as long as its QEMU."""

    tear_down = set_up

    def refresh(self) -> None:
        if self.forwarding is not None:
            self.forwarding.refresh()

    def guest_at(self, address: str) -> str | None:
        """These guests have no service to ask."""
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
    """A network around the address, which is the only one that DHCP assigns: the router is the first host, the name
    server the last one, or the one next to it if that is the guest's own address."""
    network = ipaddress.ip_network(f'{fixed}/{PREFIX}', strict=False)
    first, last = network.network_address + 1, network.broadcast_address - 1
    guest = ipaddress.ip_address(fixed)
    router, names = (first + (first == guest), last - (last == guest))
    return {'net': str(network), 'host': str(router), 'dns': str(names), 'dhcpstart': fixed}
