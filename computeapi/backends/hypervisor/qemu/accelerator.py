"""Selects the accelerator: hardware virtualization (KVM) if a trial run shows that it works, else TCG."""

import contextlib
import logging
import os
import platform
import subprocess
import tempfile
import time
from pathlib import Path

from computeapi.backends.atomic_files import write
from computeapi.backends.hypervisor.qemu.command_line import processor
from computeapi.backends.image import blank

LOG = logging.getLogger(__name__)
AUTO, KVM, TCG = 'auto', 'kvm', 'tcg'
DEVICE = Path('/dev/kvm')
SECONDS, LOOK_SECONDS = 10, 0.05


def chosen(wanted: str, binary: str, version: int, state: Path) -> str:
    """kvm or tcg, as configured; the result of the trial is kept for this QEMU version on this kernel."""
    if wanted != AUTO:
        return wanted
    kept, this = state / 'accelerator', f'{version} {platform.release()}'
    with contextlib.suppress(OSError, ValueError):
        known, found = kept.read_text().rsplit(' ', 1)
        if known == this:
            return found
    found = KVM if os.access(DEVICE, os.R_OK | os.W_OK) and runs(binary) else TCG
    LOG.info('Guests are executed by %s', found)
    state.mkdir(mode=0o711, parents=True, exist_ok=True)
    write(kept, f'{this} {found}'.encode())
    return found


def runs(binary: str) -> bool:
    """Whether a guest gets as far as printing its greeting: that the device exists and opens proves little."""
    with tempfile.TemporaryDirectory() as folder:
        disk, said = Path(folder, 'disk'), Path(folder, 'said')
        disk.write_bytes(blank.disk())
        command = [binary, '-machine', 'pc,accel=kvm', '-cpu', processor(KVM), '-m', '64', '-nodefaults']
        command += [
            '-no-user-config',
            '-display',
            'none',
            '-serial',
            f'file:{said}',
            '-drive',
            f'file={disk},format=qcow2,if=virtio',
        ]
        null = subprocess.DEVNULL
        with subprocess.Popen(command, stdin=null, stdout=null, stderr=null) as process:
            try:
                return is_said(process, said)
            finally:
                process.kill()


def is_said(process: 'subprocess.Popen[bytes]', said: Path) -> bool:
    deadline = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if said.exists() and blank.GREETING.encode() in said.read_bytes():
            return True
        time.sleep(LOOK_SECONDS)
    return False
