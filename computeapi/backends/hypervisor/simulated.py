"""A hypervisor that runs nothing, but goes through the states, takes the time, and fails when told to.

What it "runs" is kept in the store, so that a restart finds it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.backends.hypervisor import DISK_COUNTERS, INTERFACE_COUNTERS, Console, Host, HypervisorError
from computeapi.backends.hypervisor.behaviour import POLL_SECONDS, Behaviour
from computeapi.clock import utcnow
from computeapi.db.engine import Store
from computeapi.db.servers import BlockDevice, Server
from computeapi.db.tables.compute import domains

RUNNING, PAUSED, SHUTDOWN = 1, 3, 4
MOST_LOG = 100_000
IMAGE_BLOCK = 64 * 1024
CPU = {
    'arch': 'x86_64',
    'vendor': 'Simulated',
    'model': 'qemu64',
    'features': ['sse2', 'pge', 'mca'],
    'topology': {'cores': 1, 'threads': 1, 'sockets': 1},
}
# How a line of a console log begins.
PROMPT = '[simulated]'


class SimulatedHypervisor:
    """As many hosts as *options* say, named compute1, compute2 ...; driven by any process of the store.

    options: the group [simulated] of the configuration.
    """

    def __init__(self, store: Store, options: Any, clock: Callable[[], datetime] = utcnow):
        self.store, self.options, self.clock = store, options, clock
        self.behaviour = Behaviour(store, options)
        self.act = self.behaviour.act

    def stop(self) -> None:
        self.behaviour.stop()

    def hosts(self) -> Sequence[Host]:
        return [
            Host(
                name=f'compute{number}',
                hypervisor_hostname=f'compute{number}',
                hypervisor_type='simulated',
                hypervisor_version=1000,
                host_ip='127.0.0.1',
                vcpus=self.options.vcpus,
                memory_mb=self.options.memory_mb,
                local_gb=self.options.local_gb,
                cpu_info=CPU,
            )
            for number in range(1, self.options.hosts + 1)
        ]

    def spawn(self, server: Server, devices: Sequence[BlockDevice]) -> None:
        self.act('spawn', server, self.options.spawn_seconds)
        lines = _appended('', *_labelled(server, _boot(server, devices)))
        with self.store.write() as connection:
            if self._find(connection, server) is None:
                values = {'power_state': RUNNING, 'console_log': lines, 'created_at': self.clock()}
                key = {'server_id': server.uuid, 'host': server.host}
                connection.execute(sa.insert(domains).values(**key, **values))

    def destroy(self, server: Server) -> None:
        self.act('destroy', server)
        with self.store.write() as connection:
            connection.execute(sa.delete(domains).where(_this(server)))

    def power_on(self, server: Server) -> None:
        self.act('power_on', server, self.options.power_seconds)
        self.set_power(server, RUNNING, 'booting')

    def power_off(self, server: Server) -> None:
        self.act('power_off', server, self.options.power_seconds)
        self.set_power(server, SHUTDOWN, 'shut down')

    def reboot(self, server: Server, *, hard: bool) -> None:
        self.act('reboot', server, self.options.power_seconds)
        self.set_power(server, RUNNING, 'reset' if hard else 'rebooting')

    def pause(self, server: Server) -> None:
        self.act('pause', server)
        self.set_power(server, PAUSED, 'paused')

    def unpause(self, server: Server) -> None:
        self.act('unpause', server)
        self.set_power(server, RUNNING, 'unpaused')

    def suspend(self, server: Server) -> None:
        self.act('suspend', server, self.options.power_seconds)
        self.set_power(server, SHUTDOWN, 'suspended')

    def resume(self, server: Server) -> None:
        self.act('resume', server, self.options.power_seconds)
        self.set_power(server, RUNNING, 'resumed')

    def rescue(self, server: Server, image_id: str | None) -> None:
        self.act('rescue', server, self.options.spawn_seconds)
        self.set_power(server, RUNNING, f'booting rescue image {image_id or server.image_id}')

    def unrescue(self, server: Server) -> None:
        self.act('unrescue', server, self.options.power_seconds)
        self.set_power(server, RUNNING, 'booting')

    def crash_dump(self, server: Server) -> None:
        self.act('crash_dump', server)
        self.log(server, 'kernel: NMI received, writing a crash dump')

    def set_password(self, server: Server, password: str) -> None:
        self.act('set_password', server)
        self.log(server, 'the password of the administrator was changed')

    def power_state(self, server: Server) -> int | None:
        with self.store.read() as connection:
            row = self._find(connection, server)
            return None if row is None else row.power_state

    def snapshot(self, server: Server) -> Iterator[bytes]:
        self.act('snapshot', server, self.options.snapshot_seconds)
        # One block that tells one snapshot from another; there is no disk to copy.
        label = f'simulated disk of {server.uuid} at {self.clock().isoformat()}\n'.encode()
        yield label.ljust(IMAGE_BLOCK, b'\0')

    def console_output(self, server: Server, lines: int | None) -> str:
        with self.store.read() as connection:
            row = self._find(connection, server)
        if row is None:
            return ''
        if lines is None:
            return row.console_log
        return '\n'.join(row.console_log.splitlines()[-lines:]) if lines else ''

    def console(self, server: Server, protocol: str) -> Console:
        """All servers are said to be at one port; where the protocol knows paths, the path tells which one is meant."""
        options = self.options
        if protocol == 'spice':
            return Console(options.console_host, options.console_port, options.console_tls_port)
        return Console(options.console_host, options.console_port, internal_access_path=server.uuid)

    def plug(self, server: Server, interfaces: Iterable[Mapping[str, Any]]) -> None:
        self.act('plug', server)
        self.log(server, *(f'link up {interface["mac_address"]}' for interface in interfaces))

    def unplug(self, server: Server, interfaces: Iterable[Mapping[str, Any]]) -> None:
        self.act('unplug', server)
        self.log(server, *(f'link down {interface["mac_address"]}' for interface in interfaces))

    def attach(self, server: Server, device: BlockDevice) -> None:
        self.act('attach', server)
        self.log(server, f'disk {device.device_name} connected')

    def detach(self, server: Server, device: BlockDevice) -> None:
        self.act('detach', server)
        self.log(server, f'disk {device.device_name} disconnected')

    def extend(self, server: Server, device: BlockDevice) -> None:
        self.act('extend', server)
        self.log(server, f'disk {device.device_name} has {device.volume_size} GiB')

    def snapshot_volume(self, server: Server, device: BlockDevice, facts: Mapping[str, Any]) -> None:
        self.act('snapshot_volume', server, self.options.snapshot_seconds)
        self.log(server, f'disk {device.device_name} goes on in {facts["new_file"]}')

    def delete_volume_snapshot(
        self, server: Server, device: BlockDevice, snapshot_id: str, facts: Mapping[str, Any]
    ) -> None:
        self.act('delete_volume_snapshot', server, self.options.snapshot_seconds)
        self.log(server, f'disk {device.device_name} merged snapshot {snapshot_id}')

    def swap(self, server: Server, old: BlockDevice, new: BlockDevice) -> None:
        self.act('swap', server)
        self.log(server, f'disk {old.device_name} copied to volume {new.volume_id}')

    def migrate(self, server: Server, host: str) -> None:
        self.act('migrate', server, self.options.migrate_seconds)
        if host == server.host:
            self.set_power(server, SHUTDOWN, 'shut down')
            return
        with self.store.write() as connection:
            row = self._find(connection, server)
            if row is None:
                raise HypervisorError(f'There is no virtual machine of {server.uuid} on {server.host}.')
            there = {'server_id': server.uuid, 'host': host}
            connection.execute(sa.delete(domains).filter_by(**there))
            values = {'power_state': SHUTDOWN, 'console_log': row.console_log, 'created_at': self.clock()}
            connection.execute(sa.insert(domains).values(**there, **values))
            connection.execute(sa.update(domains).where(_this(server)).values(power_state=SHUTDOWN))

    def check_live_migration(self, server: Server, host: str) -> None:
        self.act('check_live_migration', server)
        if self.power_state(server) is None:
            raise HypervisorError(f'There is no virtual machine of {server.uuid} on {server.host}.')

    def live_migrate(self, server: Server, host: str, wish: Callable[[], str]) -> bool:
        until = time.monotonic() + self.options.migrate_seconds
        while time.monotonic() < until or self.behaviour.hangs('live_migrate', server):
            if wish() in ('cancelling', 'forcing') or self.behaviour.is_overtaken(server):
                break
            self.behaviour.wait(POLL_SECONDS)
        if wish() == 'cancelling' or self.behaviour.is_overtaken(server):
            return False
        self.behaviour.fail('live_migrate', server)
        with self.store.write() as connection:
            connection.execute(sa.delete(domains).filter_by(server_id=server.uuid, host=host))
            connection.execute(sa.update(domains).where(_this(server)).values(host=host))
        return True

    def diagnostics(self, server: Server, devices: Sequence[BlockDevice]) -> Mapping[str, Any]:
        """Nothing runs, so only what is known by its shape and age is told: counters are zero."""
        with self.store.read() as connection:
            row = self._find(connection, server)
        if row is None:
            raise HypervisorError(f'There is no virtual machine of {server.uuid} on {server.host}.')
        return {
            # The API has a list of drivers, and clients take no other.
            'driver': 'libvirt',
            'hypervisor': 'simulated',
            'hypervisor_os': 'linux',
            'uptime': int((self.clock() - row.created_at).total_seconds()),
            'memory_used': 0,
            'cpus': [{'time': 0, 'utilisation': 0} for _ in range(server.vcpus)],
            'disks': [{'device_name': each.device_name} | dict.fromkeys(DISK_COUNTERS, 0) for each in devices],
            'interfaces': [
                {'mac_address': each['mac_address']} | dict.fromkeys(INTERFACE_COUNTERS, 0)
                for each in server.network_info
            ],
        }

    # ------------------------------------------------------------ inside

    def set_power(self, server: Server, power_state: int, line: str) -> None:
        with self.store.write() as connection:
            row = self._find(connection, server)
            if row is None:
                raise HypervisorError(f'There is no virtual machine of {server.uuid} on {server.host}.')
            log = _appended(row.console_log, *_labelled(server, [line]))
            values = {'power_state': power_state, 'console_log': log}
            connection.execute(sa.update(domains).where(_this(server)).values(**values))

    def log(self, server: Server, *lines: str) -> None:
        with self.store.write() as connection:
            row = self._find(connection, server)
            if row is not None:
                log = _appended(row.console_log, *_labelled(server, lines))
                connection.execute(sa.update(domains).where(_this(server)).values(console_log=log))

    def _find(self, connection: sa.Connection, server: Server) -> Any:
        return connection.execute(sa.select(domains).where(_this(server))).first()


def _this(server: Server) -> sa.ColumnElement[bool]:
    return (domains.c.server_id == server.uuid) & (domains.c.host == server.host)


def _boot(server: Server, devices: Sequence[BlockDevice]) -> Iterator[str]:
    """What a new machine finds of itself, and that it has come up."""
    yield f'{server.vcpus} CPUs, {server.memory_mb} MiB of memory'
    yield from (f'disk {device.device_name}' for device in devices)
    yield from (f'link up {interface["mac_address"]}' for interface in server.network_info)
    yield f'booting {server.image_id or "from volume"}'
    yield 'ready'


def _labelled(server: Server, lines: Iterable[str]) -> Iterator[str]:
    return (f'{PROMPT} {server.name}: {line}' for line in lines)


def _appended(log: str, *lines: str) -> str:
    return (log + ''.join(f'{line}\n' for line in lines))[-MOST_LOG:]
