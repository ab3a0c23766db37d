"""The migration of a guest to a host that is ready for it: its disks and, in a live migration, its memory."""

import base64
import contextlib
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from computeapi.backends.atomic_files import write
from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu import (
    disks,
    guest_lifecycle,
    migration_destination,
    plugging,
    qemu_img,
    shared_storage,
)
from computeapi.backends.hypervisor.qemu.child import Child
from computeapi.backends.hypervisor.qemu.command_line import text
from computeapi.backends.hypervisor.qemu.guest import Disk, QemuGuest
from computeapi.backends.hypervisor.qemu.monitor import Monitor
from computeapi.backends.hypervisor.qemu.work import COPY_SECONDS, GuestWork, TooSlow
from computeapi.states import VMState

FORCED_DOWNTIME = 2_000_000
"""The downtime limit, in milliseconds, of a move that the owner forces to complete."""
SWITCHING = ('pre-switchover', 'device')
"""The migration states of QEMU in which the guest is stopped while the last of it is sent."""
# Without a limit, a guest whose destination has vanished meanwhile would stay stopped for good.
SWITCH_SECONDS = 120


def describe(work: GuestWork) -> Mapping[str, Any]:
    """guest: as in guest.json.  sizes: of the disks to be copied, in bytes.  files: the other files in its folder,
    compressed.  mark: as `sharing` creates it."""
    guest = work.folder.existing()
    packed = {Path(disk.file['filename']): disk for disk in guest.disks if disk.read_only and disk.volume_id is None}
    return {
        'guest': orjson.loads(guest.text()),
        'sizes': {disk.name: size_of(disk) for disk in guest.own_disks},
        'mark': shared_storage.mark(work.folder),
        'files': {path.name: base64.b64encode(zlib.compress(path.read_bytes())).decode() for path in packed},
    }


def size_of(disk: Disk) -> int:
    return int(qemu_img.info(Path(disk.file['filename']), disk.format)['virtual-size'])


# ------------------------------------------------------------------ cold migration


def copy(work: GuestWork, host: str, facts: Mapping[str, Any]) -> None:
    """Send the disks of a guest that does not run, and mark the end of the transfer when all are there."""
    guest = work.folder.existing()
    if facts == migration_destination.HERE:
        return
    for disk in guest.own_disks:
        send(work, host, facts, disk.name, disks.source(disk))
    mark = work.folder / 'departed'
    write(mark, migration_destination.MARK.ljust(migration_destination.MARK_BYTES, b'\0'))
    arrived = Disk(migration_destination.ARRIVED, 0, 'raw', disks.file(mark))
    send(work, host, facts, migration_destination.ARRIVED, disks.source(arrived))


def send(work: GuestWork, host: str, facts: Mapping[str, Any], name: str, source: str) -> None:
    child = Child(work.folder / f'sent-{facts["id"]}-{name}')
    if child.is_done:
        return
    if not child.is_under_way:
        certificates = work.host.certificates
        target = {'driver': 'raw', 'file': certificates.target(host, facts) | {'export': facts['disks'][name]}}
        command = ['qemu-img', 'convert', *certificates.arguments('client'), '-q', '-n', '-O', 'raw']
        child.start([*command, source, f'json:{text(target)}'])
    work.until(f'send {name}', lambda: not child.is_under_way, COPY_SECONDS)
    if not child.is_done:
        raise HypervisorError('A disk could not be sent to the other host.')


# ------------------------------------------------------------------ live migration


def check(work: GuestWork) -> None:
    guest = work.folder.existing()
    with work.monitor() as monitor:
        plugging.check_whole(monitor, guest)


def move(work: GuestWork, host: str, facts: Mapping[str, Any], wish: str) -> bool:
    """Whether it has moved, and is not here any more."""
    guest = work.folder.existing()
    with work.monitor() as monitor:
        if not monitor.has_sent():
            if wish == 'cancelling':
                cancel(work, monitor, guest)
            else:
                advance(work, monitor, guest, host, facts, wish)
        has_gone = monitor.has_sent()
    if has_gone:
        # Otherwise the remains could be taken for a server that is powered off.
        guest.departed = True
        work.folder.write(guest)
        guest_lifecycle.destroy(work)
    return has_gone


