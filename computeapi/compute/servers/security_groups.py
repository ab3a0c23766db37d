"""The security groups of a server, i.e. those of its ports."""

from collections.abc import Sequence

from computeapi.backends.network import Port, SecurityGroup
from computeapi.compute.platform import Platform
from computeapi.compute.security_groups import Group, in_full
from computeapi.compute.servers.addresses import Addresses
from computeapi.compute.servers.network_info import held
from computeapi.context import Context
from computeapi.db.servers import Server
from computeapi.errors import Invalid, SecurityGroupNotFound


class ServerSecurityGroupManager:
    """Errors: SecurityGroupNotFound, Conflict for a name that several groups have, Invalid for unsuitable ports."""

    def __init__(self, platform: Platform):
        self.networks, self.addresses = platform.networks, Addresses(platform)

    def list(self, context: Context, server: Server) -> list[Group]:
        """Each group once, with its rules."""
        # A caller who may see the server may see its groups, whichever project they belong to.
        seer = context.elevated()
        ids = {group_id for port in held(self.networks, seer, server) for group_id in port.security_groups}
        groups = self.networks.security_groups(seer, ids=ids) if ids else []
        return in_full(self.networks, seer, groups)

    def add(self, context: Context, server: Server, name_or_id: str) -> None:
        """Add the group to every port of the server."""
        group = self._called(context, name_or_id)
        ports = self._some_ports(context, server)
        if not all(port.port_security_enabled and port.fixed_ips for port in ports):
            raise Invalid(
                'Network requires port_security_enabled and subnet associated in order to apply security groups.'
            )
        others = [port for port in ports if group.id not in port.security_groups]
        if not others:
            raise Invalid(f"Invalid input for security_groups. Reason: Duplicate items in the list: '{group.id}'.")
        for port in others:
            self.networks.set_port_security_groups(context.elevated(), port.id, [*port.security_groups, group.id])
        self.addresses.refresh(context, [server.uuid])

    def remove(self, context: Context, server: Server, name_or_id: str) -> None:
        """Remove the group from every port of the server."""
        group = self._called(context, name_or_id)
        ports = self._some_ports(context, server)
        members = [port for port in ports if group.id in port.security_groups]
        if not members:
            raise SecurityGroupNotFound(f'Security group {name_or_id} not associated with the instance {server.uuid}')
        for port in members:
            rest = [other for other in port.security_groups if other != group.id]
            self.networks.set_port_security_groups(context.elevated(), port.id, rest)
        self.addresses.refresh(context, [server.uuid])

    def _some_ports(self, context: Context, server: Server) -> Sequence[Port]:
        ports = held(self.networks, context.elevated(), server)
        if not ports:
            raise SecurityGroupNotFound(f'instance_id {server.uuid} could not be found as device id on any ports')
        return ports

    def _called(self, context: Context, name_or_id: str) -> SecurityGroup:
        """The group of the caller's project with that name or ID."""
        try:
            return self.networks.security_groups(context, names_or_ids=[name_or_id])[0]
        except SecurityGroupNotFound:
            text = f'Security group {name_or_id} is not found for project {context.project_id}'
            raise SecurityGroupNotFound(text) from None
