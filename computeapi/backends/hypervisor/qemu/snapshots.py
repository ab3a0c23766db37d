"""Images of the disks of guests, also while they run: the state at the moment when the snapshot begins."""

from collections.abc import Iterator
from pathlib import Path

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu import disks, qemu_img
from computeapi.backends.hypervisor.qemu.child import Child, end_those_of
from computeapi.backends.hypervisor.qemu.guest import Disk
from computeapi.backends.hypervisor.qemu.guest_agent import frozen, thaw
from computeapi.backends.hypervisor.qemu.monitor import Monitor
from computeapi.backends.hypervisor.qemu.work import COPY_SECONDS, GuestWork

CHUNK = 256 * 1024
JOB = 'snapshot'
FORMATS = ('raw', 'qcow2')


def take(work: GuestWork, disk_format: str, task: int) -> Iterator[bytes]:
    """The data of an image of its first disk; task: identifies this piece of work."""
    disk = work.folder.existing().disk(disks.ROOT)
    if disk is None:
        raise HypervisorError('The server has no disk of its own.')
    if disk_format not in FORMATS:
        raise HypervisorError(f'This host cannot create images in the format {disk_format}.')
    target = work.folder / f'{JOB}-{task}.{disk_format}'
    if not (target.exists() and task):
        copy(work, disk, target, disk_format)
    return once(target)


def copy(work: GuestWork, disk: Disk, target: Path, disk_format: str) -> None:
    child = Child(target)
    end_those_of(work.folder, but=target)
    for path in work.folder.path.glob(f'{JOB}-*'):
        if path not in (child.part, child.number):
            path.unlink(missing_ok=True)
    if work.process.runs:
        with work.monitor() as monitor:
            copy_running(work, monitor, disk, child, disk_format)
        return
    if not child.is_under_way:
        child.start(['qemu-img', 'convert', '-q', '-O', disk_format, disks.source(disk), str(child.part)])
    work.until(JOB, lambda: not child.is_under_way, COPY_SECONDS)
    if not child.is_done:
        raise HypervisorError('The image of the disk could not be created.')


def copy_running(work: GuestWork, monitor: Monitor, disk: Disk, child: Child, disk_format: str) -> None:
    if work.folder.existing().frozen:
        thaw(work)
    if monitor.status_of(JOB) is not None and not child.part.exists():
        # The job was started by a piece of work that was abandoned.
        finish(work, monitor)
    if monitor.status_of(JOB) is None:
        with frozen(work):
            begin(work, monitor, disk, child, disk_format)
    work.until(JOB, lambda: monitor.status_of(JOB) == 'concluded', COPY_SECONDS)
    error = finish(work, monitor)
    if error:
        child.part.unlink(missing_ok=True)
        raise HypervisorError('The image of the disk could not be created.')
    child.part.replace(child.target)


def begin(work: GuestWork, monitor: Monitor, disk: Disk, child: Child, disk_format: str) -> None:
    nodes = {node['node-name']: node for node in monitor.execute('query-named-block-nodes', flat=True)}
    if JOB in nodes:
        monitor.execute('blockdev-del', node_name=JOB)
    size = nodes[disk.name]['image']['virtual-size']
    child.part.unlink(missing_ok=True)
    qemu_img.create(child.part, size, disk_format=disk_format)
    file = monitor.lent(disks.file(child.part))
    node = {'driver': disk_format, 'node-name': JOB, 'file': file, 'discard': 'unmap', 'detect-zeroes': 'unmap'}
    monitor.command('blockdev-add', node)
    copying = {'job_id': JOB, 'device': disk.name, 'target': JOB, 'sync': 'full'}
    monitor.execute('blockdev-backup', **copying, auto_dismiss=False)


def finish(work: GuestWork, monitor: Monitor) -> str | None:
    """End the copy job, finished or not; returns its error, if any."""
    if monitor.status_of(JOB) != 'concluded':
        monitor.execute('job-cancel', id=JOB)
        work.until(f'cancel {JOB}', lambda: monitor.status_of(JOB) == 'concluded', COPY_SECONDS)
    error: str | None = next(job.get('error') for job in monitor.execute('query-jobs') if job['id'] == JOB)
    monitor.execute('job-dismiss', id=JOB)
    monitor.execute('blockdev-del', node_name=JOB)
    return error


def once(path: Path) -> Iterator[bytes]:
    """Yields the contents of the file, then deletes it."""
    try:
        with path.open('rb') as file:
            while chunk := file.read(CHUNK):
                yield chunk
    finally:
        path.unlink(missing_ok=True)
