"""A hypervisor that runs nothing, but goes through the states, takes time, and fails when configured to.

Its virtual machines are kept in the store, so that they survive a restart.
"""

import copy
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from weakref import WeakValueDictionary

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.backends.hypervisor import (
    DISK_COUNTERS,
    INTERFACE_COUNTERS,
    BusAddress,
    Capability,
    Console,
    Host,
    HypervisorError,
    Outdated,
    PowerState,
)
from computeapi.backends.hypervisor.behaviour import Behaviour, ConfiguredRules
from computeapi.backends.hypervisor.simulated_buses import places
from computeapi.backends.hypervisor.simulated_consoles.terminal import Terminal
from computeapi.backends.hypervisor.simulated_hosts import SimulatedHosts, check_on
from computeapi.backends.image.blank import simulated_disk
from computeapi.clock import utcnow
from computeapi.db.engine import Store
from computeapi.db.records import make_sure
from computeapi.db.server_shares import AttachedShare
from computeapi.db.servers import BlockDevice, Server
from computeapi.db.virtual_machines import DOMAINS, VirtualMachine, all_places, lets_pass

MAX_LOG = 100_000
# The prefix of the lines in a console log.
PROMPT = '[simulated]'
# The option with each operation's duration; all others use passing_seconds.
OPTIONS = {
    'spawn': 'spawn_seconds',
    'rescue': 'spawn_seconds',
    **dict.fromkeys(('power_on', 'power_off', 'reboot', 'suspend', 'resume', 'unrescue'), 'power_seconds'),
    **dict.fromkeys(('migrate', 'live_migrate'), 'migrate_seconds'),
    **dict.fromkeys(('snapshot', 'snapshot_volume', 'delete_volume_snapshot'), 'snapshot_seconds'),
}


