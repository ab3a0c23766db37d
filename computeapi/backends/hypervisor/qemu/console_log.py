"""The serial console's output of a guest: QEMU appends it to a file, which is kept short."""

import logging
import os
from pathlib import Path

from computeapi.backends.atomic_files import write
from computeapi.backends.hypervisor.qemu.command_line import CONSOLE_LOG
from computeapi.backends.hypervisor.qemu.folder import GuestFolder

LOG = logging.getLogger(__name__)
MAX_BYTES, KEPT_BYTES = 2**20, 2**18
# The most that clients can read.
READ_BYTES = 100 * 1024


class ConsoleLog:
    def __init__(self, folder: GuestFolder):
        self.path, self.former = folder / CONSOLE_LOG, folder / f'{CONSOLE_LOG}.1'

    def read(self, lines: int | None) -> str:
        """The last *lines*; None: all that is kept, up to a limit."""
        found = tail(self.path, READ_BYTES)
        if len(found) < READ_BYTES:
            found = tail(self.former, READ_BYTES - len(found)) + found
        text = found.decode(errors='replace').replace('\r\n', '\n').replace('\0', '')
        if lines is None:
            return text
        return '\n'.join(text.splitlines()[-lines:]) if lines else ''

    def trim(self) -> None:
        """Truncate a file that is too long, after copying its end; QEMU appends wherever the end is."""
        try:
            if self.path.stat().st_size > MAX_BYTES:
                try:
                    write(self.former, tail(self.path, KEPT_BYTES))
                except OSError as error:
                    LOG.warning('The end of %s could not be stored: %s', self.path, error)
                os.truncate(self.path, 0)
        except FileNotFoundError:
            # The guest is being deleted.
            return


def tail(path: Path, max_bytes: int) -> bytes:
    try:
        with path.open('rb') as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - max_bytes))
            return file.read(max_bytes)
    except FileNotFoundError:
        return b''
