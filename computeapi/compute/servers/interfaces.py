"""The network interfaces of an existing server."""

import contextlib
from typing import Any, NamedTuple

from computeapi import randomness
from computeapi.backends.hypervisor import Capability
from computeapi.backends.network import Network, Port
from computeapi.compute.servers import addresses, leftovers, network_info, ports, provider_resources
from computeapi.compute.servers.changes import Changes, locked
from computeapi.compute.servers.creation.networks import check_unused
from computeapi.compute.tasks.fence import OVERTAKEN
from computeapi.compute.tasks.job import FAULT, Job, abandon
from computeapi.compute.tasks.transition import Transition, beside
from computeapi.context import Context
from computeapi.db import actions, allocations
from computeapi.db.servers import Server
from computeapi.errors import (
    Error,
    FixedIPNotFound,
    Invalid,
    MultipleNetworks,
    NeighbourAway,
    NetworkNotFoundForServer,
    NoMoreAddresses,
    NotFound,
    PortNotFound,
    Unavailable,
)
from computeapi.states import VMState

ATTACHABLE = frozenset({VMState.ACTIVE, VMState.PAUSED, VMState.STOPPED})


def not_attached(job: Job, error: Exception) -> None:
    """Release the port and the resources that it holds on the host."""
    if not job.arguments['interface']['created']:
        job.store.change(allocations.leave_ports, job.server.uuid, [job.arguments['interface']['port_id']])
    ports.take_away(job.platform.networks, job.elevated, job.server.uuid, job.arguments['interface'])
    abandon(job, error)


ATTACH_EVENT = 'compute_attach_interface'
ATTACH = Transition(
    'attach_interface',
    beside=True,
    allowed=ATTACHABLE,
    capability=Capability.ATTACH_INTERFACE,
    failed=not_attached,
)
DETACH = beside('detach_interface', allowed=ATTACHABLE, capability=Capability.ATTACH_INTERFACE)
ADD_FIXED_IP = beside('addFixedIp', while_doing=None, launched=False)
REMOVE_FIXED_IP = beside('removeFixedIp', while_doing=None, launched=False)


class Interface(NamedTuple):
    """A port of a server, and its device tag."""

    port: Port
    tag: str | None


class InterfaceManager:
    """Errors: NetworkNotFound, PortNotFound, PortInUse, FixedIPInUse, Invalid, Forbidden, and those of Changes."""

    def __init__(self, changes: Changes):
        self.changes, self.networks = changes, changes.platform.networks

    def list(self, context: Context, server: Server) -> list[Interface]:
        tags = tags_of(server)
        return [
            Interface(port, tags.get(port.id)) for port in network_info.held(self.networks, context.elevated(), server)
        ]

    def get(self, context: Context, server: Server, port_id: str) -> Interface:
        """NotFound, also for a port of another server."""
        port = self.networks.port(context, port_id)
        if not network_info.belongs(port, server):
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
        """Connect a port, or a new one on the given network or on the only one available; it is connected on return.

        external_networks: whether the caller may use external networks that are not shared.
        """
        self.changes.check(context, server, ATTACH)
        try:
            if port_id is None:
                network_id = self._usable_network(context, server, network_id, external_networks)
            else:
                self._check_port(context, port_id, external_networks)
        except Error as error:
            self._record_refusal(context, server, error)
            raise
        wanted = {'port_id': port_id, 'network_id': network_id, 'fixed_ip': fixed_ip, 'tag': tag}
        entry = network_info.planned(wanted, randomness.new_id())
        try:
            made = self._connect(self._begin(context, server, entry))
        except NoMoreAddresses as error:
            raise Invalid(str(error)) from None
        return Interface(self.networks.port(context.elevated(), made['port_id']), tag)

    def detach(self, context: Context, server: Server, port_id: str) -> None:
        """Let a worker disconnect the port; a port that compute created is deleted."""
        self.changes.begin(context, server, DETACH, {'port_id': port_id})

    def add_fixed_ip(self, context: Context, server: Server, network_id: str) -> None:
        """Let a worker add an address to the server's port on the network; whether it has such a port shows later."""
        self.changes.begin(context, server, ADD_FIXED_IP, {'network_id': network_id})

    def remove_fixed_ip(self, context: Context, server: Server, address: str) -> None:
        self.changes.begin(context, server, REMOVE_FIXED_IP, {'address': address})

    def _check_port(self, context: Context, port_id: str, external_networks: bool) -> None:
        """Refuse a port that the server cannot use."""
        port = self.networks.port(context, port_id)
        check_unused(port)
        if not external_networks:
            ports.refuse_outside(self.networks.networks(context.elevated(), [port.network_id]))

    def _record_refusal(self, context: Context, server: Server, error: Error) -> None:
        """Record it like a later failure; an unknown port is an action that did not get as far as the host, as in
        Nova."""
        event = {'event': ATTACH_EVENT, 'host': server.host, 'message': 'Error'}
        facts = {} if isinstance(error, PortNotFound) else event
        with self.changes.store.write() as connection:
            self.changes.record(connection, context, server, ATTACH.name, **facts)

    def _usable_network(self, context: Context, server: Server, network_id: str | None, external_networks: bool) -> str:
        """The network for a new port; if none is named, the only one that the project can use."""
        usable = [self.networks.network(context, network_id)] if network_id else self.networks.networks(context)
        if not usable:
            raise Invalid(
                f"No specific network was requested and none are available for project '{context.project_id}'."
            )
        if len(usable) > 1:
            raise Invalid(MultipleNetworks.text)
        network = usable[0]
        if not external_networks:
            ports.refuse_outside([network])
        if not network.subnets:
            raise Invalid(f'Network {network.id} requires a subnet in order to boot instances on.')
        check_bandwidth(server, network)
        return network.id

    def _begin(self, context: Context, server: Server, entry: dict[str, Any]) -> Job:
        """Record what will be connected, so that a worker does it if this process dies."""
        changes, wanted = self.changes, {'interface': entry}
        with changes.store.write() as connection:
            current = locked(connection, context, server, ATTACH)
            action_id = actions.start(connection, context, server.uuid, ATTACH.name, changes.clock())
            task = changes.tasks.add(connection, ATTACH, server.uuid, context, wanted, action_id=action_id, leased=True)
        return Job(task, current, changes.platform, waits=False)

    def _connect(self, job: Job) -> dict[str, Any]:
        try:
            return self._connect_or_end(job)
        except OVERTAKEN:
            # It took so long that a worker has taken over.
            leftovers.settle(self.changes.platform, job.context, job.server)
            raise Unavailable() from None
        finally:
            self.changes.tasks.wake()

    def _connect_or_end(self, job: Job) -> dict[str, Any]:
        try:
            return connect(job)
        except Exception as error:
            # If this process dies, or the network service is unavailable, a worker releases the port.
            self.changes.tasks.note(job.task, {FAULT: job.fault(error)})
            with contextlib.suppress(NeighbourAway):
                not_attached(job, error)
            raise


