"""QMP: controls a QEMU over a socket in the guest's folder, which accepts one client at a time."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from qemu.qmp import ExecuteError, QMPClient, QMPError

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu.sockets import connected

LOG = logging.getLogger(__name__)
CONNECT_SECONDS = 10
COMMAND_SECONDS = 20
LOOK_SECONDS = 0.02
MAX_BANDWIDTH = 2**40
UNDER_WAY = frozenset({'setup', 'active', 'pre-switchover', 'device', 'cancelling', 'wait-unplug'})
"""The states of a migration that has neither completed nor failed."""
BROKEN = (OSError, QMPError, TimeoutError, EOFError, ValueError, AssertionError)
"""The errors of the library when QEMU exits or sends invalid data, which it considers impossible in part."""
# The library logs the errors that it raises, too, and every QEMU that exits.
logging.getLogger('qemu.qmp').setLevel(logging.CRITICAL)


class Refusal(HypervisorError):
    """QEMU understood the command and refused it. The reason is only logged, because it is about the host."""

    def __init__(self, command: str, message: str):
        super().__init__(f'The hypervisor refused {command}.')
        self.message = message


class Monitor:
    """A connection to the QEMU of a socket, as a context manager; HypervisorError if it does not answer in time.

    Other clients of the socket wait meanwhile. The library's synchronous client is not used: its licence is the GPL.
    """

    def __init__(self, path: Path, timeout: float = CONNECT_SECONDS):
        """timeout: how many seconds to wait for the socket of a QEMU that has just been started."""
        self.path, self.timeout = path, timeout
        self.client = QMPClient()

    def __enter__(self) -> Self:
        self.runner = asyncio.Runner()
        try:
            self._wait(self.client.connect(self._connected()), CONNECT_SECONDS)
        except BROKEN as error:
            self._close()
            raise silent(self.path) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _connected(self) -> socket.socket:
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                return connected(self.path, CONNECT_SECONDS)
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(LOOK_SECONDS)

    def execute(self, command: str, **arguments: Any) -> Any:
        """QEMU's answer; write `_` for `-` in names. Refusal."""
        wanted = {name.replace('_', '-'): value for name, value in arguments.items()}
        return self.command(command, wanted)

    def command(self, command: str, arguments: dict[str, Any]) -> Any:
        try:
            return self._wait(self.client.execute(command, arguments), COMMAND_SECONDS)
        except ExecuteError as error:
            LOG.info('%s refused %s: %s', self.path.parent.name, command, error)
            raise Refusal(command, str(error)) from None
        except BROKEN as error:
            raise silent(self.path) from error

    def nodes(self) -> set[str]:
        """The names of all block nodes, including those that others consist of."""
        return {node['node-name'] for node in self.execute('query-named-block-nodes', flat=True)}

    def status_of(self, job: str) -> str | None:
        """The status of a job; None: there is no such job."""
        return next((str(each['status']) for each in self.execute('query-jobs') if each['id'] == job), None)

    def migration(self) -> str:
        """The status of the last migration, which may be the guest's own arrival: see `has_sent`."""
        return str(self.execute('query-migrate').get('status', 'none'))

    def sends(self) -> bool:
        """Whether an outgoing migration is in progress."""
        return self.migration() in UNDER_WAY or self.execute('query-status')['status'] == 'finish-migrate'

    def has_sent(self) -> bool:
        """Whether the guest has been sent completely, and has stopped for good.

        Both conditions are needed: the migration of a guest that has arrived is also 'completed', and a guest that was
        stopped before a failed migration may also be in 'postmigrate'.
        """
        stands_still = self.execute('query-status')['status'] == 'postmigrate'
        return stands_still and self.migration() == 'completed'

    def configure_migration(self, *, confirmed: bool) -> None:
        """Set up an outgoing migration. confirmed: to another QEMU, which must confirm that the guest runs there, else
        it continues here; not confirmed: into a file, and settings left over from a failed move are reset."""
        wanted = [{'capability': name, 'state': confirmed} for name in ('pause-before-switchover', 'return-path')]
        self.execute('migrate-set-capabilities', capabilities=wanted)
        self.execute('migrate-set-parameters', max_bandwidth=MAX_BANDWIDTH)
        if not confirmed:
            self.execute('migrate-set-parameters', tls_creds='', tls_hostname='')

    def hand_over(self, name: str, file: int) -> None:
        """Pass an open file to QEMU under that name."""
        self.client.send_fd_scm(file)
        self.execute('getfd', fdname=name)

    def lent(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """The block node options, with the file or folder opened here and passed over this connection, because QEMU may
        not have access to its path."""
        if 'filename' in facts:
            return {**facts, 'filename': f'/dev/fdset/{self._lend(facts["filename"], os.O_RDWR)["fdset-id"]}'}
        if 'dir' in facts:
            return {**facts, 'dir': f'/proc/self/fd/{self._lend(facts["dir"], os.O_RDONLY)["fd"]}'}
        return {**facts}

    def _lend(self, path: str, flags: int) -> dict[str, int]:
        opened = os.open(path, flags)
        try:
            self.client.send_fd_scm(opened)
            return dict(self.execute('add-fd'))
        finally:
            os.close(opened)

    def _wait(self, answer: Any, seconds: float) -> Any:
        return self.runner.run(asyncio.wait_for(answer, seconds))

    def _close(self) -> None:
        try:
            self._wait(self.client.disconnect(), CONNECT_SECONDS)
        except BROKEN:
            LOG.debug('The connection to %s was lost', self.path.parent.name)
        finally:
            self.runner.close()


def silent(path: Path) -> HypervisorError:
    return HypervisorError(f'The virtual machine of {path.parent.name} does not answer.')
