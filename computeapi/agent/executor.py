"""Runs operations one at a time for each server, and for many servers in parallel; callers need not wait for them."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from computeapi.agent.server_state import ServerStates
from computeapi.backends.hypervisor.remote.calls import HARMLESS, REPEATABLE, AgentAnswer, AnswerKind, Call

LOG = logging.getLogger(__name__)
Work = Callable[[], AgentAnswer]
"""Performs the operation; errors are answers, too."""


@dataclass
class RunningOperation:
    """An operation on a server that is in progress, or whose result was not fetched yet. identity: that of the call."""

    identity: str
    answer: Future[AgentAnswer]


class ServerExecutor:
    """A call that is repeated while its operation is in progress, or after it is done, does not start it again."""

    def __init__(self, states: ServerStates, threads: int):
        self.states, self.lock = states, threading.Lock()
        self.operations: dict[str, RunningOperation] = {}
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix='operation')

    def do(self, server_id: str, call: Call, work: Work) -> AgentAnswer:
        """The outcome, if there is one before the caller stops waiting."""
        identity = call.identity()
        with self.lock:
            operation = self.operations.get(server_id)
            if refusal := self._refusal(server_id, call):
                return refusal
            if operation is None or (operation.answer.done() and operation.identity != identity):
                state = self.states.of(server_id)
                if state.did == identity:
                    LOG.info('%s of server %s was requested again, and is already done', call.operation, server_id)
                    return AgentAnswer(AnswerKind.DONE, state.value)
                operation = self.operations[server_id] = RunningOperation(
                    identity, self.pool.submit(self._run, server_id, call, work)
                )
        return self._outcome(server_id, operation, identity, call.patience)

    def _refusal(self, server_id: str, call: Call) -> AgentAnswer | None:
        """The refusal for a caller that has lost its claim on the server; otherwise its claim is now the newest."""
        state, token = self.states.of(server_id), call.claim.token
        if token and token < state.token:
            return AgentAnswer(AnswerKind.OUTDATED, text=f'Claim {token} on {server_id} is not the newest.')
        if token > state.token:
            state.token = token
            self.states.save(server_id)
        return None

    def _outcome(self, server_id: str, operation: RunningOperation, identity: str, timeout: float) -> AgentAnswer:
        try:
            answer = operation.answer.result(timeout)
        except TimeoutError:
            return AgentAnswer(AnswerKind.UNDER_WAY)
        if operation.identity != identity:
            # Now it is the caller's turn, and it will call again.
            return AgentAnswer(AnswerKind.UNDER_WAY)
        with self.lock:
            if self.operations.get(server_id) is operation:
                del self.operations[server_id]
        return answer

    def _run(self, server_id: str, call: Call, work: Work) -> AgentAnswer:
        state = self.states.of(server_id)
        if state.did and call.operation not in HARMLESS:
            state.did = ''
            self.states.save(server_id)
        answer = work()
        if answer.kind is AnswerKind.DONE and call.operation not in REPEATABLE:
            state.did, state.value = call.identity(), answer.value
            self.states.save(server_id)
        return answer

    def close(self) -> None:
        """Start nothing more; callers repeat operations in progress when a new agent has started."""
        self.pool.shutdown(wait=False, cancel_futures=True)
