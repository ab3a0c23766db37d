"""Networks, ports, security groups and floating IPs: what connects servers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Protocol

from computeapi.backends.network.former import FormerNetworks
from computeapi.context import Context

Document = Mapping[str, Any]
"""A resource in Neutron's words; each record can be made `of` one."""

Allocation = str | Mapping[str, str]
"""The provider in Placement that has what a port asks for; by request, where it has several."""
ALLOCATION = 'allocation'

MARK = 'compute:'
"""What the description of a port begins with that compute made."""

NetworkListener = Callable[[Context, Collection[str]], None]
"""Is told, after the fact, whose change it was and which servers it touched. It may be told again."""


@dataclass(frozen=True)
class Network:
    """A network as Neutron knows it; `subnets` are dicts with id, cidr, ip_version, gateway_ip, dns_nameservers.

    `resource_request` is what a port that is made on it asks of a host (None: nothing).
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
        """Whether others than its project may route to it, and not live on it."""
        return self.external and not self.shared


@dataclass(frozen=True)
class Port:
    """A port; `fixed_ips` are dicts with subnet_id and ip_address, `floating_ips` addresses that lead to it, where the
    look-up was for them, too.

    `security_groups` are ids; a port without port security can be in none. `resource_request` is what the port asks
    of a host (None: nothing). `made` says that compute made it, where that can be seen.
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
        """network: that the port is on."""
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
    """How a port is plugged in on a host: `vif_type` as Neutron names it, with what is to be known for it."""

    network_id: str
    project_id: str
    mtu: int
    vif_type: str
    vif_details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SecurityGroup:
    """`rules` are dicts with id, direction, ethertype, protocol, port_range_min, port_range_max,
    remote_ip_prefix, remote_group_id."""

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
        """network: the external one that the address is from."""
        facts = {
            'address': document['floating_ip_address'],
            'network_id': document['floating_network_id'],
            'network_name': network['name'],
            'fixed_address': document.get('fixed_ip_address'),
            'server_id': (document.get('port_details') or {}).get('device_id') or None,
        }
        return cls(**alike(cls, document) | facts)


def profile_of(profile: Document, allocation: Allocation | None = None) -> dict[str, Any]:
    """What the binding of a port is to be told, where it was told this before."""
    others = {name: value for name, value in profile.items() if name != ALLOCATION}
    return others if allocation is None else others | {ALLOCATION: allocation}


def owner_of(zone: str | None) -> str:
    """The device_owner of ports that servers in this availability zone hold."""
    return f'compute:{zone or "nova"}'


def alike(record: Any, document: Document) -> dict[str, Any]:
    """What the document calls as the record does; lists as tuples, for a record does not change."""
    named = {each.name: document[each.name] for each in fields(record) if each.name in document}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in named.items()}


