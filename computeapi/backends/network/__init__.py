"""Networks, ports, security groups and floating IPs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Protocol

from computeapi.backends.network.nova_network import NovaNetworkOperations
from computeapi.context import Context

Document = Mapping[str, Any]
"""A resource in Neutron's format; each record has a method `of` that converts one."""

Allocation = str | Mapping[str, str]
"""The provider in Placement that has the resources which a port requests; by request ID, if it has several."""
ALLOCATION = 'allocation'

MARK = 'compute:'
"""The prefix of the descriptions of ports that compute created."""

NetworkListener = Callable[[Context, Collection[str]], None]
"""Called after a change, with its context and the servers affected. It may be called again for the same change."""


@dataclass(frozen=True)
class Network:
    """A network as Neutron knows it; `subnets` are dicts with id, cidr, ip_version, gateway_ip, dns_nameservers.

    `resource_request` is what a port created on it requests from a host (None: nothing).
    """

    id: str
    name: str
    project_id: str
    shared: bool = False
    external: bool = False
    admin_state_up: bool = True
    port_security_enabled: bool = True
    mtu: int = 1500
    subnets: Sequence[Mapping[str, Any]] = ()
    created_at: datetime | None = None
    resource_request: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls, document: Document, subnets: Sequence[Document], resource_request: Mapping[str, Any] | None = None
    ) -> Network:
        facts = {
            'external': document['router:external'],
            'subnets': tuple(subnets),
            'resource_request': resource_request,
        }
        return cls(**alike(cls, document) | facts)

    @property
    def is_outside(self) -> bool:
        """Whether projects other than its owner may route to it, but not attach servers to it."""
        return self.external and not self.shared


@dataclass(frozen=True)
class Port:
    """A port; `fixed_ips` are dicts with subnet_id and ip_address, `floating_ips` the floating addresses that lead to
    it, if the query included them.

    `security_groups` are IDs; a port without port security cannot have any. `resource_request` is what the port
    requests from a host (None: nothing). `made` says that compute created it, as far as that is visible.
    """

    id: str
    network_id: str
    network_name: str
    project_id: str
    mac_address: str
    name: str = ''
    status: str = 'DOWN'
    device_id: str = ''
    device_owner: str = ''
    host: str | None = None
    fixed_ips: Sequence[Mapping[str, str]] = ()
    floating_ips: Sequence[str] = ()
    security_groups: Sequence[str] = ()
    admin_state_up: bool = True
    port_security_enabled: bool = True
    resource_request: Mapping[str, Any] | None = None
    mtu: int = 1500
    made: bool = False

    @classmethod
    def of(cls, document: Document, network: Document, floating_ips: Sequence[str]) -> Port:
        """network: the port's network."""
        facts = {
            'made': document.get('description', '').startswith(MARK),
            'network_name': network['name'],
            'mtu': network['mtu'],
            'host': document.get('binding:host_id') or None,
            'floating_ips': tuple(floating_ips),
        }
        return cls(**alike(cls, document) | facts)


@dataclass(frozen=True)
class PortBinding:
    """How a port is plugged in on a host: Neutron's `vif_type`, with the details for it."""

    network_id: str
    project_id: str
    mtu: int
    vif_type: str
    vif_details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SecurityGroup:
    """`rules` are dicts with id, direction, ethertype, protocol, port_range_min, port_range_max, remote_ip_prefix,
    remote_group_id."""

    id: str
    name: str
    description: str
    project_id: str
    rules: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, document: Document) -> SecurityGroup:
        return cls(**alike(cls, document), rules=tuple(document['security_group_rules']))


