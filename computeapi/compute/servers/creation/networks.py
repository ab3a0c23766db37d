"""The networks, ports and security groups that are requested for a new server."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from computeapi.backends.network import Network, Networks, Port
from computeapi.compute.servers.creation.request import NetworkRequest, Rights, ServerRequest
from computeapi.context import Context
from computeapi.errors import (
    Invalid,
    MultipleNetworks,
    NetworkNotFound,
    OverQuota,
    PortInUse,
    PortNotFound,
)

AUTO, NONE = 'auto', 'none'
RequestedInterfaces = str | list[dict[str, Any]]


class RequestedNetworks:
    """Checks the networks of a request, and completes their description."""

    def __init__(self, networks: Networks):
        self.networks = networks

    def complete(self, context: Context, request: ServerRequest, rights: Rights) -> RequestedInterfaces:
        """'auto', 'none', or for each interface network_id or port_id, fixed_ip, tag, and is_outside.

        Invalid, NetworkNotFound, PortNotFound, PortInUse, MultipleNetworks."""
        if request.networks == NONE:
            return NONE
        if not request.networks or request.networks == AUTO:
            return self.only_network(context, automatic=request.networks == AUTO)
        assert not isinstance(request.networks, str)
        check_combinations(request.networks, several=request.max_count > 1)
        ports = self.check_ports(context, {each.port_id for each in request.networks if each.port_id}, rights)
        found = self.check_networks(context, {each.network_id for each in request.networks if each.network_id})
        self.check_addresses(context, {(each.network_id, each.fixed_ip) for each in request.networks if each.fixed_ip})
        if not rights.external_networks:
            found |= self.around(context, ports.values())
        on = {port.id: port.network_id for port in ports.values()}
        return [
            interface(each, found.get(each.network_id or on.get(each.port_id or '', ''))) for each in request.networks
        ]

    def only_network(self, context: Context, *, automatic: bool) -> RequestedInterfaces:
        """The default without requested networks: the only network that the project can use, or none."""
        usable = self.networks.networks(context)
        if len(usable) > 1:
            raise MultipleNetworks()
        for network in usable:
            check_bandwidth(network)
        if automatic and not usable:
            self.networks.check_auto_network(context)
        return AUTO if automatic else [interface(NetworkRequest(network_id=network.id), network) for network in usable]

    def check_ports(self, context: Context, ids: Collection[str], rights: Rights) -> dict[str, Port]:
        """The ports, by ID."""
        found = {port.id: port for port in self.networks.ports(context, ids=ids)} if ids else {}
        for port_id in sorted(ids):
            if port_id not in found:
                raise PortNotFound(id=port_id)
            check_port(found[port_id], rights)
        return found

    def around(self, context: Context, ports: Collection[Port]) -> dict[str, Network]:
        """The networks of these ports, by ID, whether the caller sees them or not."""
        ids = {port.network_id for port in ports}
        return {network.id: network for network in self.networks.networks(context.elevated(), ids)} if ids else {}

    def check_networks(self, context: Context, ids: Collection[str]) -> dict[str, Network]:
        """The networks, by ID."""
        found = {network.id: network for network in self.networks.networks(context, ids)} if ids else {}
        missing = sorted(set(ids) - found.keys())
        for network in found.values():
            if not network.subnets:
                raise Invalid(f'Network {network.id} requires a subnet in order to boot instances on.')
            check_bandwidth(network)
        if missing:
            raise NetworkNotFound(id=', '.join(missing))
        return found

    def check_addresses(self, context: Context, wanted: Collection[tuple[str | None, str | None]]) -> None:
        """Invalid for an address that a port already has, as far as the caller may know."""
        addresses = {address for _, address in wanted if address}
        for port in self.networks.ports(context, addresses=addresses) if addresses else ():
            for held in port.fixed_ips:
                if (port.network_id, held['ip_address']) in wanted:
                    raise Invalid(
                        f'Fixed IP address {held["ip_address"]} is already in use on instance {port.device_id}.'
                    )

    def room(self, context: Context, wanted: RequestedInterfaces, min_count: int, max_count: int) -> int:
        """For how many servers, from *min_count* to *max_count*, the project can have ports; OverQuota."""
        each = ports_to_make(wanted)
        if not each or not context.project_id:
            return max_count
        left = self.networks.ports_left(context, context.project_id)
        possible = max_count if left is None else min(max_count, left // each)
        if possible < min_count:
            raise OverQuota('Maximum number of ports exceeded')
        return possible

    def security_groups(self, context: Context, names_or_ids: Sequence[str]) -> list[str]:
        """The IDs of the groups; an empty list means the default group."""
        if not names_or_ids:
            return []
        return [group.id for group in self.networks.security_groups(context, names_or_ids=names_or_ids)]


def interface(request: NetworkRequest, network: Network | None) -> dict[str, Any]:
    """The request for an interface, with all its facts; the network of a port only if servers may not be there."""
    if network is not None and network.is_outside:
        return {**asdict(request), 'network_id': network.id, 'is_outside': True}
    return {**asdict(request), 'is_outside': False}


def ports_to_make(wanted: RequestedInterfaces) -> int:
    if isinstance(wanted, str):
        return 1 if wanted == AUTO else 0
    return sum(each['port_id'] is None for each in wanted)


def check_combinations(wanted: Sequence[NetworkRequest], *, several: bool) -> None:
    """Refuse invalid combinations, regardless of existing networks and ports."""
    seen: set[str] = set()
    for each in wanted:
        if each.port_id is None:
            if each.network_id is None:
                raise Invalid("Bad network format: missing 'uuid'")
            continue
        if each.port_id in seen:
            raise Invalid(f"Port ID '{each.port_id}' was specified twice: you cannot attach a port multiple times.")
        if each.fixed_ip is not None:
            raise Invalid(
                f"Specified Fixed IP '{each.fixed_ip}' cannot be used with port '{each.port_id}': "
                'the two cannot be specified together.'
            )
        seen.add(each.port_id)
    if several:
        check_shareable(wanted)


def check_shareable(wanted: Sequence[NetworkRequest]) -> None:
    """An address or a port is for one server only."""
    if any(each.fixed_ip for each in wanted):
        raise Invalid('Failed to launch instances: max_count cannot be greater than 1 if an fixed_ip is specified.')
    if any(each.port_id for each in wanted):
        raise Invalid(
            'Failed to launch instances: Unable to launch multiple instances with a single configured port ID. '
            'Please launch your instance one by one with different ports.'
        )


def check_bandwidth(network: Network) -> None:
    """Invalid for a network whose new ports request resources: the host is chosen before they are created."""
    if network.resource_request:
        raise Invalid(
            f'Creating servers on networks with a QoS minimum bandwidth policy, like {network.id}, is not supported. '
            f'Create the port first.'
        )


def check_unused(port: Port) -> None:
    if port.device_id:
        raise PortInUse(id=port.id)


def check_port(port: Port, rights: Rights) -> None:
    check_unused(port)
    if not port.fixed_ips:
        raise Invalid(f'Port {port.id} requires a FixedIP in order to be used.')
    if port.resource_request and not rights.ports_with_resources:
        raise Invalid(
            'Creating servers with ports having resource requests, like a port with a QoS minimum bandwidth policy, '
            'is not supported until microversion 2.72.'
        )