class Networks(FormerNetworks, Protocol):
    """Look-ups are bound to the caller's project and what is shared with it (an administrator sees all).

    Errors: NetworkNotFound, PortNotFound, SecurityGroupNotFound, FloatingIPNotFound, PortInUse, AddressInUse,
    NoMoreAddresses, FloatingIPInUse, Unreachable, Invalid, OverQuota, NotSupported.
    """

    def networks(self, context: Context, ids: Iterable[str] | None = None) -> list[Network]:
        """The networks with these ids that the caller may use, in one query; None: those that a server of the
        caller's project can be put on without being named (its own and shared ones, not external)."""

    def network(self, context: Context, network_id: str) -> Network: ...

    def auto_network(self, context: Context) -> Network:
        """The network that `networks: auto` means: the only one that the project can use, or one that is made for it
        when it has none. MultipleNetworks if there is a choice, Invalid if none can be made."""

    def check_auto_network(self, context: Context) -> None:
        """Invalid if no network could be made for the project."""

    def port(self, context: Context, port_id: str) -> Port:
        """Not for its floating IPs."""

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
        """Ports by id, by their addresses on whatever network, or by the servers that hold them, oldest first, in a
        constant number of queries; with the servers a key: only the port of each that was made under it.

        floating: their floating IPs are wanted, too, which may be one more query."""

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
        """A port held by the server, with an address of each IP version that the network has (or with `fixed_ip`), on
        its host. It is the caller's to make and the service's to bind. PortBindingFailed leaves the port.

        project_id: whose it is, if not the caller's.  `security_groups` are ids, none meaning the project's default
        group.  zone: of the host.

        The network service gives the port its id. The key, a short text, tells what the port is for among those of
        the server: a call that is made again under the same key, as after a crash, returns the port there is. On a
        Neutron the key is in the description, given as the port is made and looked for before, beside the
        device_id."""

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
        """Give an existing port to the server and put it on a host (ACTIVE, at once or when something there has
        connected it), or on none; PortInUse if another server holds it, PortBindingFailed. Binding it again, also to
        another host, is no error.  allocation: where on the host the port has what it asks for, if it does."""

    def add_binding(self, context: Context, port_id: str, host: str, *, allocation: Allocation | None = None) -> bool:
        """Let the port be ready on one more host, to which its server is going; whether the network service will tell
        (network-vif-plugged) when it is connected there. Again is no error; PortBindingFailed, PortNotFound.

        allocation: where on that host the port has what it asks for, if it does."""

    def activate_binding(self, context: Context, port_id: str, host: str) -> None:
        """From now on the port is used on this host, which a binding was added for. Again is no error; NotFound if
        there is no such binding."""

    def delete_binding(self, context: Context, port_id: str, host: str) -> None:
        """The port is not for this host, on which it is not used now; no error if it never was."""

    def unbind_port(self, context: Context, port_id: str) -> None:
        """Take the port from its server and leave it; no error if it is gone."""

    def delete_port(self, context: Context, port_id: str) -> None:
        """Free its addresses and dissociate its floating IPs; no error if it is gone."""

    def add_fixed_ip(self, context: Context, port_id: str) -> Port:
        """One more address on the port."""

    def remove_fixed_ip(self, context: Context, port_id: str, address: str) -> Port:
        """Take the address from the port; no error if it has another one only."""

    def security_groups(
        self,
        context: Context,
        *,
        ids: Iterable[str] | None = None,
        names_or_ids: Iterable[str] | None = None,
        all_projects: bool = False,
    ) -> list[SecurityGroup]:
        """The project's groups (its default group is made when first asked for); with names_or_ids those, where an
        unknown one is SecurityGroupNotFound and a name held twice Conflict; with all_projects all that the caller may
        see."""

    def security_group_names(self, context: Context, ids: Iterable[str]) -> Mapping[str, str]:
        """By id, what those of the groups are called that the caller may see."""

    def security_group(self, context: Context, group_id: str) -> SecurityGroup: ...

    def create_security_group(self, context: Context, name: str, description: str) -> SecurityGroup: ...

    def update_security_group(self, context: Context, group_id: str, **facts: str) -> SecurityGroup: ...

    def delete_security_group(self, context: Context, group_id: str) -> None: ...

    def create_security_group_rule(self, context: Context, group_id: str, **facts: Any) -> Mapping[str, Any]: ...

    def delete_security_group_rule(self, context: Context, rule_id: str) -> None: ...

    def set_port_security_groups(self, context: Context, port_id: str, group_ids: Sequence[str]) -> Port: ...

    def floating_ips(self, context: Context, *, addresses: Iterable[str] | None = None) -> list[FloatingIP]: ...

    def floating_ip(self, context: Context, floating_ip_id: str) -> FloatingIP: ...

    def create_floating_ip(self, context: Context, pool: str | None = None) -> FloatingIP:
        """From the external network of that name or id (FloatingIPPoolNotFound); None: the first one."""

    def associate_floating_ip(
        self, context: Context, address: str, port_id: str, fixed_address: str | None = None
    ) -> FloatingIP: ...

    def disassociate_floating_ip(self, context: Context, address: str) -> FloatingIP: ...

    def delete_floating_ip(self, context: Context, floating_ip_id: str) -> None: ...

    def floating_ip_pools(self, context: Context) -> list[Network]:
        """The external networks."""

    def ports_left(self, context: Context, project_id: str) -> int | None:
        """How many more ports the project may have; None for as many as it likes."""

    def quotas(self, context: Context, project_id: str) -> Mapping[str, Mapping[str, int]]:
        """By name as compute's proxies call them (floating_ips, security_groups, security_group_rules, networks,
        ports): dicts with limit and in_use."""
