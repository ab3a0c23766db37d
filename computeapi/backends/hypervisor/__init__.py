"""Hypervisors: the drivers that run servers on hosts.

A driver acts on one host, the server's. Every method is idempotent: it may be called again after it was interrupted,
keeps what already exists, and does not fail because something is already gone.
"""

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, NamedTuple, Protocol

from computeapi.db.server_shares import AttachedShare
from computeapi.db.servers import BlockDevice, Server
from computeapi.errors import Error, NotSupported

# The counters of a disk and of an interface in diagnostics.
DISK_COUNTERS = ('read_bytes', 'read_requests', 'write_bytes', 'write_requests', 'errors_count')
INTERFACE_COUNTERS = tuple(
    f'{way}_{what}' for way in ('rx', 'tx') for what in ('octets', 'packets', 'drop', 'errors', 'rate')
)


class PowerState(IntEnum):
    """The power state of a virtual machine, in the numbers that the API reports."""

    NOSTATE = 0
    RUNNING = 1
    PAUSED = 3
    SHUTDOWN = 4
    CRASHED = 6
    SUSPENDED = 7


class Capability(Enum):
    """A feature that only some drivers have; the value is the wording of the error for drivers without it."""

    PAUSE = 'pausing servers'
    SUSPEND = 'suspending servers'
    RESCUE = 'rescuing servers'
    RESCUE_ON_VOLUME = 'rescuing servers on volumes'
    CRASH_DUMP = 'crash dumps'
    SET_PASSWORD = 'setting the password of servers'
    DIAGNOSTICS = 'diagnostics'
    CONSOLE_OUTPUT = 'the output of consoles'
    VNC_CONSOLE = 'VNC consoles'
    SPICE_CONSOLE = 'SPICE consoles'
    RDP_CONSOLE = 'RDP consoles'
    SERIAL_CONSOLE = 'serial consoles'
    MKS_CONSOLE = 'WebMKS consoles'
    ATTACH_INTERFACE = 'attaching interfaces'
    EXTEND_VOLUME = 'extending volumes in use'
    SWAP_VOLUME = 'swapping volumes'
    SNAPSHOT_VOLUME = 'snapshots of volumes in use'
    LIVE_MIGRATION = 'live migration'
    SHARES = 'shared file systems'
    HOST_POWER = 'switching hosts off and on'
    HOST_MAINTENANCE = 'the maintenance of hosts'
    PRESERVE_EPHEMERAL = 'preserving ephemeral partitions'


# By console protocol.
CONSOLES = {
    'vnc': Capability.VNC_CONSOLE,
    'spice': Capability.SPICE_CONSOLE,
    'rdp': Capability.RDP_CONSOLE,
    'serial': Capability.SERIAL_CONSOLE,
    'mks': Capability.MKS_CONSOLE,
}


class HypervisorError(Error):
    text = 'The hypervisor could not perform the operation.'


class Unfit(HypervisorError):
    """The request cannot be met on any host, for example because an image is not in the format that it claims."""


class HostDown(HypervisorError):
    """The host was not contacted; whatever it holds stays there for now."""

    text = 'Host {host} is down.'


class NotYet(BaseException):
    """The operation is in progress; the caller must call again after this many seconds.

    Not an error: nothing must be rolled back because of it.
    """

    def __init__(self, seconds: float):
        super().__init__(f'not before {seconds:g} s')
        self.seconds = seconds


class Outdated(BaseException):
    """The operation was not carried out: the driver has since heard from a newer claim holder of this server's work.

    Not an error: nothing must be rolled back because of it, because the newer holder continues the work.
    """


@dataclass(frozen=True)
class Host:
    """A host that a driver serves; memory in MiB, disk in GiB.

    traits, resources: what the operator says that it has besides the usual, the latter as amounts by resource class.
    """

    name: str
    hypervisor_hostname: str
    hypervisor_type: str
    hypervisor_version: int
    host_ip: str
    vcpus: int
    memory_mb: int
    local_gb: int
    cpu_info: Mapping[str, Any] = field(default_factory=dict)
    cell: str = 'cell1'
    on: bool = True
    traits: Sequence[str] = ()
    resources: Mapping[str, int] = field(default_factory=dict)


