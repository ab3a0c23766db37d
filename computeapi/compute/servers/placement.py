"""The hosts on which a server has an allocation: where its machine is, and where its ports and volumes are in use."""

import contextlib
import logging
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from computeapi.backends.hypervisor import HostDown, Hypervisor, HypervisorError, NotYet
from computeapi.backends.hypervisor.behaviour import at_once
from computeapi.compute.platform import Platform
from computeapi.compute.scheduler.spec import needs_of
from computeapi.compute.servers import disks, network_info, ports
from computeapi.compute.tasks.job import Job
from computeapi.context import Context
from computeapi.db import aggregates, allocations, block_devices, servers, tasks
from computeapi.db.servers import Server, is_volume_backed
from computeapi.errors import PortInUse, PortNotFound

LOG = logging.getLogger(__name__)
AGAIN_SECONDS = 5.0
HOSTLESS: dict[str, Any] = {'host': None, 'node': None}
NOWHERE: dict[str, Any] = {**HOSTLESS, 'availability_zone': None}


def at(server: Server, host: str | None) -> Server:
    """The server as if it were on that host, for the driver."""
    return replace(server, host=host)


def on(platform: Platform, host: str | None, node: str | None) -> dict[str, Any]:
    """The columns of a server for its location."""
    zones = platform.store.query(aggregates.zones, [host or ''])
    zone = zones.get(host or '', platform.conf.default_availability_zone)
    return {'host': host, 'node': node, 'availability_zone': zone}


def clear(job: Job, host: str | None) -> None:
    """Remove leftovers of the server's machine before it is created on a host, such as one that should have been
    removed while the host was down. Removal must be certain, so a host that is down is waited for."""
    try:
        job.driver.destroy(at(job.server, host))
    except HostDown:
        disks.wait(job, f'host {host} is back', AGAIN_SECONDS, job.platform.conf.task_timeout)


def remove_machine(driver: Hypervisor, server: Server) -> None:
    """Destroy the machine. On a host that is down, it counts as removed: it is destroyed when the host is back, or
    before one is created there again."""
    try:
        driver.destroy(server)
    except HostDown:
        LOG.warning('Host %s is down: the virtual machine of %s is left there for now', server.host, server.uuid)


def remove_stray(platform: Platform, server_id: str, host: str) -> None:
    """Destroy leftovers of the server on a host, unless it has a claim there. NotYet if a task holds the server, which
    may bring it there again; Outdated if another task has done so since."""
    with platform.store.write() as connection:
        server = servers.get(connection, server_id, deleted=True, lock=True)
        is_held, newest = (ask(connection, server_id) for ask in (tasks.is_held, tasks.newest_claim))
        hosts = allocations.hosts_of(connection, server_id)
    # It may have moved back.
    if server is not None and host not in hosts:
        if is_held:
            raise NotYet(AGAIN_SECONDS)
        platform.hypervisor.during(at_once, newest).destroy(at(server, host))


def leave_behind(job: Job, host: str) -> bool:
    """Destroy the machine that the server may have on a host that it has left, if that can be reached. False if the
    server is there again, or may be soon."""
    if host in {job.server.host, *job.store.query(allocations.hosts_of, job.server.uuid)}:
        return False
    try:
        job.driver.destroy(at(job.server, host))
    except HypervisorError as error:
        LOG.warning('Host %s may still have the virtual machine of %s: %s', host, job.server.uuid, error)
    return True


def remove_machines(platform: Platform, server: Server, *, keep: str | None = None) -> None:
    """Destroy the server's machine on every host with an allocation, except one."""
    held = platform.store.query(allocations.hosts_of, server.uuid)
    for host in sorted((held | {server.host}) - {keep, None}, key=str):
        remove_machine(platform.hypervisor, at(server, host))


def leave_others(platform: Platform, server: Server) -> None:
    """Release the allocations on hosts other than the server's own, and shrink that one to its flavor."""
    remove_machines(platform, server, keep=server.host)
    others = platform.store.query(allocations.hosts_of, server.uuid) - {server.host}
    ports.leave_hosts(platform.networks, server, others)
    with platform.store.write() as connection:
        allocations.release(connection, server.uuid, keep=server.host)
        shrink(connection, server)


def release_stray_hosts(job: Job, hosts: Collection[str]) -> None:
    """Release what the server has on hosts where it does not belong."""
    for host in hosts:
        remove_machine(job.driver, at(job.server, host))
    if hosts:
        job.store.change(allocations.leave, job.server.uuid, hosts)


def shrink(connection: sa.Connection, server: Server) -> None:
    """Reduce the allocation on the server's host to what its flavor needs."""
    if server.host is not None:
        devices = block_devices.of_servers(connection, [server.uuid])
        needs = needs_of(server.flavor, on_volume=is_volume_backed(server, devices))
        allocations.resize(connection, server.uuid, server.host, needs, server.flavor.get('flavorid', ''))


def connect(job: Job, host: str | None = None) -> None:
    """Bind the server's ports on its host, or on the one where it will be, and record how the network service describes
    them now."""
    bind(job.platform, job.elevated, job.server, host or job.server.host)
    ports.describe(job, job.server.network_info)


def leave(job: Job) -> None:
    """Remove the server's machine; its ports and volumes stay its own, but are not in use on any host."""
    remove_machines(job.platform, job.server)
    disconnect_all(job)


def disconnect_all(job: Job) -> None:
    """Disconnect the server's ports and volumes from its host; they stay its own."""
    networks, server_id = job.platform.networks, job.server.uuid
    for entry in job.server.network_info:
        port_id = network_info.port_of(networks, job.elevated, server_id, entry)
        # Others may have taken it from the server meanwhile.
        with contextlib.suppress(PortNotFound, PortInUse):
            if port_id is not None:
                networks.bind_port(job.elevated, port_id, server_id=server_id, host=None)
    disks.disconnect(job.platform, job.elevated, job.server)


def bind(platform: Platform, context: Context, server: Server, host: str | None) -> None:
    """Tell the network service on which host the server uses its ports."""
    ports.bind(platform, context, at(server, host), [entry['port_id'] for entry in server.network_info])
