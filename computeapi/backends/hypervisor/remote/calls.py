"""What a host can be told over the bus, which the Protocol `Hypervisor` says, and what it answers.

Each call says which release of these words it was made for, and needs at least. What is added to the Protocol later is
optional, and passed over by who does not know it; an operation that an agent does not know is not supported by it.
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
"""Of these words. The first number: those who differ in it do not understand each other."""
FIRST = (VERSION[0], 0)
"""What every agent knows: a call needs more only where it says what must not be passed over."""
CONTROL = 'control'
"""The topic on which workers hear agents."""
CHUNK_BYTES = 512 * 1024
"""Of an image, in one answer."""


def topic_of(host: str) -> str:
    """On which the agent of a host is told."""
    return f'agent-{host}'


@dataclass(frozen=True)
class Signature:
    """A method of the Protocol: its parameters, of these types and with these defaults, and what it returns."""

    name: str
    parameters: Mapping[str, Codec]
    defaults: Mapping[str, Any]
    returns: Codec
    bound: inspect.Signature

    def write(self, arguments: tuple[Any, ...], facts: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments as JSON; TypeError for those that the method does not take."""
        given = self.bound.bind(None, *arguments, **facts).arguments
        return {name: self.parameters[name].write(given[name]) for name in self.parameters if name in given}

    def read(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments in JSON, without those that are not known here; TypeError, ValueError, KeyError."""
        known = {name: each.read(found[name]) for name, each in self.parameters.items() if name in found}
        missing = {name: each.empty() for name, each in self.parameters.items() if name not in found}
        return {**missing, **self.defaults, **known}


@functools.cache
def signature(name: str) -> Signature:
    """Of that method; KeyError if the Protocol has none of the name, or none that can be told over a bus."""
    if name not in TOLD:
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
"""What changes a server: one thing after the other is done with each."""
QUESTIONS = frozenset(('power_state', 'bus_addresses', 'diagnostics', 'console_output', 'console', 'machines'))
"""What is answered at once."""
TOLD = OPERATIONS | QUESTIONS
AT_THE_OTHER = frozenset({'prepare_migration', 'prepare_live_migration', 'sees_disks'})
"""What the host is told that a server is to come to; all else, the one that it is on."""
HARMLESS = frozenset({'check_live_migration', 'describe', 'snapshot'})
"""What changes nothing of the machine: what was done before is done still."""
REPEATABLE = AT_THE_OTHER | HARMLESS
"""What is done each time that it is told: what was answered before may not be so any more."""


class AnswerKind(Enum):
    """How it went."""

    DONE = 'done'
    NOT_YET = 'not yet'
    # The agent is at it; the same call hears later how it went.
    UNDER_WAY = 'under way'
    OUTDATED = 'outdated'
    FAILED = 'failed'
    NOT_SUPPORTED = 'not supported'


class AgentAnswer(NamedTuple):
    """value: what the method returned, as JSON.  text: of an error.  seconds: when to come again.

    unfit: whether what failed would do so on any host.
    """

    kind: AnswerKind
    value: Any = None
    text: str = ''
    seconds: float = 0.0
    unfit: bool = False


@dataclass(frozen=True)
class WorkClaim:
    """On whose behalf a host is told.

    token, task: as `Hypervisor.during` says; 0: nobody's.  work: tells this piece of work from all others, and stays
    when it is told again.  waits: whether it can come again later.
    """

    token: int = 0
    task: int = 0
    work: str = ''
    waits: bool = False


@dataclass(frozen=True)
class Call:
    """One call. host: who is meant.  needs: the least version of these words that means what was meant."""

    host: str
    operation: str
    arguments: dict[str, Any] = field(default_factory=dict)
    claim: WorkClaim = field(default_factory=WorkClaim)
    needs: tuple[int, int] = FIRST
    patience: float = 0.0

    def identity(self) -> str:
        """The same for what is told again. How the server is meanwhile makes no difference, nor what is written anew
        for its guest each time."""
        own = {name: value for name, value in self.arguments.items() if name not in ('server', 'config_drive')}
        told = json.dumps([self.claim.work, self.operation, own], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()


@dataclass(frozen=True)
class Report:
    """What an agent says of itself. id: of its process.  connector: as `Hypervisor.connector` says.

    arriving: whether it has just begun.  machines: the servers whose virtual machines it found, when it is arriving.
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
    """What an agent hears in return, when it is arriving.

    servers: those that should be on its host.  moving: those of its machines that may be there, too.
    leaving: those that are being removed: until they are gone the agent is arriving, and says what is there.
    refused: why the report was not believed, if it was not.
    """

    servers: list[str] = field(default_factory=list)
    moving: list[str] = field(default_factory=list)
    leaving: list[str] = field(default_factory=list)
    refused: str = ''


CALL, ANSWER = codec(Call), codec(AgentAnswer)
PIECE, REPORT, EXPECTATION = codec(bytes), codec(Report), codec(Expectation)


def chunks(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same data in pieces of CHUNK_BYTES, but for the last one."""
    kept = bytearray()
    for block in blocks:
        kept += block
        while len(kept) >= CHUNK_BYTES:
            yield bytes(kept[:CHUNK_BYTES])
            del kept[:CHUNK_BYTES]
    if kept:
        yield bytes(kept)


class HostAway(HypervisorError):
    """Nobody answers for a host, and who asked cannot wait."""

    text = 'Host {host} does not respond.'