def check_bandwidth(server: Server, network: Network) -> None:
    """Invalid for a network whose new ports request resources: the host would have to be chosen before they exist."""
    if network.resource_request:
        raise Invalid(
            f'Using networks with QoS policy is not supported for instance {server.uuid}. (Network ID is {network.id})'
        )


def tags_of(server: Server) -> dict[str, str | None]:
    return {entry['port_id']: entry.get('tag') for entry in server.network_info}


# ------------------------------------------------------------------ work


@ATTACH.work
def attach(job: Job) -> None:
    """Finish what the process that handled the request did not."""
    connect(job)


def connect(job: Job) -> dict[str, Any]:
    """Connect one more interface; returns its entry."""
    entry = job.arguments['interface']
    server = job.server
    with job.event(ATTACH_EVENT):
        if not entry['created']:
            provider_resources.hold(job, entry['port_id'])
        (made,) = ports.connect(job, [entry])
        job.driver.plug(server, [made])
    with job.store.write() as connection:
        network_info.replace(connection, server.uuid, made['port_id'], [made], job.clock())
        job.close(connection)
    return made


@DETACH.work
def detach(job: Job) -> None:
    """Disconnect an interface and release its port; the server keeps it if that fails."""
    port_id, server = job.arguments['port_id'], job.server
    with job.event('compute_detach_interface'):
        entry = next((entry for entry in server.network_info if entry['port_id'] == port_id), None)
        if entry is None:
            raise PortNotFound(id=port_id)
        job.driver.unplug(server, [entry])
        ports.take_away(job.platform.networks, job.elevated, server.uuid, entry)
    with job.store.write() as connection:
        allocations.leave_ports(connection, server.uuid, [port_id])
        network_info.replace(connection, server.uuid, port_id, [], job.clock())
        job.close(connection)


@ADD_FIXED_IP.work
def add_fixed_ip(job: Job) -> None:
    """Add one address to the server's port on the network, and not a second one if the task runs again."""
    network_id = job.arguments['network_id']
    with job.event('compute_add_fixed_ip_to_instance'):
        port = port_on(job, network_id)
        held = [fixed['ip_address'] for fixed in port.fixed_ips]
        if 'held' not in job.arguments:
            job.platform.tasks.note(job.task, {'held': held})
        if held == job.arguments['held']:
            job.platform.networks.add_fixed_ip(job.elevated, port.id)
        addresses.refresh(job)
    job.end()


@REMOVE_FIXED_IP.work
def remove_fixed_ip(job: Job) -> None:
    networks, address = job.platform.networks, job.arguments['address']
    with job.event('compute_remove_fixed_ip_from_instance'):
        having = [port for port in network_info.held(networks, job.elevated, job.server) if has(port, address)]
        # A worker that died may have done more than it recorded.
        if not having and job.task.attempts == 1:
            raise FixedIPNotFound(server_id=job.server.uuid, address=address)
        for port in having[:1]:
            networks.remove_fixed_ip(job.elevated, port.id, address)
        addresses.refresh(job)
    job.end()


def has(port: Port, address: str) -> bool:
    return any(fixed['ip_address'] == address for fixed in port.fixed_ips)


def port_on(job: Job, network_id: str) -> Port:
    for port in network_info.held(job.platform.networks, job.elevated, job.server):
        if port.network_id == network_id:
            return port
    raise NetworkNotFoundForServer(server_id=job.server.uuid)
