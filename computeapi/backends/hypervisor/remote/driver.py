"""Calls the agents of hosts over the bus.

If a host does not answer, a caller that can wait gets NotYet and repeats the call, which the agent then answers with
the outcome. A caller that cannot wait gets an error that the host does not respond.
"""

import copy
import logging
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

from oslo_utils.uuidutils import is_uuid_like

from computeapi.backends.hypervisor import (
    Capability,
    Console,
    Host,
    HostDown,
    HypervisorError,
    NotYet,
    Outdated,
    PowerState,
    Unfit,
)
from computeapi.backends.hypervisor.behaviour import at_once
from computeapi.backends.hypervisor.remote import consoles
from computeapi.backends.hypervisor.remote.calls import (
    ALL_CALLS,
    ANSWER,
    AT_THE_OTHER,
    CALL,
    CHUNK_BYTES,
    OPERATIONS,
    PIECE,
    AgentAnswer,
    AnswerKind,
    Call,
    HostAway,
    WorkClaim,
    signature,
    topic_of,
)
from computeapi.backends.hypervisor.remote.circuit_breaker import (
    ANSWER_SECONDS,
    OPEN_SECONDS,
    CircuitBreaker,
    HostBusy,
    SlowHosts,
)
from computeapi.backends.hypervisor.remote.codec import UNREADABLE, Codec
from computeapi.backends.hypervisor.remote.signing import Keys, keys_of, sign
from computeapi.bus import Bus, RemoteFailure, Unanswered
from computeapi.clock import utcnow
from computeapi.db import agents, hypervisors, services, tasks
from computeapi.db.engine import Store
from computeapi.db.servers import Server
from computeapi.errors import Error, NotSupported
from computeapi.states import TaskState

LOG = logging.getLogger(__name__)
# How long a call waits for an agent that is working on it; longer operations are polled.
TIMEOUT_SECONDS = 3.0
AGAIN_SECONDS = 1.0
# The shortest and the longest delay that an agent can ask for before the next call.
MIN_WAIT_SECONDS, MAX_WAIT_SECONDS = 0.05, 3600.0
# The limit for error messages of an agent, which are logged and stored.
MAX_TEXT_LENGTH = 1000
# How many virtual machines one host can report.
MAX_MACHINES = 10_000


