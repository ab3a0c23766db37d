"""The hosts on which a server has an allocation: where its machine is, and where its ports and volumes are used."""

import contextlib
import logging
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from computeapi.backends.hypervisor import HostDown, Hypervisor
from computeapi.backends.hypervisor.behaviour import at_once
from computeapi.compute.platform import Platform
from computeapi.compute.scheduler.spec import needs_of
from computeapi.compute.servers import disks, ports
from computeapi.compute.tasks.job import Job
from computeapi.context import Context
from computeapi.db import aggregates, allocations
from computeapi.db import servers as rows
from computeapi.db.servers import Server, is_volume_backed
from computeapi.errors import PortInUse, PortNotFound

LOG = logging.getLogger(__name__)
AGAIN_SECONDS = 5.0
NOWHERE: dict[str, Any] = {'host': None, 'node': None, 'availability_zone': None}


def at(server: Server, host: str | None) -> Server:
    """The server as if it were on that host, for the driver."""
    return replace(server, host=host)


def on(platform: Platform, host: str | None, node: str | None) -> dict[str, Any]:
    """The columns of a server that say where it is."""
    with platform.store.read() as connection:
        zone = aggregates.zones(connection, [host or '']).get(host or '', platform.conf.default_availability_zone)
        return {'host': host, 'node': node, 'availability_zone': zone}


def clear(job: Job, host: str | None) -> None:
    """Before the server's machine is made on a host: what is there of it goes, such as what was to go while that host
    was down. It must be known to be gone, so a host that is down is waited for."""
    try:
        job.driver.destroy(at(job.server, host))
    except HostDown:
        disks.wait(job, f'host {host} is back', AGAIN_SECONDS, job.platform.conf.task_timeout)


def remove_machine(driver: Hypervisor, server: Server) -> None:
    """Destroy it. On a host that is down it is as good as gone: it goes when that is back, or before one is made there
    once more."""
    try:
        driver.destroy(server)
    except HostDown:
        LOG.warning('Host %s is down: the virtual machine of %s is left there for now', server.host, server.uuid)


def remove_stray(platform: Platform, server: Server, host: str | None, newest: int) -> None:
    """Destroy what is left of it on a host, unless somebody has begun something with it since that claim: Outdated."""
    platform.hypervisor.during(at_once, newest).destroy(at(server, host))


def remove_machines(platform: Platform, server: Server, *, keep: str | None = None) -> None:
    """Destroy the server's machine on every host on which it has an allocation, but for one."""
    held = platform.store.ask(allocations.hosts_of, server.uuid)
    for host in sorted((held | {server.host}) - {keep, None}, key=str):
        remove_machine(platform.hypervisor, at(server, host))


def leave_others(platform: Platform, server: Server) -> None:
    """Give back the allocations on other hosts than the server's own, and of that one what its flavor does not need."""
    remove_machines(platform, server, keep=server.host)
    others = platform.store.ask(allocations.hosts_of, server.uuid) - {server.host}
    ports.leave_hosts(platform.networks, server, others)
    with platform.store.write() as connection:
        allocations.release(connection, server.uuid, keep=server.host)
        shrink(connection, server)


def leave_stray(job: Job, hosts: Collection[str]) -> None:
    """Give back what the server has on hosts on which it has no business."""
    for host in hosts:
        remove_machine(job.driver, at(job.server, host))
    if hosts:
        job.store.tell(allocations.leave, job.server.uuid, hosts)


def shrink(connection: sa.Connection, server: Server) -> None:
    """Hold of the server's host what its flavor needs."""
    if server.host is not None:
        devices = rows.block_devices_of(connection, [server.uuid])
        needs = needs_of(server.flavor, on_volume=is_volume_backed(server, devices))
        allocations.resize(connection, server.uuid, server.host, needs)


def connect(job: Job) -> None:
    """Use the server's ports from its host, and write down how the network service describes them now."""
    bind(job.platform, job.elevated, job.server, job.server.host)
    ports.describe(job, job.server.network_info)


def leave(job: Job) -> None:
    """The server has no machine any more; its ports and volumes stay its own and are used from nowhere."""
    remove_machines(job.platform, job.server)
    let_go(job)


def let_go(job: Job) -> None:
    """No host uses the server's ports and volumes, which stay its own."""
    networks, server_id = job.platform.networks, job.server.uuid
    for entry in job.server.network_info:
        port_id = ports.port_of(networks, job.elevated, server_id, entry)
        # What others took from it meanwhile is not its own to leave.
        with contextlib.suppress(PortNotFound, PortInUse):
            if port_id is not None:
                networks.bind_port(job.elevated, port_id, server_id=server_id, host=None)
    disks.disconnect(job.platform, job.elevated, job.server)


def bind(platform: Platform, context: Context, server: Server, host: str | None) -> None:
    """Tell the network service from which host the server uses its ports."""
    ports.bind(platform, context, at(server, host), [entry['port_id'] for entry in server.network_info])
