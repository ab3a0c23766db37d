"""The addresses of servers, kept up to date when their ports change."""

import logging
from collections.abc import Collection, Sequence

from computeapi.backends.network import Port
from computeapi.compute.platform import Platform
from computeapi.compute.servers import network_info
from computeapi.compute.servers.network_info import Entry
from computeapi.compute.tasks.job import Job
from computeapi.compute.tasks.transition import beside
from computeapi.context import Context
from computeapi.db import allocations, servers
from computeapi.db.servers import Server

LOG = logging.getLogger(__name__)
MAX_TRIES = 5
BATCH = 200

REFRESH = beside('refresh_addresses')
UNPLUG = beside('unplug')


class Addresses:
    """Keeps the network_info of servers up to date."""

    def __init__(self, platform: Platform):
        self.store, self.networks = platform.store, platform.networks
        self.tasks, self.clock = platform.tasks, platform.clock

    def refresh(self, context: Context, server_ids: Collection[str]) -> None:
        """Read the ports of these servers again. Interfaces whose ports are gone are removed and unplugged.

        A server that changes at the same time is read again, so that neither change is lost. A new server is refreshed
        again after it has booted, because its ports may have been described before they changed.
        """
        ids = sorted(server_ids)
        for start in range(0, len(ids), BATCH):
            self._refresh(context.elevated(), ids[start : start + BATCH])

    def _refresh(self, context: Context, server_ids: Collection[str]) -> None:
        for _ in range(MAX_TRIES):
            server_ids = self._try(context, server_ids)
            if not server_ids:
                return
        LOG.warning('The addresses of servers %s are not up to date, because they keep changing', ', '.join(server_ids))

    def _try(self, context: Context, server_ids: Collection[str]) -> set[str]:
        """Refresh once; returns the servers that changed in the meantime."""
        found = self.store.query(servers.alive, server_ids)
        # The creation of ports describes them once they exist.
        settled = [server for server in found if not network_info.are_planned(server.network_info)]
        self._put_off(context, [server.uuid for server in found if network_info.is_connecting(server)])
        ids = [server.uuid for server in settled]
        ports = self.networks.ports(context, server_ids=ids, floating=True) if ids else []
        names = network_info.group_names(self.networks, context, ports)
        held: dict[str, dict[str, Port]] = {server.uuid: {} for server in settled}
        for port in ports:
            held[port.device_id][port.id] = port
        current = ((server, network_info.updated(server.network_info, held[server.uuid], names)) for server in settled)
        return {server.uuid for server, entries in current if not self._keep(context, server, entries)}

    def _put_off(self, context: Context, server_ids: Sequence[str]) -> None:
        """Let a worker refresh these servers after their current work."""
        if server_ids:
            with self.tasks.adding() as connection:
                for server_id in server_ids:
                    self.tasks.add_once(connection, REFRESH, server_id, context)

    def _keep(self, context: Context, server: Server, entries: Sequence[Entry]) -> bool:
        """Store the entries, unless the server changed since it was read; returns whether they are up to date."""
        if entries == server.network_info:
            return True
        kept = {entry['port_id'] for entry in entries}
        gone = [entry for entry in server.network_info if entry['port_id'] not in kept]
        with self.tasks.adding() as connection:
            new = {'network_info': entries, 'updated_at': self.clock()}
            if not servers.change_unless_newer(connection, server, new):
                return False
            if gone:
                allocations.leave_ports(connection, server.uuid, [entry['port_id'] for entry in gone])
            if gone and server.host is not None:
                self.tasks.add(connection, UNPLUG, server.uuid, context, {'interfaces': gone})
        return True


# ------------------------------------------------------------------ work


@REFRESH.work
def refresh_addresses(job: Job) -> None:
    """Finish a refresh after a change of the server's addresses that was interrupted."""
    refresh(job)
    job.end()


def refresh(job: Job) -> None:
    """Read the ports of the server again."""
    Addresses(job.platform).refresh(job.elevated, [job.server.uuid])


@UNPLUG.work
def unplug(job: Job) -> None:
    """Unplug interfaces whose ports are gone from the machine."""
    if job.server.host is not None:
        job.driver.unplug(job.server, job.arguments['interfaces'])
    job.end()
