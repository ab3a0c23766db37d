"""The network interfaces of a server that is there already."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from computeapi.backends.network import Port
from computeapi.compute.servers.creation.networks import check_port
from computeapi.compute.servers.creation.request import Rights
from computeapi.compute.servers.life import check, locked
from computeapi.compute.states import ACTIVE, PAUSED, STOPPED, Change
from computeapi.compute.work import interfaces
from computeapi.compute.work.job import Job
from computeapi.context import Context
from computeapi.db import actions
from computeapi.db.servers import Server
from computeapi.errors import Forbidden, Invalid, MultipleNetworks, NoMoreAddresses, NotFound

if TYPE_CHECKING:
    from computeapi.compute.cloud import Cloud

ATTACHABLE = frozenset({ACTIVE, PAUSED, STOPPED})
ATTACH = Change('attach_interface', 'attach_interface', None, ATTACHABLE)
DETACH = Change('detach_interface', 'detach_interface', None, ATTACHABLE)
ADD_FIXED_IP = Change('addFixedIp', 'add_fixed_ip', None, None, None)
REMOVE_FIXED_IP = Change('removeFixedIp', 'remove_fixed_ip', None, None, None)


class Interface(NamedTuple):
    """A port of a server, and the tag that the server knows it by."""

    port: Port
    tag: str | None


class Interfaces:
    """Errors: NetworkNotFound, PortNotFound, PortInUse, AddressInUse, Invalid, Forbidden, and those of Life."""

    def __init__(self, cloud: Cloud):
        self.cloud, self.networks, self.life = cloud, cloud.networks, cloud.life

    def list(self, context: Context, server: Server) -> list[Interface]:
        tags = tags_of(server)
        ports = self.networks.ports(context.elevated(), server_ids=[server.uuid])
        return [Interface(port, tags.get(port.id)) for port in ports]

    def get(self, context: Context, server: Server, port_id: str) -> Interface:
        """NotFound also for a port of another server."""
        port = self.networks.port(context, port_id)
        if port.device_id != server.uuid:
            raise NotFound(f'Instance {server.uuid} does not have a port with id {port_id}')
        return Interface(port, tags_of(server).get(port_id))

    def attach(
        self,
        context: Context,
        server: Server,
        *,
        port_id: str | None = None,
        network_id: str | None = None,
        fixed_ip: str | None = None,
        tag: str | None = None,
        external_networks: bool = True,
    ) -> Interface:
        """Connect a port, or a new one on the network or on the only one there is; it is connected on return.

        external_networks: whether the caller may use networks to the outside that are not shared.
        """
        check(context, server, ATTACH)
        if port_id is None:
            network_id = self._network(context, network_id, external_networks)
        else:
            check_port(self.networks.port(context, port_id), Rights())
        wanted = {'port_id': port_id, 'network_id': network_id, 'fixed_ip': fixed_ip, 'tag': tag}
        entry = interfaces.planned(wanted, str(uuid.uuid4()))
        try:
            made = self._connect(self._begin(context, server, entry))
        except NoMoreAddresses as error:
            raise Invalid(str(error)) from None
        return Interface(self.networks.port(context.elevated(), made['port_id']), tag)

    def detach(self, context: Context, server: Server, port_id: str) -> None:
        """Let a worker disconnect the port; one that compute made is deleted."""
        self.life.begin(context, server, DETACH, {'port_id': port_id})

    def add_fixed_ip(self, context: Context, server: Server, network_id: str) -> None:
        """Let a worker add an address to the server's port on the network; whether it has one shows later."""
        self.life.begin(context, server, ADD_FIXED_IP, {'network_id': network_id})

    def remove_fixed_ip(self, context: Context, server: Server, address: str) -> None:
        self.life.begin(context, server, REMOVE_FIXED_IP, {'address': address})

    def _network(self, context: Context, network_id: str | None, external_networks: bool) -> str:
        """The network to make a port on; where none is named, the only one that the project can use."""
        usable = [self.networks.network(context, network_id)] if network_id else self.networks.networks(context)
        if not usable:
            raise Invalid(
                f"No specific network was requested and none are available for project '{context.project_id}'."
            )
        if len(usable) > 1:
            raise Invalid(MultipleNetworks.text)
        network = usable[0]
        if network.external and not network.shared and not external_networks:
            raise Forbidden(f'It is not allowed to create an interface on external network {network.id}')
        if not network.subnets:
            raise Invalid(f'Network {network.id} requires a subnet in order to boot instances on.')
        return network.id

    def _begin(self, context: Context, server: Server, entry: dict[str, Any]) -> Job:
        """Write down what will be connected, so that a worker does it if this process dies."""
        clock = self.life.clock
        with self.cloud.store.write() as connection:
            current = locked(connection, context, server, ATTACH)
            action_id = actions.start(connection, context, server.uuid, ATTACH.name, clock())
            arguments = {'interface': entry}
            task = self.cloud.tasks.add(
                connection, ATTACH.work, server.uuid, context, arguments, action_id=action_id, held=True
            )
        return Job(task, current, self.cloud, clock)

    def _connect(self, job: Job) -> dict[str, Any]:
        try:
            return interfaces.attach_one(job)
        except Exception:
            with self.cloud.store.write() as connection:
                job.close(connection, 'Error')
            raise
        finally:
            self.cloud.tasks.wake()


def tags_of(server: Server) -> dict[str, str | None]:
    return {entry['port_id']: entry.get('tag') for entry in server.network_info}