def advance(
    work: GuestWork, monitor: Monitor, guest: QemuGuest, host: str, facts: Mapping[str, Any], wish: str
) -> None:
    """Mirror the disks until only the guest's current writes are left, then send its memory; finally both stop for a
    moment, in which the rest is sent."""
    if facts == migration_destination.HERE:
        raise HypervisorError('The virtual machine is already running there.')
    if not monitor.sends():
        begin(work, monitor, guest, host, facts)
    if wish == 'forcing':
        monitor.execute('migrate-set-parameters', downtime_limit=FORCED_DOWNTIME)
    work.until('move', lambda: monitor.migration() in SWITCHING or not monitor.sends(), COPY_SECONDS)
    if monitor.migration() == 'pre-switchover':
        end_mirrors(work, monitor, guest, force=False)
        monitor.execute('migrate-continue', state='pre-switchover')
    with contextlib.suppress(TooSlow):
        work.until('switch', lambda: not monitor.sends(), COPY_SECONDS if wish == 'forcing' else SWITCH_SECONDS)
    if not monitor.has_sent():
        cancel(work, monitor, guest)
        raise HypervisorError('The virtual machine could not be moved.')


def begin(work: GuestWork, monitor: Monitor, guest: QemuGuest, host: str, facts: Mapping[str, Any]) -> None:
    there, mirroring = work.host.certificates.target(host, facts), mirrors(monitor)
    if not mirroring:
        # Mirrors left over from a failed move would hold on to the certificate that they were started with.
        end_mirrors(work, monitor, guest, force=True)
        show_certificate(work, monitor, host)
    # Shared disks are at the destination already.
    sent = [disk for disk in guest.own_disks if disk.name in facts['disks']]
    for disk in sent:
        name = mirror_of(disk)
        if name in mirroring:
            continue
        if name in monitor.nodes():
            monitor.execute('blockdev-del', node_name=name)
        nbd = there | {'export': facts['disks'][disk.name]}
        monitor.command('blockdev-add', {'driver': 'raw', 'node-name': name, 'file': nbd, 'discard': 'unmap'})
        monitor.execute('blockdev-mirror', job_id=name, device=disk.name, target=name, sync='full')
    wanted = {mirror_of(disk) for disk in sent}
    work.until('copy', lambda: is_ready(monitor, wanted), COPY_SECONDS)
    monitor.configure_migration(confirmed=True)
    monitor.execute('migrate', uri=f'tcp:{facts["address"]}:{facts["memory"]}')


def show_certificate(work: GuestWork, monitor: Monitor, host: str) -> None:
    """Set the client certificate, and the name that the destination's certificate must contain. It is loaded anew each
    time, because certificates are renewed."""
    certificates = work.host.certificates
    name, credentials = certificates.name('client'), certificates.credentials('client')
    if credentials is not None:
        if any(each['name'] == name for each in monitor.execute('qom-list', path='/objects')):
            monitor.execute('object-del', id=name)
        monitor.command('object-add', credentials)
    monitor.execute('migrate-set-parameters', tls_creds=name, tls_hostname=host if name else '')


def mirror_of(disk: Disk) -> str:
    return f'{disk.name}-mirror'


def mirrors(monitor: Monitor) -> dict[str, str]:
    """The status of each mirror job, by name."""
    return {job['id']: job['status'] for job in monitor.execute('query-jobs') if job['type'] == 'mirror'}


def is_ready(monitor: Monitor, wanted: set[str]) -> bool:
    """Whether all that was on the disks has been sent; HypervisorError if a mirror has failed."""
    found = mirrors(monitor)
    if wanted - found.keys():
        raise HypervisorError('A disk could not be sent to the other host.')
    return {found[name] for name in wanted} <= {'ready'}


def end_mirrors(work: GuestWork, monitor: Monitor, guest: QemuGuest, *, force: bool) -> None:
    """End the mirrors; both sides are then identical, unless *force* is given."""
    for name in mirrors(monitor):
        monitor.execute('block-job-cancel', device=name, force=force)
    work.until('end of copying', lambda: not mirrors(monitor), COPY_SECONDS)
    for name in {mirror_of(disk) for disk in guest.disks} & monitor.nodes():
        monitor.execute('blockdev-del', node_name=name)


def cancel(work: GuestWork, monitor: Monitor, guest: QemuGuest) -> None:
    """Return the guest to where it was, running unless its user had paused it."""
    if monitor.sends():
        monitor.execute('migrate_cancel')
        work.until('cancel', lambda: not monitor.sends(), COPY_SECONDS)
    if monitor.has_sent():
        return
    end_mirrors(work, monitor, guest, force=True)
    if not monitor.execute('query-status')['running'] and work.server.vm_state != VMState.PAUSED:
        monitor.execute('cont')
