"""The QEMU guest agent, controlled by lines of JSON over a serial port of its own.

Whether a guest has an agent is unknown until it answers, and the answers are not to be trusted.
"""

import base64
import contextlib
import logging
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import orjson

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu import command_line
from computeapi.backends.hypervisor.qemu.folder import GuestFolder
from computeapi.backends.hypervisor.qemu.sockets import connected
from computeapi.backends.hypervisor.qemu.work import GuestWork
from computeapi.booleans import is_true
from computeapi.errors import NotSupported

LOG = logging.getLogger(__name__)
CONNECT_SECONDS, SYNC_SECONDS, COMMAND_SECONDS = 2, 5, 30
MAX_ANSWER_BYTES = 64 * 1024
# Resets the parser at both ends, whatever was left incomplete before.
DELIMITER = b'\xff'


class AgentError(HypervisorError):
    text = 'The guest agent could not perform the command.'


class Silent(NotSupported):
    text = 'The guest agent does not answer.'


class GuestAgent:
    """A connection to the agent, as a context manager; Silent if no agent answers."""

    def __init__(self, folder: GuestFolder):
        self.path = folder / command_line.AGENT
        self.received = b''

    def __enter__(self) -> Self:
        try:
            self.socket = connected(self.path, CONNECT_SECONDS)
        except OSError:
            raise Silent() from None
        try:
            self._synchronize()
        except BaseException:
            self.socket.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def execute(self, command: str, **arguments: Any) -> Any:
        """The result of the command; write `_` for `-` in names. AgentError, Silent."""
        self._send(command, arguments)
        answer = self._answer(time.monotonic() + COMMAND_SECONDS)
        if 'return' not in answer:
            LOG.info('The agent of %s refused %s: %.200r', self.path.parent.name, command, answer.get('error'))
            raise AgentError()
        return answer['return']

    def set_password(self, user: str, password: str) -> None:
        given = base64.b64encode(password.encode()).decode()
        self.execute('guest-set-user-password', username=user, password=given, crypted=False)

    def _synchronize(self) -> None:
        """Wait for the answer to our own sync request: anything before it was meant for somebody else."""
        number, deadline = secrets.randbelow(2**31), time.monotonic() + SYNC_SECONDS
        self._send('guest-sync-delimited', {'id': number}, before=DELIMITER)
        while self._answer(deadline).get('return') != number:
            pass

    def _send(self, command: str, arguments: dict[str, Any], before: bytes = b'') -> None:
        try:
            self.socket.sendall(before + orjson.dumps({'execute': command, 'arguments': arguments}) + b'\n')
        except OSError:
            raise Silent() from None

    def _answer(self, deadline: float) -> dict[str, Any]:
        """The next answer; {} if it is malformed."""
        while b'\n' not in self.received:
            self.socket.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                more = self.socket.recv(4096)
            except OSError:
                raise Silent() from None
            if not more or time.monotonic() > deadline or len(self.received) > MAX_ANSWER_BYTES:
                raise Silent()
            self.received += more
        line, _, self.received = self.received.partition(b'\n')
        try:
            found = orjson.loads(line.rpartition(DELIMITER)[2])
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}


@contextmanager
def frozen(work: GuestWork) -> Iterator[None]:
    """Freeze the guest's file systems after they are flushed, for the duration of the block, if the guest supports it.

    HypervisorError if its image requires that and it cannot be done."""
    required = is_true(work.server.image_properties.get('os_require_quiesce'))
    if work.folder.existing().agent_slot is None:
        if required:
            raise HypervisorError('QEMU guest agent is not enabled')
        yield
        return
    freeze(work, required=required)
    try:
        yield
    finally:
        thaw(work)


def freeze(work: GuestWork, *, required: bool) -> None:
    # Recorded first, so that a successor of a killed process knows that it must thaw the guest.
    note(work, frozen=True)
    try:
        with GuestAgent(work.folder) as agent:
            agent.execute('guest-fsfreeze-freeze')
    except (AgentError, Silent) as error:
        if required:
            thaw(work)
            raise HypervisorError(f'The virtual machine could not be quiesced: {error}') from None


def thaw(work: GuestWork) -> None:
    """No error if the guest is not frozen."""
    with contextlib.suppress(AgentError, Silent), GuestAgent(work.folder) as agent:
        agent.execute('guest-fsfreeze-thaw')
    note(work, frozen=False)


def note(work: GuestWork, *, frozen: bool) -> None:
    guest = work.folder.existing()
    guest.frozen = frozen
    work.folder.write(guest)