class SimulatedHypervisor:
    """Can be driven by any process that uses the store.

    options: the group [simulated] of the configuration.
    """

    capabilities = frozenset(Capability) - {Capability.PRESERVE_EPHEMERAL}

    def __init__(self, store: Store, options: cfg.ConfigOpts.GroupAttr, clock: Callable[[], datetime] = utcnow):
        self.store, self.options, self.clock, self.token = store, options, clock, 0
        if options.lacks:
            self.capabilities = type(self).capabilities - set(_named(options.lacks))
        self.behaviour = Behaviour(lambda: store, ConfiguredRules(options), self.seconds)
        self.simulated_hosts = SimulatedHosts(store, options, clock)
        self.terminals = WeakValueDictionary[int, Terminal]()

    def during(self, passed: Callable[[str], float], token: int = 0, task: int = 0) -> 'SimulatedHypervisor':
        driver = copy.copy(self)
        driver.token = token
        driver.behaviour = copy.copy(self.behaviour)
        driver.behaviour.passed = passed
        return driver

    def capabilities_of(self, host: str | None) -> frozenset[Capability]:
        return self.capabilities

    def hosts(self) -> Sequence[Host]:
        return self.simulated_hosts.all()

    def upkeep(self) -> None:
        """Nothing needs maintenance."""

    def guest_at(self, address: str) -> str | None:
        return None

    def machines(self) -> Iterable[tuple[str, str]]:
        return self.store.query(all_places)

    def connector(self, host: str) -> Mapping[str, Any]:
        return self.simulated_hosts.connector(host)

    def switch_host(self, host: str, on: bool) -> None:
        self.simulated_hosts.switch(host, on)

    def spawn(
        self,
        server: Server,
        devices: Sequence[BlockDevice],
        config_drive: Mapping[str, bytes] | None = None,
        former_host: str | None = None,
    ) -> None:
        self.act('spawn', server)
        lines = _appended('', *_labelled(server, _boot(server, devices)))
        with self.changing(server) as connection:
            check_on(connection, server.host)
            running, now = int(PowerState.RUNNING), self.clock()
            made = {**_key(server), 'power_state': running, 'console_log': lines, 'created_at': now}
            make_sure(connection, DOMAINS.table, made)

    def destroy(self, server: Server) -> None:
        # Deleting a machine that does not exist takes no time and cannot fail.
        if self.machine(server) is not None:
            self.act('destroy', server)
        with self.changing(server) as connection:
            DOMAINS.delete(connection, **_key(server))

    def power_on(self, server: Server) -> None:
        self.switch('power_on', server, PowerState.RUNNING, 'booting')

    def power_off(self, server: Server) -> None:
        self.switch('power_off', server, PowerState.SHUTDOWN, 'shut down')

    def reboot(self, server: Server, *, hard: bool) -> None:
        self.switch('reboot', server, PowerState.RUNNING, 'reset' if hard else 'rebooting')

    def pause(self, server: Server) -> None:
        self.switch('pause', server, PowerState.PAUSED, 'paused')

    def unpause(self, server: Server) -> None:
        self.switch('unpause', server, PowerState.RUNNING, 'unpaused')

    def suspend(self, server: Server) -> None:
        self.switch('suspend', server, PowerState.SHUTDOWN, 'suspended')

    def resume(self, server: Server) -> None:
        self.switch('resume', server, PowerState.RUNNING, 'resumed')

    def rescue(self, server: Server, image_id: str | None) -> None:
        self.switch('rescue', server, PowerState.RUNNING, f'booting rescue image {image_id or server.image_id}')

    def unrescue(self, server: Server) -> None:
        self.switch('unrescue', server, PowerState.RUNNING, 'booting')

    def crash_dump(self, server: Server) -> None:
        self.act('crash_dump', server, 'kernel: NMI received, writing a crash dump')

    def set_password(self, server: Server, password: str) -> None:
        self.act('set_password', server, 'the password of the administrator was changed')

    def machine(self, server: Server) -> VirtualMachine | None:
        return self.store.query(_find, server)

    def existing(self, server: Server) -> VirtualMachine:
        """The virtual machine of the server on its host; HypervisorError if there is none."""
        return self.store.query(_existing, server)

    def power_state(self, server: Server) -> PowerState | None:
        domain = self.machine(server)
        return None if domain is None else PowerState(domain.power_state)

    def bus_addresses(self, server: Server, devices: Sequence[BlockDevice]) -> Mapping[str, BusAddress]:
        return places(server.network_info, devices)

    def snapshot(self, server: Server, disk_format: str) -> Iterator[bytes]:
        self.act('snapshot', server)
        return iter([simulated_disk(f'{server.uuid} at {self.clock().isoformat()}')])

    def console_output(self, server: Server, lines: int | None) -> str:
        domain = self.machine(server)
        if domain is None:
            return ''
        if lines is None:
            return domain.console_log
        return '\n'.join(domain.console_log.splitlines()[-lines:]) if lines else ''

    def console(self, server: Server, protocol: str) -> Console:
        """All servers report the same port; if the protocol has paths, the path identifies the server.

        Nobody listens there: `connect` answers within the process that connects."""
        options = self.options
        if protocol == 'spice':
            return Console(options.console_host, options.console_port, options.console_tls_port)
        return Console(options.console_host, options.console_port, internal_access_path=server.uuid)

    def connect(self, server: Server, protocol: str, console: Console) -> socket.socket:
        # Loaded on demand: what the protocols need, such as cryptography, takes memory that few clouds need to spend.
        from computeapi.backends.hypervisor.simulated_consoles import connecting

        return connecting.connect(self, server, protocol)

    def plug(self, server: Server, interfaces: Iterable[Mapping[str, Any]]) -> None:
        self.act('plug', server, *(f'link up {interface["mac_address"]}' for interface in interfaces))

    def unplug(self, server: Server, interfaces: Iterable[Mapping[str, Any]]) -> None:
        self.act('unplug', server, *(f'link down {interface["mac_address"]}' for interface in interfaces))

    def attach(self, server: Server, device: BlockDevice) -> None:
        self.act('attach', server, f'disk {device.device_name} connected')

    def detach(self, server: Server, device: BlockDevice) -> None:
        self.act('detach', server, f'disk {device.device_name} disconnected')

    def mount_share(self, server: Server, share: AttachedShare) -> None:
        self.act('mount_share', server, f'share {share.tag} is {share.export_location}')

    def unmount_share(self, server: Server, share: AttachedShare) -> None:
        self.act('unmount_share', server, f'share {share.tag} is gone')

    def extend(self, server: Server, device: BlockDevice) -> None:
        self.act('extend', server, f'disk {device.device_name} has {device.volume_size} GiB')

    def snapshot_volume(self, server: Server, device: BlockDevice, facts: Mapping[str, Any]) -> None:
        self.act('snapshot_volume', server, f'disk {device.device_name} goes on in {facts["new_file"]}')

    def delete_volume_snapshot(
        self, server: Server, device: BlockDevice, snapshot_id: str, facts: Mapping[str, Any]
    ) -> None:
        self.act('delete_volume_snapshot', server, f'disk {device.device_name} merged snapshot {snapshot_id}')

    def swap(self, server: Server, old: BlockDevice, new: BlockDevice) -> None:
        self.act('swap', server, f'disk {old.device_name} copied to volume {new.volume_id}')

    def describe(self, server: Server) -> Mapping[str, Any]:
        self.act('describe', server)
        with self.store.read() as connection:
            _existing(connection, server)
        return {}

    def prepare_migration(self, server: Server, host: str, machine: Mapping[str, Any]) -> Mapping[str, Any]:
        self.act('prepare_migration', server)
        return {}

    def migrate(self, server: Server, host: str, facts: Mapping[str, Any]) -> None:
        self.act('migrate', server)
        if host == server.host:
            self.set_power(server, PowerState.SHUTDOWN, 'shut down')
            return
        with self.changing(server) as connection:
            domain = _existing(connection, server)._replace(power_state=int(PowerState.SHUTDOWN))
            DOMAINS.delete(connection, server_id=server.uuid, host=host)
            DOMAINS.insert(connection, **domain._replace(host=host, created_at=self.clock())._asdict())
            DOMAINS.update(connection, {'power_state': domain.power_state}, **_key(server))

    def check_live_migration(self, server: Server, host: str) -> None:
        self.act('check_live_migration', server)
        with self.store.read() as connection:
            _existing(connection, server)

    def sees_disks(self, server: Server, host: str, machine: Mapping[str, Any]) -> bool | None:
        return None

    def prepare_live_migration(self, server: Server, host: str, machine: Mapping[str, Any]) -> Mapping[str, Any]:
        self.act('prepare_live_migration', server)
        return {}

    def live_migrate(self, server: Server, host: str, facts: Mapping[str, Any], wish: str) -> bool:
        if wish == 'cancelling' or self.behaviour.is_overtaken(server):
            return False
        if wish != 'forcing':
            self.behaviour.wait('live_migrate', server)
        self.behaviour.fail('live_migrate', server)
        with self.changing(server) as connection:
            DOMAINS.delete(connection, server_id=server.uuid, host=host)
            DOMAINS.update(connection, {'host': host}, **_key(server))
        return True

    def diagnostics(self, server: Server, devices: Sequence[BlockDevice]) -> Mapping[str, Any]:
        """Nothing runs, so only the shape and the age are real; counters are zero."""
        with self.store.read() as connection:
            domain = _existing(connection, server)
        return {
            # The API has a fixed list of drivers, and clients accept no other.
            'driver': 'libvirt',
            'hypervisor': 'simulated',
            'hypervisor_os': 'linux',
            'uptime': int((self.clock() - domain.created_at).total_seconds()),
            'memory_used': 0,
            'cpus': [{'time': 0, 'utilisation': 0} for _ in range(server.vcpus)],
            'disks': [{'device_name': each.device_name} | dict.fromkeys(DISK_COUNTERS, 0) for each in devices],
            'interfaces': [
                {'mac_address': each['mac_address']} | dict.fromkeys(INTERFACE_COUNTERS, 0)
                for each in server.network_info
            ],
        }

    # ------------------------------------------------------------ internal

    def seconds(self, operation: str) -> float:
        """The duration of an operation: from its own option, else from passing_seconds."""
        own = self.options[OPTIONS[operation]] if operation in OPTIONS else None
        return float(self.options.passing_seconds if own is None else own)

    @contextmanager
    def changing(self, server: Server) -> Iterator[sa.Connection]:
        """A transaction that changes the server's virtual machine; Outdated."""
        with self.store.write() as connection:
            if self.token and not lets_pass(connection, server.uuid, self.token):
                raise Outdated(f'Claim {self.token} on {server.uuid} is not the newest.')
            yield connection

    def act(self, operation: str, server: Server, *lines: str) -> None:
        """Wait or fail as the rules say, then write the lines to the console."""
        self.behaviour.wait(operation, server)
        self.behaviour.fail(operation, server)
        # `spawn` checks the host itself, in its transaction. Deletion needs no host, because nothing really runs there.
        if operation not in ('spawn', 'destroy'):
            self.store.query(check_on, server.host)
        if lines:
            self.log(server, *lines)

    def switch(self, operation: str, server: Server, power_state: PowerState, line: str) -> None:
        """Like `act`, and sets the power state of the virtual machine, which must exist."""
        self.act(operation, server)
        self.set_power(server, power_state, line)

    def set_power(self, server: Server, power_state: PowerState, line: str) -> None:
        with self.changing(server) as connection:
            log = _appended(_existing(connection, server).console_log, *_labelled(server, [line]))
            DOMAINS.update(connection, {'power_state': int(power_state), 'console_log': log}, **_key(server))

    def log(self, server: Server, *lines: str) -> None:
        self.write(server, *_labelled(server, lines))

    def write(self, server: Server, *lines: str) -> None:
        """Append the lines to the console log, if there is a virtual machine."""
        with self.changing(server) as connection:
            domain = _find(connection, server)
            if domain is not None:
                DOMAINS.update(connection, {'console_log': _appended(domain.console_log, *lines)}, **_key(server))