@dataclass(frozen=True)
class FloatingIP:
    id: str
    address: str
    network_id: str
    network_name: str
    project_id: str
    port_id: str | None = None
    fixed_address: str | None = None
    server_id: str | None = None
    status: str = 'DOWN'
    tags: Sequence[str] = field(default_factory=tuple)

    @classmethod
    def of(cls, document: Document, network: Document) -> FloatingIP:
        """network: the external network of the address."""
        facts = {
            'address': document['floating_ip_address'],
            'network_id': document['floating_network_id'],
            'network_name': network['name'],
            'fixed_address': document.get('fixed_ip_address'),
            'server_id': (document.get('port_details') or {}).get('device_id') or None,
        }
        return cls(**alike(cls, document) | facts)


def profile_of(profile: Document, allocation: Allocation | None = None) -> dict[str, Any]:
    """The binding profile of a port with this allocation; *profile* is the previous one."""
    others = {name: value for name, value in profile.items() if name != ALLOCATION}
    return others if allocation is None else others | {ALLOCATION: allocation}


def owner_of(zone: str | None) -> str:
    """The device_owner of ports of servers in this availability zone."""
    return f'compute:{zone or "nova"}'


def alike(record: Any, document: Document) -> dict[str, Any]:
    """The fields that the document and the record share; lists become tuples, as records are immutable."""
    named = {each.name: document[each.name] for each in fields(record) if each.name in document}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in named.items()}


