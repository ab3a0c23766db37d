"""External events from other services: changes of the ports, volumes and machines of servers."""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from computeapi.compute.servers import disks, power
from computeapi.compute.servers.addresses import REFRESH
from computeapi.compute.servers.changes import Changes
from computeapi.compute.tasks.job import Job
from computeapi.compute.tasks.transition import beside
from computeapi.context import Context
from computeapi.db import actions, block_devices, server_migrations, servers
from computeapi.db.servers import Server

VIF_PLUGGED = 'network-vif-plugged'
PLUGGED = (VIF_PLUGGED, 'network-vif-unplugged')
NETWORK = ('network-changed', *PLUGGED, 'network-vif-deleted')
VOLUME_EXTENDED, VOLUME_REIMAGED = 'volume-extended', 'volume-reimaged'
POWER_UPDATE, ACCELERATOR_BOUND = 'power-update', 'accelerator-request-bound'
# Their tag identifies the part of the server.
TAGGED = (VOLUME_EXTENDED, POWER_UPDATE, ACCELERATOR_BOUND)
COMPLETED, FAILED = 'completed', 'failed'

EXTEND_VOLUME = beside('extend_volume')
# The transition after a change of the machine's power from outside.
POWER = {'POWER_ON': power.POWERED_ON, 'POWER_OFF': power.POWERED_OFF}


class Event(NamedTuple):
    """tag: what the event is about: a port, a volume, or the new power state."""

    name: str
    server_id: str
    tag: str | None = None
    status: str = COMPLETED


class Outcome(Enum):
    """The result of an event."""

    ACCEPTED = 'accepted'
    UNTAGGED = 'it does not say what of the server is meant'
    UNKNOWN = 'there is no such server'
    HOMELESS = 'the server is on no host'


class ExternalEvents:
    """Events about the servers of all projects, from services that may send them."""

    def __init__(self, changes: Changes):
        self.changes = changes
        self.store, self.tasks = changes.store, changes.tasks

    def take(self, context: Context, events: Sequence[Event]) -> list[Outcome]:
        """Act on the events; returns the result of each, in the same order."""
        found = self._servers({event.server_id for event in events})
        outcomes = [outcome_of(event, found.get(event.server_id)) for event in events]
        accepted = [event for event, outcome in zip(events, outcomes, strict=True) if outcome is Outcome.ACCEPTED]
        self._look_at_ports(context, accepted)
        for event in accepted:
            self._act(context, found[event.server_id], event)
        return outcomes

    def _servers(self, server_ids: set[str]) -> dict[str, Server]:
        return {server.uuid: server for server in self.store.query(servers.alive, server_ids)}

    def _look_at_ports(self, context: Context, events: Sequence[Event]) -> None:
        """Let workers refresh the ports that changed, and resume tasks that wait for a connection. It is not done here,
        because the network service waits for the answer and must not be called meanwhile."""
        affected = {event.server_id for event in events if event.name in NETWORK}
        changed = {event.server_id for event in events if event.name in NETWORK and event.name not in PLUGGED}
        if not affected:
            return
        with self.tasks.adding() as connection:
            for server_id in sorted(affected):
                if plugged := plugged_of(events, server_id):
                    server_migrations.note_plugged(connection, server_id, plugged)
                if server_id in changed:
                    self.tasks.add_once(connection, REFRESH, server_id, context.elevated())
                else:
                    self.tasks.hasten(connection, server_id)

    def _act(self, context: Context, server: Server, event: Event) -> None:
        if event.name == VOLUME_EXTENDED:
            self._extend(context, server, event.tag or '')
        elif event.name == POWER_UPDATE and event.status == COMPLETED:
            self._follow_power(context, server, event.tag or '')
        elif event.name in (VOLUME_REIMAGED, ACCELERATOR_BOUND):
            # Tasks that wait for it poll by themselves; this only saves the wait.
            self.store.change(self.tasks.hasten, server.uuid)
            self.tasks.wake()

    def _extend(self, context: Context, server: Server, volume_id: str) -> None:
        """Let the machine see the new size of an attached volume."""
        wanted = {'volume_id': volume_id}
        with self.tasks.adding() as connection:
            if any(device.volume_id == volume_id for device in block_devices.of_servers(connection, [server.uuid])):
                name, now = EXTEND_VOLUME.name, self.changes.clock()
                action_id = actions.start(connection, context, server.uuid, name, now)
                self.tasks.add(connection, EXTEND_VOLUME, server.uuid, context, wanted, action_id=action_id)

    def _follow_power(self, context: Context, server: Server, power: str) -> None:
        """Begin the transition, if any."""
        if power in POWER:
            self.changes.follow(context, server, POWER[power])


def plugged_of(events: Iterable[Event], server_id: str) -> dict[str, str]:
    """The results of connecting the server's ports, by port."""
    connected = (each for each in events if each.name == VIF_PLUGGED and each.server_id == server_id)
    return {each.tag: each.status for each in connected if each.tag}


def outcome_of(event: Event, server: Server | None) -> Outcome:
    if server is None:
        return Outcome.UNKNOWN
    if server.host is None:
        return Outcome.HOMELESS
    if event.name in TAGGED and not event.tag:
        return Outcome.UNTAGGED
    return Outcome.ACCEPTED


# ------------------------------------------------------------------ work


@EXTEND_VOLUME.work
def extend_volume(job: Job) -> None:
    """Handle the new size of a volume."""
    with job.event('compute_extend_volume'):
        volume_id = job.arguments['volume_id']
        device = disks.of_volume(job, volume_id)
        disks.note(job.platform, device, volume_size=job.platform.volumes.get(job.elevated, volume_id).size)
        if job.server.host is not None:
            job.driver.extend(job.server, device)
    job.end()
