"""The migration of a guest from another host: its disks are created here, and written by the other host.

They are raw files, whatever they were at the source: two processes may have one open, because the guest's QEMU does not
read it before the exporter has written the last of it.
"""

import base64
import contextlib
import os
import secrets
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
from oslo_utils.uuidutils import is_uuid_like

from computeapi.backends.atomic_files import write
from computeapi.backends.hypervisor import HypervisorError, NotYet
from computeapi.backends.hypervisor.qemu import disks, guest_lifecycle, qemu_img, shared_storage, storage_daemon
from computeapi.backends.hypervisor.qemu.folder import GuestFolder, HostFolder
from computeapi.backends.hypervisor.qemu.guest import Disk, QemuGuest
from computeapi.backends.hypervisor.qemu.monitor import Monitor
from computeapi.backends.hypervisor.qemu.process import QMP, GuestProcess, export_of, exporter_of
from computeapi.backends.hypervisor.qemu.storage_daemon import ServedFile, free_port, listens
from computeapi.backends.hypervisor.qemu.work import GuestWork
from computeapi.db.servers import Server

# The file in which the other host marks that everything has been sent.
ARRIVED, MARK = 'arrived', b'arrived'
MARK_BYTES = 512
# The limit for all files that come with the description: a CD with the documents of the guest.
MAX_FILES_BYTES = 64 * 2**20
CD, DISKS = '.iso', {'.raw', '.qcow2'}
"""The suffixes of the files that are disks."""
HERE = {'here': True}
"""The answer to the source if the guest already runs here."""


def prepare(work: GuestWork, source: str | None, machine: Mapping[str, Any], *, live: bool) -> Mapping[str, Any]:
    """Where to send the disks and, in a live migration, the memory; the same again while those are awaited."""
    guest = work.folder.read()
    facts = None if guest is None else guest.landing
    if guest is not None and facts is None and work.process.runs:
        if not live:
            raise HypervisorError(f'The virtual machine of {work.server.uuid} is already running there.')
        return HERE
    if facts and work.exporter.runs and facts['live'] == live == work.process.runs:
        return facts
    guest_lifecycle.destroy(work)
    # A guest that is powered off gets disks of its own: the originals may be needed again as they were.
    shared = shared_storage.accessible_folder(work.host.folder, source, work.server.uuid, machine) if live else None
    guest = make(work, machine, shared)
    facts = guest.landing = {**export(work, [] if shared else guest.own_disks), 'live': live}
    if live:
        facts['memory'] = free_port(facts['address'])
        await_memory(work, guest, facts)
    work.folder.write(guest)
    return facts


def await_memory(work: GuestWork, guest: QemuGuest, facts: Mapping[str, Any]) -> None:
    certificates = work.host.certificates
    work.start(guest, *certificates.arguments('server'), '-incoming', 'defer')
    with work.monitor() as monitor:
        monitor.execute('migrate-set-parameters', tls_creds=certificates.name('server'))
        monitor.execute('migrate-incoming', uri=f'tcp:{facts["address"]}:{facts["memory"]}')


def make(work: GuestWork, machine: Mapping[str, Any], shared: GuestFolder | None) -> QemuGuest:
    """The described guest, with empty disks, or with those in a folder that both hosts share."""
    guest, server = QemuGuest.of(orjson.dumps(machine['guest'])), work.server
    if guest.server_id != server.uuid:
        raise HypervisorError('The virtual machine belongs to another server.')
    check(guest, server, machine)
    guest.started = guest.suspended = False
    work.folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, data in unpacked(machine['files']):
        write(work.folder / Path(name).name, data)
    guest.disks = [landed(work, disk, machine['sizes'], shared) for disk in guest.disks]
    if guest.kernel is not None:
        guest.kernel = str(work.named_image(server.kernel_id or '').path)
        guest.ramdisk = str(work.named_image(server.ramdisk_id).path) if server.ramdisk_id else None
    write(work.folder / ARRIVED, bytes(MARK_BYTES))
    return guest


def check(guest: QemuGuest, server: Server, machine: Mapping[str, Any]) -> None:
    """HypervisorError for a guest that exceeds its server, or would make its QEMU open files that are not the guest's:
    an attacker who controls the other host could describe anything."""
    of_ports = {guest_lifecycle.card_of(server, entry, 0).port_id: entry for entry in server.network_info}
    slots = [*(disk.slot for disk in guest.disks), *(card.slot for card in guest.cards), *guest.ghosts]
    numbers = [guest.vcpus, guest.memory_mb, *slots, guest.agent_slot or 0, *machine['sizes'].values()]
    if not (
        guest.rescue is None
        and guest.machine in guest_lifecycle.MACHINES
        and all(card.port_id in of_ports and card.model in guest_lifecycle.CARDS.values() for card in guest.cards)
        and all(is_own(disk, machine) for disk in guest.disks)
        and all(Path(name).suffix == CD for name in machine['files'])
        and all(type(number) is int for number in numbers)
        and guest.vcpus <= server.vcpus
        and guest.memory_mb <= server.memory_mb
    ):
        raise HypervisorError('The virtual machine does not match its server.')
    for card in guest.cards:
        card.interface = dict(of_ports[card.port_id])
        card.mac_address = card.interface['mac_address']


