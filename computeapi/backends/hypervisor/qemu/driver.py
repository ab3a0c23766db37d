"""The driver: maps the operations on a server to its guest."""

import copy
import errno
import logging
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from computeapi.backends.hypervisor import (
    CONSOLES,
    BusAddress,
    Capability,
    Console,
    Host,
    HypervisorError,
    PowerState,
    require,
    unsupported,
)
from computeapi.backends.hypervisor.behaviour import at_once
from computeapi.backends.hypervisor.qemu import (
    command_line,
    diagnostics,
    guest_lifecycle,
    migration_destination,
    migration_source,
    plugging,
    power,
    shared_storage,
    snapshots,
    volumes,
)
from computeapi.backends.hypervisor.qemu.console_log import ConsoleLog
from computeapi.backends.hypervisor.qemu.folder import GuestFolder
from computeapi.backends.hypervisor.qemu.host import QemuHost
from computeapi.backends.hypervisor.qemu.sockets import connected
from computeapi.backends.hypervisor.qemu.work import GuestWork
from computeapi.db.server_shares import AttachedShare
from computeapi.db.servers import BlockDevice, Server

LOG = logging.getLogger(__name__)
SOCKETS = {'vnc': command_line.VNC, 'serial': command_line.SERIAL, 'spice': command_line.SPICE}
"""The sockets of consoles, by protocol."""
CONNECT_SECONDS = 5
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def wanting_room(host: QemuHost) -> Iterator[None]:
    """HypervisorError if the host's disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise HypervisorError(f'The disk of host {host.name} is full.') from error


class QemuHypervisor:
    """hosts: the hosts whose guests this process manages, each with a folder of its own."""

    capabilities = frozenset(
        {
            Capability.PAUSE,
            Capability.SUSPEND,
            Capability.RESCUE,
            Capability.CRASH_DUMP,
            Capability.SET_PASSWORD,
            Capability.DIAGNOSTICS,
            Capability.CONSOLE_OUTPUT,
            Capability.VNC_CONSOLE,
            Capability.SERIAL_CONSOLE,
            Capability.ATTACH_INTERFACE,
            Capability.LIVE_MIGRATION,
            Capability.EXTEND_VOLUME,
            Capability.SWAP_VOLUME,
        }
    )

    def __init__(self, hosts: Iterable[QemuHost]):
        self.driven = {host.name: host for host in hosts}
        if all(host.spice for host in self.driven.values()):
            self.capabilities = self.capabilities | {Capability.SPICE_CONSOLE}
        self.passed: Callable[[str], float] = at_once
        self.token = self.task = 0

    def during(self, passed: Callable[[str], float], token: int = 0, task: int = 0) -> 'QemuHypervisor':
        driver = copy.copy(self)
        driver.passed, driver.token, driver.task = passed, token, task
        return driver

    # ------------------------------------------------------------ hosts

    def capabilities_of(self, host: str | None) -> frozenset[Capability]:
        """All hosts are on one machine, and have the same ones."""
        return self.capabilities

    def hosts(self) -> Sequence[Host]:
        return [host.facts() for host in self.driven.values()]

    def upkeep(self) -> None:
        """A failure of one action does not keep the others from running."""
        hosts = self.driven.values()
        acts = [
            act for host in hosts for act in (partial(migration_destination.settle_running, host.folder), host.tidy)
        ]
        for act in (*acts, *{host.networks.refresh for host in hosts}):
            try:
                act()
            except Exception:
                LOG.exception('Periodic maintenance of the guests on this machine failed')

    def connector(self, host: str) -> Mapping[str, Any]:
        return {**self.host(host).volumes.connector(), 'host': host}

    def machines(self) -> Iterable[tuple[str, str]]:
        return [found for host in self.driven.values() for found in host.machines()]

    def guest_at(self, address: str) -> str | None:
        found = (host.networks.guest_at(address) for host in self.driven.values())
        return next((server_id for server_id in found if server_id is not None), None)

    def switch_host(self, host: str, on: bool) -> None:
        raise unsupported(Capability.HOST_POWER)

    def host(self, name: str | None) -> QemuHost:
        if name not in self.driven:
            raise HypervisorError(f'Host {name} is not managed here.')
        return self.driven[name]

    def folder(self, server: Server) -> GuestFolder:
        return self.host(server.host).folder.of(server.uuid)

    @contextmanager
    def at(self, server: Server, *, settles: bool = True) -> Iterator[GuestWork]:
        """Change the server's guest. settles: first complete its arrival, if it has arrived from another host."""
        host = self.host(server.host)
        with wanting_room(host), host.folder.claimed(server.uuid, self.token) as folder:
            if settles:
                migration_destination.settle(folder)
            yield GuestWork(host, folder, server, self.passed)

    def look(self, server: Server) -> GuestWork:
        """Inspect the server's guest without a lock."""
        return GuestWork(self.host(server.host), self.folder(server), server, self.passed)

    # ------------------------------------------------------------ life

    def spawn(
        self,
        server: Server,
        devices: Sequence[BlockDevice],
        config_drive: Mapping[str, bytes] | None = None,
        former_host: str | None = None,
    ) -> None:
        with self.at(server) as work:
            guest_lifecycle.spawn(work, devices, config_drive or {}, shared_storage.left(work, former_host))

    def destroy(self, server: Server) -> None:
        with self.at(server) as work:
            guest_lifecycle.destroy(work)

    def power_on(self, server: Server) -> None:
        with self.at(server) as work:
            power.on(work)

    def power_off(self, server: Server) -> None:
        with self.at(server) as work:
            power.off(work)

    def reboot(self, server: Server, *, hard: bool) -> None:
        with self.at(server) as work:
            power.reboot(work, hard=hard)

    def pause(self, server: Server) -> None:
        with self.at(server) as work:
            power.pause(work)

    def unpause(self, server: Server) -> None:
        with self.at(server) as work:
            power.unpause(work)

    def suspend(self, server: Server) -> None:
        with self.at(server) as work:
            power.suspend(work)

    def resume(self, server: Server) -> None:
        with self.at(server) as work:
            power.resume(work)

    def rescue(self, server: Server, image_id: str | None) -> None:
        with self.at(server) as work:
            power.rescue(work, image_id)

    def unrescue(self, server: Server) -> None:
        with self.at(server) as work:
            power.unrescue(work)

    def crash_dump(self, server: Server) -> None:
        with self.at(server) as work:
            power.crash_dump(work)

    def set_password(self, server: Server, password: str) -> None:
        power.set_password(self.look(server), password)

    def snapshot(self, server: Server, disk_format: str) -> Iterator[bytes]:
        with self.at(server) as work:
            return snapshots.take(work, disk_format, self.task)

    # ------------------------------------------------------------ devices

    def plug(self, server: Server, interfaces: Iterable[Mapping[str, Any]]) -> None:
        with self.at(server) as work:
            plugging.plug(work, interfaces)

    def unplug(self, server: Server, interfaces: Iterable[Mapping[str, Any]]) -> None:
        with self.at(server) as work:
            plugging.unplug(work, interfaces)

    def attach(self, server: Server, device: BlockDevice) -> None:
        with self.at(server) as work:
            volumes.attach(work, device)

    def detach(self, server: Server, device: BlockDevice) -> None:
        with self.at(server) as work:
            volumes.detach(work, device)

    def extend(self, server: Server, device: BlockDevice) -> None:
        with self.at(server) as work:
            volumes.extend(work, device)

    def snapshot_volume(self, server: Server, device: BlockDevice, facts: Mapping[str, Any]) -> None:
        raise unsupported(Capability.SNAPSHOT_VOLUME)

    def delete_volume_snapshot(
        self, server: Server, device: BlockDevice, snapshot_id: str, facts: Mapping[str, Any]
    ) -> None:
        raise unsupported(Capability.SNAPSHOT_VOLUME)

    def swap(self, server: Server, old: BlockDevice, new: BlockDevice) -> None:
        with self.at(server) as work:
            volumes.swap(work, old, new)

    def mount_share(self, server: Server, share: AttachedShare) -> None:
        raise unsupported(Capability.SHARES)

    def unmount_share(self, server: Server, share: AttachedShare) -> None:
        raise unsupported(Capability.SHARES)

    # ------------------------------------------------------------ moves

    def describe(self, server: Server) -> Mapping[str, Any]:
        with wanting_room(self.host(server.host)):
            return migration_source.describe(self.look(server))

    def prepare_migration(self, server: Server, host: str, machine: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.prepare(server, host, machine, live=False) if host != server.host else {}

    def migrate(self, server: Server, host: str, facts: Mapping[str, Any]) -> None:
        with self.at(server) as work:
            power.off(work, 'migrate')
            if host != server.host:
                migration_source.copy(work, host, facts)
                work.disconnect_volumes(work.folder.existing())

    def check_live_migration(self, server: Server, host: str) -> None:
        migration_source.check(self.look(server))

    def prepare_live_migration(self, server: Server, host: str, machine: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.prepare(server, host, machine, live=True)

    def prepare(self, server: Server, host: str, machine: Mapping[str, Any], *, live: bool) -> Mapping[str, Any]:
        with self.at(replace(server, host=host), settles=False) as work:
            return migration_destination.prepare(work, server.host, machine, live=live)

    def sees_disks(self, server: Server, host: str, machine: Mapping[str, Any]) -> bool | None:
        folder = self.host(host).folder
        if not machine['sizes']:
            return None
        return shared_storage.accessible_folder(folder, server.host, server.uuid, machine) is not None

    def live_migrate(self, server: Server, host: str, facts: Mapping[str, Any], wish: str) -> bool:
        with self.at(server) as work:
            return migration_source.move(work, host, facts, wish)

    # ------------------------------------------------------------ queries

    def power_state(self, server: Server) -> PowerState | None:
        return power.state(self.look(server))

    def bus_addresses(self, server: Server, devices: Sequence[BlockDevice]) -> Mapping[str, BusAddress]:
        host = self.host(server.host)
        return guest_lifecycle.places(self.folder(server).read(), server, devices, host.options.machine)

    def diagnostics(self, server: Server, devices: Sequence[BlockDevice]) -> Mapping[str, Any]:
        return diagnostics.diagnose(self.look(server), devices)

    def console_output(self, server: Server, lines: int | None) -> str:
        return ConsoleLog(self.folder(server)).read(lines)

    def console(self, server: Server, protocol: str) -> Console:
        require(self, CONSOLES[protocol], server.host)
        return Console(str(self.folder(server) / SOCKETS[protocol]), 0)

    def connect(self, server: Server, protocol: str, console: Console) -> socket.socket:
        work = self.look(server)
        require(self, CONSOLES[protocol], server.host)
        try:
            if work.process.runs:
                return connected(work.folder / SOCKETS[protocol], CONNECT_SECONDS)
        except OSError:
            pass
        raise HypervisorError('Nothing answers at the console.')
