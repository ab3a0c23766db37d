"""Simulated behaviour of hypervisors: delays, hangs and failures by rules, for testing their callers."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from oslo_config import cfg

from computeapi.backends.hypervisor import HypervisorError, NotYet, Operations
from computeapi.db import servers
from computeapi.db.engine import Store
from computeapi.db.servers import Server
from computeapi.states import GOING

# The operations that rules can name.
OPERATIONS = frozenset(name for name in vars(Operations) if not name.startswith('_'))
FAIL, HANG, SLOW = 'fail', 'hang', 'slow'
MAX_HANG_SECONDS = 3600
LOOK_AGAIN_SECONDS = 60


@dataclass(frozen=True)
class ServerCondition:
    """Selects servers.

    name: a prefix of theirs.  project: its ID or name.  metadata: must be part of theirs.  host: where they are.
    """

    name: str = ''
    project: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    host: str | None = None

    def holds(self, server: Server) -> bool:
        owner = (server.project_id, (server.creator or {}).get('project_name'))
        there = self.host in (None, server.host)
        return there and self.project in (None, *owner) and self.fits(server.name, server.metadata)

    def fits(self, name: str, metadata: Mapping[str, str]) -> bool:
        """Whether name and metadata match, regardless of project and host."""
        return name.startswith(self.name) and self.metadata.items() <= metadata.items()


@dataclass(frozen=True)
class DriverRule:
    """The effect on an operation on some servers.

    effect: FAIL, HANG or SLOW (by `seconds`).  message: the error that clients read, for FAIL and HANG.
    look_again: the interval in seconds at which a hanging operation checks whether the rule still exists.
    """

    effect: str
    operation: str
    message: str
    servers: ServerCondition = ServerCondition()
    seconds: float = 0.0
    look_again: float = LOOK_AGAIN_SECONDS

    def concerns(self, operation: str, server: Server) -> bool:
        return operation == self.operation and self.servers.holds(server)


Rules = Callable[[str, Server], Sequence[DriverRule]]
"""Returns the rules that apply to an operation on a server."""


class ConfiguredRules:
    """Rules in short form, `spawn`, `spawn:NAME`, `spawn@HOST` or `spawn@HOST:NAME`, from the current values of the
    options `fail` and `hang`.

    options: the group [simulated]; cfg.Error for unknown operations.
    """

    def __init__(self, options: cfg.ConfigOpts.GroupAttr):
        self.options = options
        for effect in (FAIL, HANG):
            unknown = {rule.operation for rule in self._read(effect)} - OPERATIONS
            if unknown:
                raise cfg.ConfigFileValueError(
                    f'[simulated]{effect}: there is no operation {", ".join(sorted(unknown))}; '
                    f'there are {", ".join(sorted(OPERATIONS))}'
                )

    def __call__(self, operation: str, server: Server) -> list[DriverRule]:
        return [rule for effect in (FAIL, HANG) for rule in self._read(effect) if rule.concerns(operation, server)]

    def _read(self, effect: str) -> Iterable[DriverRule]:
        for text in self.options[effect]:
            where, _, prefix = text.partition(':')
            operation, _, host = where.partition('@')
            message = f'The simulated hypervisor was told to {effect}: {text}'
            yield DriverRule(effect, operation, message, ServerCondition(prefix, host=host or None))


class Behaviour:
    """Applies rules to the operations of a driver.

    store: returns the store of the servers; None if the driver does not have it, and its caller watches for servers
    that have moved on.  seconds: the duration of an operation without any rule.  step: a prefix for the name of the
    waiting step, which keeps it apart from others.
    """

    def __init__(
        self,
        store: Callable[[], Store] | None,
        rules: Rules,
        seconds: Callable[[str], float] = lambda operation: 0.0,
        step: str = '',
    ):
        self.store, self.rules, self.seconds, self.step = store, rules, seconds, step
        self.passed: Callable[[str], float] = at_once

    def wait(self, operation: str, server: Server) -> None:
        """NotYet until the time has passed, and for as long as a rule makes the operation hang."""
        rules = self.rules(operation, server)
        seconds = self.seconds(operation) + sum(rule.seconds for rule in rules if rule.effect == SLOW)
        hangs = next((rule for rule in rules if rule.effect == HANG), None)
        if not seconds and hangs is None:
            return
        passed = self.passed(f'{self.step}{operation} on {server.host}')
        if passed < seconds:
            raise NotYet(seconds - passed)
        if hangs is None:
            return
        if passed >= MAX_HANG_SECONDS or self.is_overtaken(server):
            raise HypervisorError(hangs.message)
        raise NotYet(hangs.look_again)

    def fail(self, operation: str, server: Server) -> None:
        """Fail if a rule says so."""
        for rule in self.rules(operation, server):
            if rule.effect == FAIL:
                raise HypervisorError(rule.message)

    def is_overtaken(self, server: Server) -> bool:
        """Whether the server is being deleted, or its task has changed since the operation began."""
        if self.store is None:
            return False
        found = self.store().query(servers.get, server.uuid)
        if found is None or found.task_state in GOING:
            return server.task_state not in GOING
        return server.task_state not in (None, found.task_state)


def at_once(step: str) -> float:
    """Treats every step as finished, for callers that cannot wait."""
    return math.inf