def is_own(disk: Disk, machine: Mapping[str, Any]) -> bool:
    """Whether it is a volume, a disk to be created here, or a CD that comes with the description. A disk must be none
    of the other files in the guest's folder: a guest that could write to those could make its QEMU open anything."""
    if disk.volume_id is not None:
        return is_uuid_like(disk.volume_id)
    file = Path(disk.file['filename'])
    if disk.name in machine['sizes']:
        return not disk.read_only and file.suffix in DISKS
    return disk.read_only and file.name in machine['files']


def unpacked(files: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """HypervisorError above the size limit: a small input can decompress to a huge output."""
    room = MAX_FILES_BYTES
    for name, packed in files.items():
        data = zlib.decompressobj().decompress(base64.b64decode(packed), room + 1)
        room -= len(data)
        if room < 0:
            raise HypervisorError('The state of the virtual machine, without its disks, is too large.')
        yield name, data


def landed(work: GuestWork, disk: Disk, sizes: Mapping[str, int], shared: GuestFolder | None) -> Disk:
    if disk.volume_id is not None:
        return replace(disk, file={}, format='raw', backing=None, credentials=None)
    if disk.name in sizes and shared is not None:
        return shared_storage.taken(work, disk, shared)
    if disk.name in sizes:
        path = work.folder / Path(f'{disk.name}.raw').name
        qemu_img.create(path, sizes[disk.name], disk_format='raw')
    else:
        path = work.folder / Path(disk.file['filename']).name
    return replace(disk, file=disks.file(path), format='raw', backing=None)


def export(work: GuestWork, sent: Sequence[Disk]) -> dict[str, Any]:
    """Let the other host write to these disks; returns where."""
    certificates = work.host.certificates
    address, secret = str(work.host.options.my_ip), secrets.token_hex(16)
    port, names = free_port(address), {disk.name: f'{secret}-{disk.name}' for disk in sent}
    paths = {disk.name: Path(disk.file['filename']) for disk in sent}
    names[ARRIVED], paths[ARRIVED] = f'{secret}-{ARRIVED}', work.folder / ARRIVED
    files = {name: held(work, path) for name, path in paths.items()}
    served = [
        # The guest's own process locks the files when it takes them over.
        ServedFile(Path(f'/proc/self/fd/{files[name]}'), called, name, f'{export_of(work.folder)}-{name}')
        for name, called in names.items()
    ]
    command = storage_daemon.command(address, port, served, certificates.credentials('server'))
    try:
        work.exporter.begin([*work.host.user.command, *command], lambda: listens(address, port), [*files.values()])
    finally:
        for each in files.values():
            os.close(each)
    tls = bool(certificates.directory)
    return {'id': secret[:8], 'address': address, 'port': port, 'disks': names, 'tls': tls}


def held(work: GuestWork, path: Path) -> int:
    """An open file through which the guests' user can open it without access to its path."""
    work.host.user.give(path)
    return os.open(path, os.O_PATH)


def has_arrived(folder: GuestFolder, guest: QemuGuest) -> bool:
    """Whether an expected guest has arrived completely."""
    if guest.landing is None:
        return False
    if not guest.landing['live']:
        return (folder / ARRIVED).read_bytes().startswith(MARK)
    if not GuestProcess(folder).runs:
        return False
    try:
        with Monitor(folder / QMP) as monitor:
            return bool(monitor.execute('query-status')['status'] not in ('inmigrate', 'prelaunch'))
    except HypervisorError:
        return False


def settle(folder: GuestFolder) -> None:
    """Turn a guest that has arrived into an ordinary one."""
    guest = folder.read()
    if guest is not None and has_arrived(folder, guest):
        exporter_of(folder).end()
        guest.landing, guest.started = None, True
        folder.write(guest)


def settle_running(host: HostFolder) -> None:
    """Settle guests that arrived by live migration: no operation on them may come that would do so."""
    for folder in host.all():
        guest = folder.read()
        if guest is not None and guest.landing and guest.landing['live']:
            # Whoever holds the lock settles it anyway; otherwise the next run does.
            with contextlib.suppress(NotYet), host.claimed(folder.server_id, 0):
                settle(folder)
