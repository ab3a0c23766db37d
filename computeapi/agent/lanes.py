"""Runs operations one at a time for each server, and for many servers in parallel; callers need not wait for them."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from computeapi.agent.memory import Memory
from computeapi.backends.hypervisor.remote.calls import HARMLESS, REPEATABLE, AgentAnswer, AnswerKind, Call

LOG = logging.getLogger(__name__)
Work = Callable[[], AgentAnswer]
"""Performs the operation; errors are answers, too."""


@dataclass
class Errand:
    """An operation on a server that is in progress, or whose result was not fetched yet. identity: that of the call."""

    identity: str
    answer: Future[AgentAnswer]


class Lanes:
    """A call that is repeated while its operation is in progress, or after it is done, does not start it again."""

    def __init__(self, memory: Memory, threads: int):
        self.memory, self.lock = memory, threading.Lock()
        self.errands: dict[str, Errand] = {}
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix='errand')

    def do(self, server_id: str, call: Call, work: Work) -> AgentAnswer:
        """The outcome, if there is one within the patience of the caller."""
        identity = call.identity()
        with self.lock:
            errand = self.errands.get(server_id)
            if refusal := self._refusal(server_id, call):
                return refusal
            if errand is None or (errand.answer.done() and errand.identity != identity):
                known = self.memory.of(server_id)
                if known.did == identity:
                    LOG.info('%s of server %s was requested again, and is already done', call.operation, server_id)
                    return AgentAnswer(AnswerKind.DONE, known.value)
                errand = self.errands[server_id] = Errand(identity, self.pool.submit(self._run, server_id, call, work))
        return self._outcome(server_id, errand, identity, call.patience)

    def _refusal(self, server_id: str, call: Call) -> AgentAnswer | None:
        """The refusal for a caller that has lost its claim on the server; otherwise its claim is now the newest."""
        known, token = self.memory.of(server_id), call.claim.token
        if token and token < known.token:
            return AgentAnswer(AnswerKind.OUTDATED, text=f'Claim {token} on {server_id} is not the newest.')
        if token > known.token:
            known.token = token
            self.memory.keep(server_id)
        return None

    def _outcome(self, server_id: str, errand: Errand, identity: str, patience: float) -> AgentAnswer:
        try:
            answer = errand.answer.result(patience)
        except TimeoutError:
            return AgentAnswer(AnswerKind.UNDER_WAY)
        if errand.identity != identity:
            # Now it is the caller's turn, and it will call again.
            return AgentAnswer(AnswerKind.UNDER_WAY)
        with self.lock:
            if self.errands.get(server_id) is errand:
                del self.errands[server_id]
        return answer

    def _run(self, server_id: str, call: Call, work: Work) -> AgentAnswer:
        known = self.memory.of(server_id)
        if known.did and call.operation not in HARMLESS:
            known.did = ''
            self.memory.keep(server_id)
        answer = work()
        if answer.kind is AnswerKind.DONE and call.operation not in REPEATABLE:
            known.did, known.value = call.identity(), answer.value
            self.memory.keep(server_id)
        return answer

    def close(self) -> None:
        """Start nothing more; callers repeat operations in progress when a new agent has started."""
        self.pool.shutdown(wait=False, cancel_futures=True)
