"""Hypervisors: what runs servers on a host.

A driver does what one host does; the host is the server's. Every method may be called again after it
was cut short: what is there already stays, what is gone is no error.
"""

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, NamedTuple, Protocol

from computeapi.db.server_shares import AttachedShare
from computeapi.db.servers import BlockDevice, Server
from computeapi.errors import Error, NotSupported

# What diagnostics count of a disk and of an interface.
DISK_COUNTERS = ('read_bytes', 'read_requests', 'write_bytes', 'write_requests', 'errors_count')
INTERFACE_COUNTERS = tuple(
    f'{way}_{what}' for way in ('rx', 'tx') for what in ('octets', 'packets', 'drop', 'errors', 'rate')
)


class PowerState(IntEnum):
    """Whether a virtual machine runs, in the numbers that clients read."""

    NOSTATE = 0
    RUNNING = 1
    PAUSED = 3
    SHUTDOWN = 4
    CRASHED = 6
    SUSPENDED = 7


class Capability(Enum):
    """What some drivers can do and others cannot, in the words that tell a client that it cannot be done."""

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


# By the protocol that a console is asked for.
CONSOLES = {
    'vnc': Capability.VNC_CONSOLE,
    'spice': Capability.SPICE_CONSOLE,
    'rdp': Capability.RDP_CONSOLE,
    'serial': Capability.SERIAL_CONSOLE,
    'mks': Capability.MKS_CONSOLE,
}


class HypervisorError(Error):
    text = 'The hypervisor could not do it.'


class Unfit(HypervisorError):
    """What is asked for cannot be done on any host: an image is not what it says it is, for one."""


class HostDown(HypervisorError):
    """The host is told nothing: what is there stays there for now."""

    text = 'Host {host} is down.'


class NotYet(BaseException):
    """What the driver was told is under way and over in so many seconds: whoever told it tells it again then.

    No error: nothing is to be taken back because of it.
    """

    def __init__(self, seconds: float):
        super().__init__(f'not before {seconds:g} s')
        self.seconds = seconds


class Outdated(BaseException):
    """What the driver was told is not done: it has heard since from somebody who has the work on the server now.

    No error: nothing is to be taken back because of it, for that one goes on.
    """


@dataclass(frozen=True)
class Host:
    """A host that a driver serves; memory in MiB, disk in GiB."""

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


class Console(NamedTuple):
    """Where a console of a server listens: what a proxy connects to.

    host: a name or an address, or the path of a Unix socket, whose port is 0.
    internal_access_path: what the proxy must ask for there, if anything.
    """

    host: str
    port: int
    tls_port: int | None = None
    internal_access_path: str | None = None


class BusAddress(NamedTuple):
    """Where a guest finds a device: pci, scsi, ide or usb, and the place on that bus as a kernel writes it."""

    bus: str
    address: str


class Operations(Protocol):
    """What a driver is told to do with a server. What takes long is told again: NotYet. Errors: HypervisorError."""

    def spawn(
        self,
        server: Server,
        devices: Sequence[BlockDevice],
        config_drive: Mapping[str, bytes] | None = None,
        former_host: str | None = None,
    ) -> None:
        """Make the server's virtual machine on its host, with its network_info and disks, and run it.

        config_drive: the documents that it finds on one more disk, by their paths there; none: it has no such disk.
        former_host: which is down; what the server had on local disks there stays, where its host has them, too."""

    def destroy(self, server: Server) -> None:
        """Remove the virtual machine and its local disks, where there is one; HostDown if nobody can be told."""

    def power_on(self, server: Server) -> None: ...

    def power_off(self, server: Server) -> None: ...

    def reboot(self, server: Server, *, hard: bool) -> None: ...

    def pause(self, server: Server) -> None: ...

    def unpause(self, server: Server) -> None: ...

    def suspend(self, server: Server) -> None:
        """Write the memory to disk and stop."""

    def resume(self, server: Server) -> None: ...

    def rescue(self, server: Server, image_id: str | None) -> None:
        """Boot from another image, with the server's own disk beside it; None: the image it was made from."""

    def unrescue(self, server: Server) -> None: ...

    def crash_dump(self, server: Server) -> None:
        """Send the server the interrupt that makes its kernel write a dump."""

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
        """Let the virtual machine see that a volume has another size."""

    def snapshot_volume(self, server: Server, device: BlockDevice, facts: Mapping[str, Any]) -> None:
        """Write what comes to a new file, which *facts* name, so that the volume's own holds the state of now."""

    def delete_volume_snapshot(
        self, server: Server, device: BlockDevice, snapshot_id: str, facts: Mapping[str, Any]
    ) -> None:
        """Merge the files that *facts* name."""

    def swap(self, server: Server, old: BlockDevice, new: BlockDevice) -> None:
        """Copy one volume to another while the server runs, and use that one from then on."""

    def mount_share(self, server: Server, share: AttachedShare) -> None:
        """Mount the share on the server's host, for the guest to find under its tag from the next start on."""

    def unmount_share(self, server: Server, share: AttachedShare) -> None: ...

    def describe(self, server: Server) -> Mapping[str, Any]:
        """What another host must know of the virtual machine to get ready for it, in values of JSON."""

    def prepare_migration(self, server: Server, host: str, machine: Mapping[str, Any]) -> Mapping[str, Any]:
        """Get that host, which is asked, ready to take over the virtual machine, switched off, from `server.host`,
        which described it.

        What `migrate` must know of it, in values of JSON."""

    def migrate(self, server: Server, host: str, facts: Mapping[str, Any]) -> None:
        """Copy the virtual machine, switched off, to another host; `server.host`, which is asked, is where it comes
        from, and *facts* are what the other one said when it was prepared.

        It is here too until `destroy`."""

    def check_live_migration(self, server: Server, host: str) -> None:
        """HypervisorError when the virtual machine could not run on that host."""

    def sees_disks(self, server: Server, host: str, machine: Mapping[str, Any]) -> bool | None:
        """Whether that host, which is asked, has the disks of the virtual machine on `server.host`, which described it,
        so that none is to be copied when it moves while it runs; None: there is nothing to be copied."""

    def prepare_live_migration(self, server: Server, host: str, machine: Mapping[str, Any]) -> Mapping[str, Any]:
        """Get that host, which is asked, ready for the virtual machine, which stays where it is, and was described
        there; it is told again before each `live_migrate`, which goes on.

        What `live_migrate` must know of it, in values of JSON."""

    def live_migrate(self, server: Server, host: str, facts: Mapping[str, Any], wish: str) -> bool:
        """Move the virtual machine to another host while it runs; whether it moved. It is on one of both at any time.

        facts: what the other host said when it was prepared.
        wish: what its owner wants at this moment: 'cancelling' stops the move, 'forcing' makes it end at once. A driver
        that takes long says NotYet, and hears with the next call what is wanted then."""


