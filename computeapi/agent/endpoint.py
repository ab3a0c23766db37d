"""The calls that this agent accepts from the bus: operations of the driver on its own host, and nothing else."""

import logging
import time
import uuid
from collections.abc import Mapping
from typing import Any

from computeapi.agent.executor import ServerExecutor
from computeapi.agent.gate import ConsoleGate
from computeapi.agent.server_state import ServerStates
from computeapi.agent.streams import Streams
from computeapi.backends.hypervisor import Hypervisor, HypervisorError, NotYet, Outdated, Unfit
from computeapi.backends.hypervisor.behaviour import at_once
from computeapi.backends.hypervisor.remote.calls import (
    ALL_CALLS,
    ANSWER,
    AT_THE_OTHER,
    CALL,
    OPERATIONS,
    PIECE,
    VERSION,
    AgentAnswer,
    AnswerKind,
    Call,
    Signature,
    signature,
)
from computeapi.backends.hypervisor.remote.codec import UNREADABLE
from computeapi.backends.hypervisor.remote.signing import Keys, Receiver
from computeapi.db.servers import Server
from computeapi.errors import Error, NeighbourAway, NotSupported

LOG = logging.getLogger(__name__)
AGAIN_SECONDS = 2.0
"""When to retry an operation that waits for another service."""


class AgentEndpoint:
    """Its public methods can be called. They always answer JSON, also for errors.

    neighbour_timeout: the seconds for which an operation waits for a service that is away.
    keys: calls must be signed with one of them; empty: all callers are trusted.
    """

    def __init__(
        self,
        host: str,
        driver: Hypervisor,
        states: ServerStates,
        executor: ServerExecutor,
        gate: ConsoleGate,
        neighbour_timeout: float = 0,
        keys: Keys = (),
    ):
        self._host, self._driver, self._states, self._executor, self._gate = host, driver, states, executor, gate
        self._neighbour_timeout, self._receiver = neighbour_timeout, Receiver(keys, time.time())
        self._streams = Streams()

    def tell(self, context: Mapping[str, Any], call: Mapping[str, Any], **unknown: Any) -> Any:
        """Execute a Call."""
        if not self._receiver.accepts('tell', {'call': call, **unknown}):
            claim = call.get('claim')
            return ANSWER.write(self._rejected(waits=isinstance(claim, Mapping) and claim.get('waits') is True))
        return ANSWER.write(self._answer(call))

    def piece(self, context: Mapping[str, Any], host: str, stream: str, number: int, **unknown: Any) -> Any:
        """The piece of an image with that number: the last one again or the next; an empty one after the last."""
        if not self._receiver.accepts('piece', {'host': host, 'stream': stream, 'number': number, **unknown}):
            return ANSWER.write(self._rejected(waits=False))
        if host != self._host:
            return ANSWER.write(self._not_mine(host))
        data = self._streams.piece(stream, number)
        if data is None:
            # A caller that came too late starts again.
            return ANSWER.write(AgentAnswer(AnswerKind.NOT_YET, seconds=1.0))
        return ANSWER.write(AgentAnswer(AnswerKind.DONE, PIECE.write(data)))

    # ------------------------------------------------------------ inside

    def _answer(self, found: Mapping[str, Any]) -> AgentAnswer:
        try:
            call: Call = CALL.read(found)
            if call.host != self._host:
                return self._not_mine(call.host)
            if call.operation not in ALL_CALLS or call.needs[0] != VERSION[0] or call.needs > VERSION:
                text = f'The agent of host {self._host} is too old for this.'
                return AgentAnswer(AnswerKind.NOT_SUPPORTED, text=text)
            words = signature(call.operation)
            arguments = words.read(call.arguments)
            if 'server' in arguments:
                # The ID becomes a file name.
                uuid.UUID(arguments['server'].uuid)
        except UNREADABLE as error:
            LOG.warning('A call could not be decoded: %s', error)
            return AgentAnswer(AnswerKind.FAILED, text=f'The agent of host {self._host} did not understand the call.')
        if call.operation in OPERATIONS:
            return self._do(call, words, arguments)
        return self._outcome(call, words, self._driver, arguments)

    def _rejected(self, *, waits: bool) -> AgentAnswer:
        """Callers that can wait may retry, so that a wrong key or clock can be fixed meanwhile; others fail."""
        LOG.warning('A call is rejected: not signed recently with the key of host %s, or received before', self._host)
        kind = AnswerKind.NOT_YET if waits else AnswerKind.FAILED
        text = f'The agent of host {self._host} cannot verify the sender.'
        return AgentAnswer(kind, text=text, seconds=AGAIN_SECONDS)

    def _not_mine(self, host: str) -> AgentAnswer:
        LOG.warning('A call for host %s is rejected', host)
        return AgentAnswer(AnswerKind.FAILED, text=f'The agent of host {self._host} does not work for host {host}.')

    def _do(self, call: Call, words: Signature, arguments: dict[str, Any]) -> AgentAnswer:
        server: Server = arguments['server']
        here = arguments.get('host') if call.operation in AT_THE_OTHER else server.host
        if here != self._host:
            return self._not_mine(str(here))

        def passed(step: str) -> float:
            return self._states.passed(server.uuid, call.claim.work, step)

        driver = self._driver.during(passed if call.claim.waits else at_once, call.claim.token, call.claim.task)
        return self._executor.do(server.uuid, call, lambda: self._outcome(call, words, driver, arguments))

    def _outcome(self, call: Call, words: Signature, driver: Hypervisor, arguments: dict[str, Any]) -> AgentAnswer:
        try:
            value = getattr(driver, call.operation)(**arguments)
            if call.operation == 'snapshot':
                return AgentAnswer(AnswerKind.DONE, self._streams.add(value))
            if call.operation == 'console':
                value = self._gate.guarded(arguments['server'], arguments['protocol'], value)
            return AgentAnswer(AnswerKind.DONE, words.returns.write(value))
        except NotYet as wait:
            return AgentAnswer(AnswerKind.NOT_YET, seconds=wait.seconds)
        except Outdated as error:
            return AgentAnswer(AnswerKind.OUTDATED, text=str(error))
        except NotSupported as error:
            return AgentAnswer(AnswerKind.NOT_SUPPORTED, text=str(error))
        except HypervisorError as error:
            return AgentAnswer(AnswerKind.FAILED, text=str(error), unfit=isinstance(error, Unfit))
        except NeighbourAway as away:
            return self._away(call, arguments.get('server'), away)
        except Error as error:
            LOG.warning('%s failed: %s', call.operation, error)
            return AgentAnswer(AnswerKind.FAILED, text=str(error))
        except Exception:
            LOG.exception('%s failed unexpectedly', call.operation)
            return AgentAnswer(AnswerKind.FAILED, text=f'The driver of host {self._host} failed unexpectedly.')

    def _away(self, call: Call, server: Server | None, away: NeighbourAway) -> AgentAnswer:
        LOG.warning('%s waits: %s', call.operation, away)
        if call.claim.waits and server is not None:
            waited = self._states.passed(server.uuid, call.claim.work, str(away))
            if waited < self._neighbour_timeout:
                return AgentAnswer(AnswerKind.NOT_YET, seconds=AGAIN_SECONDS)
        return AgentAnswer(AnswerKind.FAILED, text=str(away))