class Networks(NovaNetworkOperations, Protocol):
    """Queries are restricted to the caller's project and what is shared with it (an administrator sees all).

    Errors: NetworkNotFound, PortNotFound, SecurityGroupNotFound, FloatingIPNotFound, PortInUse, AddressInUse,
    NoMoreAddresses, FloatingIPInUse, Unreachable, Invalid, OverQuota, NotSupported.
    """

    def networks(self, context: Context, ids: Iterable[str] | None = None) -> list[Network]:
        """The networks with these IDs that the caller may use, in one query; None: those that servers of the caller's
        project are attached to by default (its own and shared ones, not external ones)."""

    def network(self, context: Context, network_id: str) -> Network: ...

    def auto_network(self, context: Context) -> Network:
        """The network for `networks: auto`: the only one that the project can use, or one that is created for it if it
        has none. MultipleNetworks if there is a choice, Invalid if none can be created."""

    def check_auto_network(self, context: Context) -> None:
        """Invalid if no network could be created for the project."""

    def port(self, context: Context, port_id: str) -> Port:
        """Without its floating IPs."""

    def ports(
        self,
        context: Context,
        *,
        ids: Iterable[str] | None = None,
        addresses: Iterable[str] | None = None,
        server_ids: Iterable[str] | None = None,
        key: str | None = None,
        floating: bool = False,
    ) -> list[Port]:
        """Ports by ID, by their addresses on any network, or by the servers that have them, oldest first, in a constant
        number of queries. With server_ids, *key* selects only the ports that were created under it.

        floating: include their floating IPs, which may take one more query."""

    def create_port(
        self,
        context: Context,
        network_id: str,
        *,
        server_id: str,
        project_id: str | None = None,
        host: str | None = None,
        zone: str | None = None,
        name: str = '',
        fixed_ip: str | None = None,
        security_groups: Sequence[str] = (),
        hostname: str | None = None,
        key: str | None = None,
    ) -> Port:
        """Create a port of the server, with an address of each IP version that the network has (or with `fixed_ip`),
        bound to its host. It is created as the caller and bound as this service. PortBindingFailed leaves the port.

        project_id: its project, if not the caller's.  `security_groups` are IDs; none means the project's default
        group.  zone: of the host.

        The network service chooses the port's ID. The key, a short text, identifies the port among those of the server:
        a call that is repeated with the same key, as after a crash, returns the existing port. With a Neutron the key
        is in the description, which is set at creation and looked up beforehand, together with the device_id."""

    def bind_port(
        self,
        context: Context,
        port_id: str,
        *,
        server_id: str,
        host: str | None,
        zone: str | None = None,
        hostname: str | None = None,
        allocation: Allocation | None = None,
    ) -> Port:
        """Attach an existing port to the server and bind it to a host (ACTIVE, at once or when something there has
        connected it), or to none; PortInUse if another server has it, PortBindingFailed. Binding it again, also to
        another host, is no error.  allocation: where on the host the port has the resources that it requests, if
        any."""

    def add_binding(self, context: Context, port_id: str, host: str, *, allocation: Allocation | None = None) -> bool:
        """Prepare the port on a second host, to which its server is moving; returns whether the network service will
        report (network-vif-plugged) when it is connected there. Idempotent; PortBindingFailed, PortNotFound.

        allocation: where on that host the port has the resources that it requests, if any."""

    def activate_binding(self, context: Context, port_id: str, host: str) -> None:
        """Switch the port to this host, which has a binding. Idempotent; NotFound if there is no such binding."""

    def delete_binding(self, context: Context, port_id: str, host: str) -> None:
        """Delete the inactive binding of the port to this host; no error if there is none."""

    def unbind_port(self, context: Context, port_id: str) -> None:
        """Detach the port from its server without deleting it; no error if it is gone."""

    def delete_port(self, context: Context, port_id: str) -> None:
        """Delete the port, release its addresses and dissociate its floating IPs; no error if it is gone."""

    def add_fixed_ip(self, context: Context, port_id: str) -> Port:
        """Add one more address to the port."""

    def remove_fixed_ip(self, context: Context, port_id: str, address: str) -> Port:
        """Remove the address from the port; no error if the port does not have it."""

    def security_groups(
        self,
        context: Context,
        *,
        ids: Iterable[str] | None = None,
        names_or_ids: Iterable[str] | None = None,
        all_projects: bool = False,
    ) -> list[SecurityGroup]:
        """The project's groups (its default group is created on first use); with names_or_ids those, where an unknown
        one raises SecurityGroupNotFound and an ambiguous name Conflict; with all_projects all that the caller may
        see."""

    def security_group_names(self, context: Context, ids: Iterable[str]) -> Mapping[str, str]:
        """The names of those of the groups that the caller may see, by ID."""

    def security_group(self, context: Context, group_id: str) -> SecurityGroup: ...

    def create_security_group(self, context: Context, name: str, description: str) -> SecurityGroup: ...

    def update_security_group(self, context: Context, group_id: str, **kwargs: str) -> SecurityGroup: ...

    def delete_security_group(self, context: Context, group_id: str) -> None: ...

    def create_security_group_rule(self, context: Context, group_id: str, **kwargs: Any) -> Mapping[str, Any]: ...

    def delete_security_group_rule(self, context: Context, rule_id: str) -> None: ...

    def set_port_security_groups(self, context: Context, port_id: str, group_ids: Sequence[str]) -> Port: ...

    def floating_ips(self, context: Context, *, addresses: Iterable[str] | None = None) -> list[FloatingIP]: ...

    def floating_ip(self, context: Context, floating_ip_id: str) -> FloatingIP: ...

    def create_floating_ip(self, context: Context, pool: str | None = None) -> FloatingIP:
        """Create one from the external network with that name or ID (FloatingIPPoolNotFound); None: the first one."""

    def associate_floating_ip(
        self, context: Context, address: str, port_id: str, fixed_address: str | None = None
    ) -> FloatingIP: ...

    def disassociate_floating_ip(self, context: Context, address: str) -> FloatingIP: ...

    def delete_floating_ip(self, context: Context, floating_ip_id: str) -> None: ...

    def floating_ip_pools(self, context: Context) -> list[Network]:
        """The external networks."""

    def ports_left(self, context: Context, project_id: str) -> int | None:
        """How many more ports the project may have; None if unlimited."""

    def quotas(self, context: Context, project_id: str) -> Mapping[str, Mapping[str, int]]:
        """By the names in compute's proxy APIs (floating_ips, security_groups, security_group_rules, networks, ports):
        dicts with limit and in_use."""