class Hypervisor(Operations, Protocol):
    """A driver: what it is told to do, and what it answers at once."""

    def capabilities_of(self, host: str | None) -> frozenset[Capability]:
        """What it can do on that host of what not all drivers can; None: on some host."""

    def during(self, passed: Callable[[str], float], token: int = 0, task: int = 0) -> 'Hypervisor':
        """The driver for one piece of work, which can wait: NotYet. It has no time for others, and does it at once.

        passed: how many seconds ago this work came to a step first, which the driver gives a name.
        token: grows with each claim on the work of a server. Who comes with a lower one than the driver has seen for
        that server was taken for dead: Outdated, and nothing is done. 0: whoever does not work on a claim.
        task: tells this piece of work from others, and stays when it is told again.
        """

    def hosts(self) -> Sequence[Host]:
        """The hosts that this process drives."""

    def upkeep(self) -> None:
        """Do what is to be done on them now and then, whatever becomes of servers."""

    def connector(self, host: str) -> Mapping[str, Any]:
        """What a host says about itself to block storage, which lets it reach volumes then: its name as `host`, its
        `ip`, the `initiator` that it is for iSCSI, whether it has several paths (`multipath`)."""

    def machines(self) -> Iterable[tuple[str, str]]:
        """The virtual machines on these hosts: the server of each, by its UUID, and the host."""

    def switch_host(self, host: str, on: bool) -> None:
        """Switch a host on, or off with all that runs there; nothing runs by itself when it is on again."""

    def guest_at(self, address: str) -> str | None:
        """The UUID of the server whose guest asks its host from that address; None where nobody can tell for sure."""

    def power_state(self, server: Server) -> PowerState | None:
        """None: there is no virtual machine."""

    def bus_addresses(self, server: Server, devices: Sequence[BlockDevice]) -> Mapping[str, BusAddress]:
        """Where the guest finds its interfaces, by the ids of their ports, and its disks, by their uuids; less what is
        not known."""

    def diagnostics(self, server: Server, devices: Sequence[BlockDevice]) -> Mapping[str, Any]:
        """What the virtual machine is doing, less what is not known.

        driver, hypervisor and hypervisor_os are names, uptime is in seconds, memory_used in MiB. Of lists of dicts,
        cpus have time (in ns) and utilisation (in percent), disks a device_name and DISK_COUNTERS, interfaces a
        mac_address and INTERFACE_COUNTERS.
        """

    def console_output(self, server: Server, lines: int | None) -> str:
        """The last *lines* of what the server wrote to its serial console; None: all that is kept."""

    def console(self, server: Server, protocol: str) -> Console:
        """The server's console by that protocol, one of CONSOLES."""

    def connect(self, server: Server, protocol: str, console: Console) -> socket.socket:
        """A new connection to that console, which `console` said once; whoever asks closes it.

        It speaks the protocol (serial: what the guest writes and reads), and ends when the virtual machine does not run
        here any more. HypervisorError when nobody answers there, NotSupported for what nobody can connect to."""


def require(hypervisor: Hypervisor, capability: Capability, host: str | None) -> None:
    """NotSupported for what the driver cannot do on that host; asked before anything is begun."""
    if capability not in hypervisor.capabilities_of(host):
        raise unsupported(capability)


def unsupported(capability: Capability) -> NotSupported:
    return NotSupported(f'The current driver does not support {capability.value}.')
