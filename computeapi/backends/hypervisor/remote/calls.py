"""The calls of agents over the bus, derived from the Protocol `Hypervisor`, and their answers.

Each call states the least protocol version that its receiver needs. Later additions to the Protocol are optional, and
ignored by agents that do not know them; an operation that an agent does not know is reported as not supported.
"""

import functools
import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, get_type_hints

from computeapi.backends.hypervisor import Capability, Host, Hypervisor, HypervisorError, Operations
from computeapi.backends.hypervisor.remote.codec import Codec, codec

VERSION = (1, 0)
"""The version of the protocol. Peers with different major versions do not understand each other."""
FIRST = (VERSION[0], 0)
"""The version that every agent supports: a call needs a higher one only if an addition must not be ignored."""
CONTROL = 'control'
"""The topic on which workers receive messages of agents."""
CHUNK_BYTES = 512 * 1024
"""The size of a piece of an image, in one answer."""


def topic_of(host: str) -> str:
    """The topic of a host's agent."""
    return f'agent-{host}'


@dataclass(frozen=True)
class Signature:
    """A method of the Protocol: its parameters with their types and defaults, and its return type."""

    name: str
    parameters: Mapping[str, Codec]
    defaults: Mapping[str, Any]
    returns: Codec
    bound: inspect.Signature

    def write(self, arguments: tuple[Any, ...], facts: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as JSON; TypeError for arguments that the method does not accept."""
        given = self.bound.bind(None, *arguments, **facts).arguments
        return {name: self.parameters[name].write(given[name]) for name in self.parameters if name in given}

    def read(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments from JSON, without unknown ones; TypeError, ValueError, KeyError."""
        known = {name: each.read(found[name]) for name, each in self.parameters.items() if name in found}
        missing = {name: each.empty() for name, each in self.parameters.items() if name not in found}
        return {**missing, **self.defaults, **known}


@functools.cache
def signature(name: str) -> Signature:
    """The signature of that method; KeyError if there is none, or it cannot be called over the bus."""
    if name not in ALL_CALLS:
        raise KeyError(name)
    method = getattr(Hypervisor, name)
    hints, bound = get_type_hints(method, include_extras=True), inspect.signature(method)
    names = [each for each in bound.parameters if each != 'self']
    defaults = {each: bound.parameters[each].default for each in names}
    return Signature(
        name,
        {each: codec(hints[each]) for each in names},
        {each: value for each, value in defaults.items() if value is not inspect.Parameter.empty},
        codec(hints['return']),
        bound,
    )


OPERATIONS = frozenset(name for name in vars(Operations) if not name.startswith('_'))
"""The calls that change a server: they are carried out one at a time for each server."""
QUESTIONS = frozenset(('power_state', 'bus_addresses', 'diagnostics', 'console_output', 'console', 'machines'))
"""The calls that are answered immediately."""
ALL_CALLS = OPERATIONS | QUESTIONS
AT_THE_OTHER = frozenset({'prepare_migration', 'prepare_live_migration', 'sees_disks'})
"""The calls to the destination host of a server; all others go to the host that it is on."""
HARMLESS = frozenset({'check_live_migration', 'describe', 'snapshot'})
"""The calls that change nothing about the machine: the results of earlier work stay valid."""
REPEATABLE = AT_THE_OTHER | HARMLESS
"""The calls that are carried out each time: an earlier answer may be outdated."""


class AnswerKind(Enum):
    """The outcome of a call."""

    DONE = 'done'
    NOT_YET = 'not yet'
    # The agent is working on it; the same call is answered with the outcome later.
    UNDER_WAY = 'under way'
    OUTDATED = 'outdated'
    FAILED = 'failed'
    NOT_SUPPORTED = 'not supported'


class AgentAnswer(NamedTuple):
    """value: what the method returned, as JSON.  text: of an error.  seconds: when to call again.

    unfit: whether the operation would fail on any host.
    """

    kind: AnswerKind
    value: Any = None
    text: str = ''
    seconds: float = 0.0
    unfit: bool = False


@dataclass(frozen=True)
class WorkClaim:
    """On whose behalf a call is made.

    token, task: as for `Hypervisor.during`; 0: none.  work: identifies this piece of work, also when it is called
    again.  waits: whether the caller can call again later.
    """

    token: int = 0
    task: int = 0
    work: str = ''
    waits: bool = False


@dataclass(frozen=True)
class Call:
    """One call. host: the addressee.  needs: the least version that understands it as it is meant."""

    host: str
    operation: str
    arguments: dict[str, Any] = field(default_factory=dict)
    claim: WorkClaim = field(default_factory=WorkClaim)
    needs: tuple[int, int] = FIRST
    patience: float = 0.0

    def identity(self) -> str:
        """The same for a repeated call: ignores the server's current state, and the config drive, which is written anew
        each time."""
        own = {name: value for name, value in self.arguments.items() if name not in ('server', 'config_drive')}
        text = json.dumps([self.claim.work, self.operation, own], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Report:
    """The report of an agent about itself. id: of its process.  connector: as from `Hypervisor.connector`.

    arriving: whether it has just started.  machines: the servers whose virtual machines it found, while it is arriving.
    """

    host: Host
    capabilities: frozenset[Capability]
    release: str
    id: str
    pid: int
    machine: str
    connector: dict[str, Any] = field(default_factory=dict)
    arriving: bool = False
    machines: list[str] = field(default_factory=list)
    words: tuple[int, int] = VERSION


@dataclass(frozen=True)
class Expectation:
    """The answer to the report of an agent that is arriving.

    servers: those that should be on its host.  moving: those of its machines that may be there as well.
    leaving: those that are being deleted: until they are gone the agent keeps arriving, and reports what is there.
    refused: why the report was rejected, if it was.
    """

    servers: list[str] = field(default_factory=list)
    moving: list[str] = field(default_factory=list)
    leaving: list[str] = field(default_factory=list)
    refused: str = ''


CALL, ANSWER = codec(Call), codec(AgentAnswer)
PIECE, REPORT, EXPECTATION = codec(bytes), codec(Report), codec(Expectation)


def chunks(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same data in pieces of CHUNK_BYTES; the last one may be shorter."""
    kept = bytearray()
    for block in blocks:
        kept += block
        while len(kept) >= CHUNK_BYTES:
            yield bytes(kept[:CHUNK_BYTES])
            del kept[:CHUNK_BYTES]
    if kept:
        yield bytes(kept)


class HostAway(HypervisorError):
    """The host does not answer, and the caller cannot wait."""

    text = 'Host {host} does not respond.'