def _named(names: Iterable[str]) -> Iterator[Capability]:
    """Capabilities by the names in the configuration; cfg.Error for unknown ones."""
    known = {capability.name.lower(): capability for capability in Capability}
    for name in names:
        if name not in known:
            raise cfg.ConfigFileValueError(
                f'[simulated]lacks: there is no capability {name}; there are {", ".join(sorted(known))}'
            )
        yield known[name]


def _key(server: Server) -> dict[str, Any]:
    return {'server_id': server.uuid, 'host': server.host or ''}


def _find(connection: sa.Connection, server: Server) -> VirtualMachine | None:
    return DOMAINS.find(connection, **_key(server))


def _existing(connection: sa.Connection, server: Server) -> VirtualMachine:
    """The virtual machine of the server on its host; HypervisorError if there is none."""
    domain = _find(connection, server)
    if domain is None:
        raise HypervisorError(f'Server {server.uuid} has no virtual machine on {server.host}.')
    return domain


def _boot(server: Server, devices: Sequence[BlockDevice]) -> Iterator[str]:
    """The boot messages of a new machine: its hardware, and that it is ready."""
    yield f'{server.vcpus} CPUs, {server.memory_mb} MiB of memory'
    yield from (f'disk {device.device_name}' for device in devices)
    yield from (f'link up {interface["mac_address"]}' for interface in server.network_info)
    yield f'booting {server.image_id or "from volume"}'
    yield 'ready'


def _labelled(server: Server, lines: Iterable[str]) -> Iterator[str]:
    return (f'{PROMPT} {server.name}: {line}' for line in lines)


def _appended(log: str, *lines: str) -> str:
    return (log + ''.join(f'{line}\n' for line in lines))[-MAX_LOG:]
