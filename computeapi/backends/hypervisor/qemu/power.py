"""Power operations on a guest."""

import os

from computeapi.backends.hypervisor import HypervisorError, PowerState
from computeapi.backends.hypervisor.qemu import command_line, disks, migration_destination
from computeapi.backends.hypervisor.qemu.guest import QemuGuest
from computeapi.backends.hypervisor.qemu.guest_agent import GuestAgent
from computeapi.backends.hypervisor.qemu.guest_lifecycle import renew
from computeapi.backends.hypervisor.qemu.monitor import Monitor
from computeapi.backends.hypervisor.qemu.plugging import check_whole
from computeapi.backends.hypervisor.qemu.work import GuestWork, TooSlow

# QEMU's run states as power states; all others are RUNNING.
STATES = {
    'paused': PowerState.PAUSED,
    'prelaunch': PowerState.PAUSED,
    'guest-panicked': PowerState.CRASHED,
    'internal-error': PowerState.CRASHED,
    'io-error': PowerState.PAUSED,
    'shutdown': PowerState.SHUTDOWN,
}
MEMORY, MEMORY_PART = 'memory', 'memory.part'
MAX_SUSPEND_SECONDS, MAX_RESUME_SECONDS = 600, 600
# A limit, so that a property of an image does not keep an operator from moving its servers.
MAX_GRACE_SECONDS = 1800


def on(work: GuestWork) -> None:
    guest = work.folder.existing()
    if not work.process.runs:
        start_anew(work, guest)


def start_anew(work: GuestWork, guest: QemuGuest) -> None:
    """Boot from the disks; the memory is discarded."""
    guest.suspended, guest.started = False, True
    renew(work, guest)
    for name in (MEMORY, MEMORY_PART):
        (work.folder / name).unlink(missing_ok=True)
    work.start(guest)


def off(work: GuestWork, step: str = 'power_off') -> None:
    """Press its power button, and end it by force if it does not shut down in time."""
    work.folder.existing()
    timeout = grace(work)
    if not work.process.runs or not timeout or not work.waits:
        return work.process.end()
    try:
        if work.since(step) == 0 and not press(work):
            return work.process.end()
        work.until(step, lambda: not work.process.runs, timeout)
    except TooSlow:
        work.process.end()


def grace(work: GuestWork) -> float:
    """How many seconds the guest has to shut down."""
    wanted = str(work.server.image_properties.get('os_shutdown_timeout') or '')
    return min(float(wanted), MAX_GRACE_SECONDS) if wanted.isdecimal() else float(work.host.options.shutdown_timeout)


def press(work: GuestWork) -> bool:
    """Press the power button; returns whether the guest can react to it."""
    try:
        with work.monitor() as monitor:
            if not monitor.execute('query-status')['running']:
                return False
            monitor.execute('system_powerdown')
            return True
    except HypervisorError:
        # It may have just exited by itself; if it does not answer, it is ended.
        return False


def reboot(work: GuestWork, *, hard: bool) -> None:
    guest = work.folder.existing()
    if hard:
        work.process.end()
    else:
        off(work, 'reboot')
    start_anew(work, guest)


def pause(work: GuestWork) -> None:
    work.folder.existing()
    with work.monitor() as monitor:
        monitor.execute('stop')


def unpause(work: GuestWork) -> None:
    work.folder.existing()
    with work.monitor() as monitor:
        monitor.execute('cont')


def state(work: GuestWork) -> PowerState | None:
    guest = work.folder.read()
    if guest is None or guest.departed or not (guest.started or migration_destination.has_arrived(work.folder, guest)):
        return None
    if not work.process.runs:
        return PowerState.SHUTDOWN
    try:
        with work.monitor() as monitor:
            found = monitor.execute('query-status')['status']
            return None if found == 'postmigrate' and not guest.suspended else STATES.get(found, PowerState.RUNNING)
    except HypervisorError:
        return PowerState.NOSTATE if work.process.runs else PowerState.SHUTDOWN


# ------------------------------------------------------------------ suspend