class Console(NamedTuple):
    """The address where a console of a server listens, to which a proxy connects.

    host: a host name, an IP address, or the path of a Unix socket (then the port is 0).
    internal_access_path: the path that the proxy must request there, if any.
    """

    host: str
    port: int
    tls_port: int | None = None
    internal_access_path: str | None = None


class BusAddress(NamedTuple):
    """The location of a device in a guest: the bus (pci, scsi, ide or usb) and the kernel's address on it."""

    bus: str
    address: str


class Operations(Protocol):
    """The operations on a server. Long ones raise NotYet and are called again. Errors: HypervisorError."""

    def spawn(
        self,
        server: Server,
        devices: Sequence[BlockDevice],
        config_drive: Mapping[str, bytes] | None = None,
        former_host: str | None = None,
    ) -> None:
        """Create the server's virtual machine on its host, with its network_info and disks, and start it.

        config_drive: the documents of the config drive, by path; None: no config drive.
        former_host: a host that is down; the data of the server's local disks there are kept if this host shares them.
        """

    def destroy(self, server: Server) -> None:
        """Remove the virtual machine and its local disks, if they exist; HostDown if the host cannot be reached."""

    def power_on(self, server: Server) -> None: ...

    def power_off(self, server: Server) -> None: ...

    def reboot(self, server: Server, *, hard: bool) -> None: ...

    def pause(self, server: Server) -> None: ...

    def unpause(self, server: Server) -> None: ...

    def suspend(self, server: Server) -> None:
        """Write the memory to disk and stop."""

    def resume(self, server: Server) -> None: ...

    def rescue(self, server: Server, image_id: str | None) -> None:
        """Boot from another image, with the server's own disk attached as well; None: its original image."""

    def unrescue(self, server: Server) -> None: ...

    def crash_dump(self, server: Server) -> None:
        """Send the server the interrupt that makes its kernel write a crash dump."""

    def set_password(self, server: Server, password: str) -> None: ...

    def snapshot(self, server: Server, disk_format: str) -> Iterator[bytes]:
        """The data of an image of the server's disk, in that format: raw, qcow2 ..."""

    def plug(self, server: Server, interfaces: Iterable[Mapping[str, Any]]) -> None:
        """Connect interfaces, entries of network_info, to a running server."""

    def unplug(self, server: Server, interfaces: Iterable[Mapping[str, Any]]) -> None: ...

    def attach(self, server: Server, device: BlockDevice) -> None:
        """Connect a volume to the server's virtual machine."""

    def detach(self, server: Server, device: BlockDevice) -> None: ...

    def extend(self, server: Server, device: BlockDevice) -> None:
        """Make the new size of a volume visible to the virtual machine."""

    def snapshot_volume(self, server: Server, device: BlockDevice, facts: Mapping[str, Any]) -> None:
        """Write to a new file, named in *facts*, from now on: the volume's own file keeps the current state."""

    def delete_volume_snapshot(
        self, server: Server, device: BlockDevice, snapshot_id: str, facts: Mapping[str, Any]
    ) -> None:
        """Merge the files that are named in *facts*."""

    def swap(self, server: Server, old: BlockDevice, new: BlockDevice) -> None:
        """Copy one volume to another while the server runs, then use the new one."""

    def mount_share(self, server: Server, share: AttachedShare) -> None:
        """Mount the share on the server's host; the guest finds it under its tag from its next start on."""

    def unmount_share(self, server: Server, share: AttachedShare) -> None: ...

    def describe(self, server: Server) -> Mapping[str, Any]:
        """The description of the virtual machine that another host needs to prepare for it, as JSON values."""

    def prepare_migration(self, server: Server, host: str, machine: Mapping[str, Any]) -> Mapping[str, Any]:
        """Prepare that host, which executes this call, to take over the powered-off virtual machine from `server.host`,
        which described it.

        Returns the facts that `migrate` needs, as JSON values."""

    def migrate(self, server: Server, host: str, facts: Mapping[str, Any]) -> None:
        """Copy the powered-off virtual machine to another host; `server.host`, which executes this call, is the source,
        and *facts* are what the destination returned when it was prepared.

        The source keeps its copy until `destroy`."""

    def check_live_migration(self, server: Server, host: str) -> None:
        """HypervisorError if the virtual machine could not run on that host."""

    def sees_disks(self, server: Server, host: str, machine: Mapping[str, Any]) -> bool | None:
        """Whether that host, which executes this call, shares the disks of the virtual machine on `server.host`, which
        described it, so that a live migration copies none; None: there are no disks to copy."""

    def prepare_live_migration(self, server: Server, host: str, machine: Mapping[str, Any]) -> Mapping[str, Any]:
        """Prepare that host, which executes this call, for the virtual machine, which stays where it is and was
        described there; called again before each further call of `live_migrate`.

        Returns the facts that `live_migrate` needs, as JSON values."""

    def live_migrate(self, server: Server, host: str, facts: Mapping[str, Any], wish: str) -> bool:
        """Move the running virtual machine to another host; returns whether it moved. It is on one of the two at any
        time.

        facts: what the destination returned when it was prepared.
        wish: the owner's current request: 'cancelling' aborts the move, 'forcing' completes it at once. A driver that
        takes long raises NotYet, and is given the then current wish with the next call."""