class RemoteHypervisor:
    """A driver that sends each call to the agent of the server's host.

    down_after: seconds without a heartbeat after which a host is down.  longest: the longest time, in seconds, that a
    call blocks for a caller that cannot wait.
    """

    def __init__(
        self,
        bus: Bus,
        store: Store,
        *,
        down_after: float,
        longest: float,
        clock: Callable[[], datetime] = utcnow,
        secrets: Keys = (),
    ):
        self.bus, self.store, self.clock, self.secrets = bus, store, clock, secrets
        self.down_after, self.longest = timedelta(seconds=down_after), longest
        self.circuit_breaker, self.slow_hosts = CircuitBreaker(), SlowHosts()
        self.passed: Callable[[str], float] = at_once
        self.claim = WorkClaim()

    def during(self, passed: Callable[[str], float], token: int = 0, task: int = 0) -> 'RemoteHypervisor':
        driver = copy.copy(self)
        driver.passed = passed
        driver.claim = WorkClaim(token, task, f'task {task}' if task else '', passed is not at_once)
        return driver

    def capabilities_of(self, host: str | None) -> frozenset[Capability]:
        """As its agent last reported; all capabilities if there has been no agent."""
        agent = None if host is None else self.store.query(agents.get, host)
        known = Capability.__members__
        return frozenset(known[name] for name in known if agent is None or name in agent.capabilities)

    def hosts(self) -> Sequence[Host]:
        """As their agents last reported; hosts that are down count as off."""
        nodes = self.store.query(hypervisors.select)
        return [_host(node, on=self._is_up(node.service)) for node in nodes]

    def upkeep(self) -> None:
        """The agents maintain their hosts."""

    def _is_up(self, service: services.ComputeService) -> bool:
        seen = service.seen_at
        return not service.forced_down and seen is not None and self.clock() - seen <= self.down_after

    def _is_down(self, host: str | None) -> bool:
        service = self.store.query(services.of_compute_host, host)
        return service is None or not self._is_up(service)

    def guest_at(self, address: str) -> str | None:
        """Guests contact their hosts' agents."""
        return None

    def machines(self) -> Iterable[tuple[str, str]]:
        """The machines on the hosts that answer; each host is believed about itself only."""
        for host in self.hosts():
            if host.on:
                try:
                    found = self._query(host.name, 'machines')
                except Error as error:
                    LOG.warning('Host %s does not report its virtual machines: %s', host.name, error)
                    continue
                own = (each for each in found[:MAX_MACHINES] if each[1] == host.name and is_uuid_like(each[0]))
                yield from own

    def connector(self, host: str) -> Mapping[str, Any]:
        """As its agent last reported, so that volumes can also be detached while the host is down."""
        agent = self.store.query(agents.get, host)
        if agent is None:
            raise HostAway(host=host)
        return agent.connector

    def power_state(self, server: Server) -> PowerState | None:
        return None if server.host is None else self._query(server.host, 'power_state', server)

    def console(self, server: Server, protocol: str) -> Console:
        """At the registered address of the host, whatever address its agent answers: proxies connect to it."""
        host = server.host or ''
        found: Console = self._query(host, 'console', server, protocol)
        nodes = self.store.query(hypervisors.of_host, host)
        if not nodes or not consoles.is_sound(found, protocol):
            raise HypervisorError(f'Host {host} sent an invalid response.')
        return found._replace(host=nodes[0].host_ip)

    def switch_host(self, host: str, on: bool) -> None:
        raise NotSupported('A host cannot be switched on or off from itself.')

    def connect(self, server: Server, protocol: str, console: Console) -> socket.socket:
        return consoles.connect(console, protocol)

    def destroy(self, server: Server) -> None:
        """HostDown instead of waiting if the host is down."""
        if self._is_down(server.host):
            raise HostDown(host=server.host)
        self._execute(server.host or '', 'destroy', server)

    def snapshot(self, server: Server, disk_format: str) -> Iterator[bytes]:
        """The image in pieces that are fetched one by one, so that the agent needs no access to the image service."""
        host = server.host or ''
        stream = self._execute(host, 'snapshot', server, disk_format)
        return self._pieces(host, stream)

    def _pieces(self, host: str, stream: str) -> Iterator[bytes]:
        number, is_last = 0, False
        while piece := self._piece(host, stream, number):
            # A host cannot keep a worker busy with a few bytes at a time.
            if is_last or len(piece) > CHUNK_BYTES:
                raise HypervisorError(f'Host {host} sent an invalid response.')
            yield piece
            number, is_last = number + 1, len(piece) < CHUNK_BYTES

    def _piece(self, host: str, stream: str, number: int) -> bytes:
        arguments = {'host': host, 'stream': stream, 'number': number}
        answer = self._persistently(host, 'piece', lambda: self._call(host, 'piece', arguments))
        return cast(bytes, understood(host, PIECE, result_of(answer)))

    def __getattr__(self, name: str) -> Any:
        if name not in ALL_CALLS:
            raise AttributeError(name)

        def call(server: Server, *args: Any, **kwargs: Any) -> Any:
            given = signature(name).bound.bind(None, server, *args, **kwargs).arguments
            host = given['host'] if name in AT_THE_OTHER else server.host
            if host is None:
                raise HypervisorError(f'Server {server.uuid} is not on a host.')
            # While a server that is being deleted is on a host that is down, its other cleanup must wait for the host.
            if server.task_state == TaskState.DELETING and self._is_down(host):
                raise HostAway(host=host)
            do = self._execute if name in OPERATIONS else self._query
            return do(host, name, server, *args, **kwargs)

        return call

    # ------------------------------------------------------------ over the bus

    def _execute(self, host: str, operation: str, *args: Any, **kwargs: Any) -> Any:
        """Execute an operation that changes something; NotYet while it is in progress."""
        claim = self.claim if self.claim.work else replace(self.claim, work=str(uuid.uuid4()))
        return self._do(host, operation, claim, args, kwargs)

    def _query(self, host: str, operation: str, *args: Any, **kwargs: Any) -> Any:
        return self._do(host, operation, self.claim, args, kwargs)

    def _do(self, host: str, operation: str, claim: WorkClaim, arguments: Any, facts: Any) -> Any:
        words = signature(operation)
        call = CALL.write(Call(host, operation, words.write(arguments, facts), claim, patience=TIMEOUT_SECONDS))
        answer = self._persistently(host, operation, lambda: self._call(host, 'tell', {'call': call}), *arguments[:1])
        value = result_of(answer)
        return value if operation == 'snapshot' else understood(host, words.returns, value)

    def _persistently(
        self, host: str, operation: str, ask: Callable[[], AgentAnswer], server: Server | None = None
    ) -> AgentAnswer:
        """Repeat the call until there is an answer; NotYet if the caller can call again, HostAway if it takes too
        long."""
        deadline = time.monotonic() + self.longest
        while True:
            try:
                answer = ask()
                if answer.kind is AnswerKind.NOT_YET and not self.claim.waits:
                    time.sleep(AGAIN_SECONDS)
                elif answer.kind is AnswerKind.OUTDATED and not self._is_outdated(server):
                    raise HypervisorError(f'Host {host} reports a newer claim, although there is none.')
                elif answer.kind is not AnswerKind.UNDER_WAY:
                    return answer
                answered, wait, why = True, AGAIN_SECONDS, 'it is still at it'
            except HostBusy as error:
                answered, wait, why = True, AGAIN_SECONDS, str(error)
                if not self.claim.waits:
                    time.sleep(AGAIN_SECONDS)
            except Unanswered as error:
                answered, wait, why = False, OPEN_SECONDS, str(error)
            if self.claim.waits:
                # Records when the wait began, so that work does not wait for a host forever.
                self.passed(f'{operation} on {host}')
                raise NotYet(wait)
            if not answered or time.monotonic() > deadline:
                LOG.warning('Host %s does not respond: %s', host, why)
                raise HostAway(host=host)

    def _is_outdated(self, server: Server | None) -> bool:
        """Whether the server's work has been claimed since, so that the claim is not the newest."""
        token = self.claim.token
        return server is not None and 0 < token < self.store.query(tasks.newest_claim, server.uuid)

    def _call(self, host: str, method: str, arguments: Mapping[str, Any]) -> AgentAnswer:
        self.circuit_breaker.check(host)
        try:
            signed = sign(keys_of(self.secrets, host), method, arguments)
            with self.slow_hosts.calling(host):
                found = self.bus.call(topic_of(host), method, ANSWER_SECONDS, **signed)
        except HostBusy:
            raise
        except Unanswered:
            self.circuit_breaker.begin(host)
            raise
        except RemoteFailure as error:
            LOG.error('The agent of host %s failed unexpectedly: %s', host, shown(error))
            return AgentAnswer(AnswerKind.FAILED, text=f'The agent of host {host} failed unexpectedly.')
        self.circuit_breaker.end(host)
        return cast(AgentAnswer, understood(host, ANSWER, found))