def suspend(work: GuestWork) -> None:
    """Write its memory to a file, and end its process."""
    guest = work.folder.existing()
    if guest.suspended and not work.process.runs:
        return
    with work.monitor() as monitor:
        if not monitor.sends() and not monitor.has_sent():
            check_whole(monitor, guest)
            begin_to_write(work, monitor)
        work.until('suspend', lambda: not monitor.sends(), MAX_SUSPEND_SECONDS)
        if not monitor.has_sent():
            # The partial file may be the reason why the disk is full.
            (work.folder / MEMORY_PART).unlink(missing_ok=True)
            monitor.execute('cont')
            raise HypervisorError('The memory of the virtual machine could not be written to disk.')
    if (work.folder / MEMORY_PART).exists():
        (work.folder / MEMORY_PART).replace(work.folder / MEMORY)
    guest.suspended = True
    work.folder.write(guest)
    work.process.end()


def begin_to_write(work: GuestWork, monitor: Monitor) -> None:
    monitor.execute('stop')
    file = os.open(work.folder / MEMORY_PART, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        monitor.hand_over('memory', file)
    finally:
        os.close(file)
    monitor.configure_migration(confirmed=False)
    monitor.execute('migrate', uri='fd:memory')


def resume(work: GuestWork) -> None:
    """Continue from the saved memory."""
    guest = work.folder.existing()
    if not guest.suspended and not work.process.runs:
        raise HypervisorError(f'The virtual machine of {guest.server_id} is not suspended.')
    if not work.process.runs:
        file = os.open(work.folder / MEMORY, os.O_RDONLY)
        try:
            work.start(guest, '-incoming', f'fd:{file}', files=[file])
        finally:
            os.close(file)
    with work.monitor() as monitor:
        work.until('resume', lambda: monitor.execute('query-status')['status'] != 'inmigrate', MAX_RESUME_SECONDS)
        # Recorded before it runs: from then on it writes to its disks, and its saved memory is outdated.
        guest.suspended = False
        work.folder.write(guest)
        monitor.execute('cont')
    (work.folder / MEMORY).unlink(missing_ok=True)


# ------------------------------------------------------------------ rescue


def rescue(work: GuestWork, image_id: str | None) -> None:
    guest = work.folder.existing()
    if guest.rescue is None:
        base = work.image(image_id or work.server.image_id or '')
        slot = guest.free_slot(command_line.FIRST_SLOT, command_line.LAST_SLOT)
        if slot is None:
            raise HypervisorError('The virtual machine has no room for one more disk.')
        (work.folder / f'{disks.RESCUE}.qcow2').unlink(missing_ok=True)
        # The flavor does not limit a rescue disk's size.
        max_bytes = max(disks.root_size(work.server), work.host.images.max_bytes)
        disk = disks.overlay(work.folder, disks.RESCUE, slot, base, 0, None, max_bytes=max_bytes)
        work.process.end()
        guest.rescue = disk
        work.folder.write(guest)
    on(work)


def unrescue(work: GuestWork) -> None:
    guest = work.folder.existing()
    if guest.rescue is not None:
        work.process.end()
        guest.rescue = None
        work.folder.write(guest)
        (work.folder / f'{disks.RESCUE}.qcow2').unlink(missing_ok=True)
    on(work)


def set_password(work: GuestWork, password: str) -> None:
    """Set the administrator's password immediately, through the agent in the guest."""
    if work.folder.existing().agent_slot is None:
        raise HypervisorError('QEMU guest agent is not enabled')
    if not work.process.runs:
        raise HypervisorError(f'instance {work.server.uuid} is not running')
    properties = work.server.image_properties
    usual = 'Administrator' if properties.get('os_type') == 'windows' else 'root'
    with GuestAgent(work.folder) as agent:
        agent.set_password(str(properties.get('os_admin_user') or usual), password)


def crash_dump(work: GuestWork) -> None:
    work.folder.existing()
    with work.monitor() as monitor:
        monitor.execute('inject-nmi')