class Hypervisor(Operations, Protocol):
    """A driver: its operations and its immediate queries."""

    def capabilities_of(self, host: str | None) -> frozenset[Capability]:
        """The optional capabilities that it has on that host; None: on at least one host."""

    def during(self, passed: Callable[[str], float], token: int = 0, task: int = 0) -> 'Hypervisor':
        """The driver for one piece of work that can wait, so that it may raise NotYet. The driver itself cannot wait.

        passed: returns how many seconds ago this work first reached a step, which the driver names.
        token: the fencing token; it increases with each claim on the work of a server. A caller whose token is lower
        than one that the driver has seen for that server was presumed dead: Outdated is raised and nothing is done.
        0: not under a claim.
        task: identifies this piece of work, and stays the same when it is called again.
        """

    def hosts(self) -> Sequence[Host]:
        """The hosts that this process drives."""

    def upkeep(self) -> None:
        """Periodic maintenance of the hosts that does not depend on any server's operations."""

    def connector(self, host: str) -> Mapping[str, Any]:
        """The connector properties of a host, with which block storage grants it access to volumes: its name as `host`,
        its `ip`, its iSCSI `initiator`, whether it uses several paths (`multipath`)."""

    def machines(self) -> Iterable[tuple[str, str]]:
        """The virtual machines on these hosts: pairs of server UUID and host."""

    def switch_host(self, host: str, on: bool) -> None:
        """Power a host on, or off with everything that runs there; power-on does not restart guests."""

    def guest_at(self, address: str) -> str | None:
        """The UUID of the server whose guest contacts its host from that address; None if that is not certain."""

    def power_state(self, server: Server) -> PowerState | None:
        """None: there is no virtual machine."""

    def bus_addresses(self, server: Server, devices: Sequence[BlockDevice]) -> Mapping[str, BusAddress]:
        """The locations of interfaces, by port ID, and of disks, by UUID, in the guest; unknown ones are omitted."""

    def diagnostics(self, server: Server, devices: Sequence[BlockDevice]) -> Mapping[str, Any]:
        """The state of the virtual machine; unknown values are omitted.

        driver, hypervisor and hypervisor_os are names, uptime is in seconds, memory_used in MiB. The rest are lists of
        dicts: cpus have time (in ns) and utilisation (in percent), disks a device_name and DISK_COUNTERS, interfaces a
        mac_address and INTERFACE_COUNTERS.
        """

    def console_output(self, server: Server, lines: int | None) -> str:
        """The last *lines* of the serial console's output; None: all that is kept."""

    def console(self, server: Server, protocol: str) -> Console:
        """The server's console for that protocol, one of CONSOLES."""

    def connect(self, server: Server, protocol: str, console: Console) -> socket.socket:
        """A new connection to `console`, as returned earlier by `console()`; the caller closes it.

        It speaks the protocol (serial: the raw input and output of the guest), and ends when the virtual machine no
        longer runs here. HypervisorError if nothing answers there, NotSupported for consoles that cannot be connected
        to."""


def require(hypervisor: Hypervisor, capability: Capability, host: str | None) -> None:
    """NotSupported if the driver lacks the capability on that host; checked before work begins."""
    if capability not in hypervisor.capabilities_of(host):
        raise unsupported(capability)


def unsupported(capability: Capability) -> NotSupported:
    return NotSupported(f'The current driver does not support {capability.value}.')