def understood(host: str, words: Codec, found: Any) -> Any:
    """Decodes an agent's answer; HypervisorError if it is invalid."""
    try:
        return words.read(found)
    except UNREADABLE as error:
        LOG.error('The agent of host %s sent an invalid answer: %s', host, shown(error))
        raise HypervisorError(f'Host {host} sent an invalid response.') from None


def shown(text: object) -> str:
    """A text of an agent as part of a log line or of an error."""
    return ''.join(each if each.isprintable() else ' ' for each in str(text)[:MAX_TEXT_LENGTH])


def result_of(answer: AgentAnswer) -> Any:
    """Returns the result at the host, or raises the error that occurred there."""
    if answer.kind is AnswerKind.DONE:
        return answer.value
    text = shown(answer.text)
    if answer.kind is AnswerKind.NOT_YET:
        seconds = answer.seconds or AGAIN_SECONDS
        raise NotYet(max(seconds, MIN_WAIT_SECONDS) if 0 <= seconds <= MAX_WAIT_SECONDS else AGAIN_SECONDS)
    if answer.kind is AnswerKind.OUTDATED:
        raise Outdated(text)
    if answer.kind is AnswerKind.NOT_SUPPORTED:
        raise NotSupported(text)
    raise (Unfit if answer.unfit else HypervisorError)(text)


def _host(node: hypervisors.ComputeNode, *, on: bool) -> Host:
    return Host(
        name=node.host,
        hypervisor_hostname=node.hypervisor_hostname,
        hypervisor_type=node.hypervisor_type,
        hypervisor_version=node.hypervisor_version,
        host_ip=node.host_ip,
        vcpus=node.vcpus,
        memory_mb=node.memory_mb,
        local_gb=node.local_gb,
        cpu_info=node.cpu_info,
        cell=node.cell or 'cell1',
        on=on,
    )
