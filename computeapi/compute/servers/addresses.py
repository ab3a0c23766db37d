"""What servers know of their interfaces, kept in step with the network service."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from computeapi.backends.network import Port
from computeapi.compute.platform import Platform
from computeapi.compute.servers import network_info
from computeapi.compute.servers.network_info import Entry
from computeapi.compute.tasks.job import Job
from computeapi.compute.tasks.transition import beside
from computeapi.context import Context
from computeapi.db import servers as rows
from computeapi.db.servers import Server

LOG = logging.getLogger(__name__)
MOST_TRIES = 5
AT_ONCE = 200

REFRESH = beside('refresh_addresses')
UNPLUG = beside('unplug')


class Addresses:
    """Brings the network_info of servers up to date."""

    def __init__(self, platform: Platform):
        self.store, self.networks = platform.store, platform.networks
        self.tasks, self.clock = platform.tasks, platform.clock

    def refresh(self, context: Context, server_ids: Collection[str]) -> None:
        """Read the ports of these servers again. Interfaces whose ports are gone are forgotten and unplugged.

        A server that somebody changes at the same moment is looked at again, so that neither change is lost.
        """
        ids = sorted(server_ids)
        for start in range(0, len(ids), AT_ONCE):
            self._refresh(context.elevated(), ids[start : start + AT_ONCE])

    def _refresh(self, context: Context, server_ids: Collection[str]) -> None:
        for _ in range(MOST_TRIES):
            server_ids = self._try(context, server_ids)
            if not server_ids:
                return
        LOG.warning('The addresses of %d servers are old, for the servers never rest', len(server_ids))

    def _try(self, context: Context, server_ids: Collection[str]) -> set[str]:
        """The servers that changed in the meantime."""
        with self.store.read() as connection:
            found = rows.alive(connection, server_ids)
        # Who makes ports describes them when they are there.
        settled = [server for server in found if not network_info.are_planned(server.network_info)]
        ports = self.networks.ports(context, server_ids=[server.uuid for server in settled]) if settled else []
        names = network_info.group_names(self.networks, context, ports)
        held: dict[str, dict[str, Port]] = {server.uuid: {} for server in settled}
        for port in ports:
            held[port.device_id][port.id] = port
        current = ((server, network_info.current(server.network_info, held[server.uuid], names)) for server in settled)
        return {server.uuid for server, entries in current if not self._keep(context, server, entries)}

    def _keep(self, context: Context, server: Server, entries: Sequence[Entry]) -> bool:
        """Write the entries down, unless the server changed since it was read; whether it did not."""
        if entries == server.network_info:
            return True
        kept = {entry['port_id'] for entry in entries}
        gone = [entry for entry in server.network_info if entry['port_id'] not in kept]
        with self.store.write() as connection:
            new = {'network_info': entries, 'updated_at': self.clock()}
            if not rows.change_unless_newer(connection, server, new):
                return False
            if gone and server.host is not None:
                self.tasks.add(connection, UNPLUG, server.uuid, context, {'interfaces': gone})
        self.tasks.wake()
        return True


# ------------------------------------------------------------------ work


@REFRESH.work
def refresh_addresses(job: Job) -> None:
    """Whoever changed what leads to the server did not come to the end of it."""
    Addresses(job.platform).refresh(job.elevated, [job.server.uuid])
    job.end()


@UNPLUG.work
def unplug(job: Job) -> None:
    """Interfaces whose ports are gone leave the machine."""
    if job.server.host is not None:
        job.driver.unplug(job.server, job.arguments['interfaces'])
    job.end()
