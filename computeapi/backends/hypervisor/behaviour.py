"""How a hypervisor is told to behave: it takes its time, hangs and fails as rules say, for tests of its callers."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from oslo_config import cfg

from computeapi.backends.hypervisor import HypervisorError, NotYet, Operations
from computeapi.db import servers
from computeapi.db.engine import Store
from computeapi.db.servers import Server
from computeapi.states import GOING

# What rules can be for.
OPERATIONS = frozenset(name for name in vars(Operations) if not name.startswith('_'))
FAIL, HANG, SLOW = 'fail', 'hang', 'slow'
LONGEST_HANG_SECONDS = 3600
LOOK_AGAIN_SECONDS = 60


@dataclass(frozen=True)
class ServerCondition:
    """Which servers are meant.

    name: how theirs begins.  project: its id, or its name.  metadata: what is among theirs.  host: where they are.
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
        """The same of what a server is called, whosever and wherever it is."""
        return name.startswith(self.name) and self.metadata.items() <= metadata.items()


@dataclass(frozen=True)
class DriverRule:
    """What becomes of an operation on some servers.

    effect: FAIL, HANG or SLOW, by so many `seconds`.  message: what clients read of it, unless it is slow.
    look_again: after how many seconds what hangs looks whether the rule is still there.
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
"""Those that concern an operation on a server."""


class ConfiguredRules:
    """Short forms, `spawn`, `spawn:NAME`, `spawn@HOST` or `spawn@HOST:NAME`, in the options `fail` and `hang`, as they
    are at the moment.

    options: the group [simulated]; cfg.Error for rules about what there is not.
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
    """What rules make of the operations of a driver.

    store: gives that of the servers; None where they are not known, and whoever tells the driver of them watches what
    becomes of them.  seconds: how long an operation takes without any rule.  step: what its waiting
    is called, beside that of others.
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
        """NotYet until the time is over, and while there is a rule that says that it hangs."""
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
        if passed >= LONGEST_HANG_SECONDS or self.is_overtaken(server):
            raise HypervisorError(hangs.message)
        raise NotYet(hangs.look_again)

    def fail(self, operation: str, server: Server) -> None:
        """Fail if there is a rule that says so."""
        for rule in self.rules(operation, server):
            if rule.effect == FAIL:
                raise HypervisorError(rule.message)

    def is_overtaken(self, server: Server) -> bool:
        """Whether the server is going, or is not doing any more what it was when the operation began."""
        if self.store is None:
            return False
        found = self.store().ask(servers.get, server.uuid)
        if found is None or found.task_state in GOING:
            return server.task_state not in GOING
        return server.task_state not in (None, found.task_state)


def at_once(step: str) -> float:
    """The time of every step is over, for whoever cannot wait."""
    return math.inf
