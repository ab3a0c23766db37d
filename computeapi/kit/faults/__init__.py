"""What is to go wrong in a cloud: rules about requests, and about the work of the hypervisor."""

import builtins
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from computeapi.backends.hypervisor.behaviour import HANG, DriverRule
from computeapi.db.servers import Server
from computeapi.errors import Invalid, NotFound
from computeapi.kit.faults.rules import FaultRule

__all__ = ['Faults', 'FaultRule']

MOST_RULES = 1000
MOST_DECISIONS = 10_000

Work = tuple[int, str, str, str | None]
"""A piece of work of the hypervisor: the task, the operation, the server and its host."""


class Faults:
    """The rules of a cloud, in the order in which they are looked at.

    clock: that of the cloud.  hasten: lets what waits look again at once.
    """

    def __init__(self, clock: Callable[[], datetime], hasten: Callable[[], None]):
        self.clock, self.hasten = clock, hasten
        # Replaced and never changed, so that requests need no lock.
        self.about_requests: tuple[FaultRule, ...] = ()
        self.about_work: tuple[FaultRule, ...] = ()
        # How often the cloud became another one.
        self.epoch = 0
        self._lock = threading.Lock()
        # What comes again until it is done is decided once.
        self._decisions: OrderedDict[Work, builtins.list[tuple[FaultRule, DriverRule]]] = OrderedDict()

    def add(self, **facts: Any) -> FaultRule:
        """A new rule, which is the last; Invalid for facts that do not fit.

        Which requests: operation ('POST /servers', 'os-stop'), service, path ('/v2.1/servers/*', '^/image/v[12]/'),
        min_version, max_version, project, server (how the name begins), host, metadata.
        Which work: hypervisor ('spawn', 'reboot', '*'), project, server, host, metadata.
        When: probability and seed, nth, count, after and lasting (seconds).
        What becomes of requests: status with message or body and retry_after; delay and jitter (seconds);
        cut='before', 'after' or 'within'. Of work: effect='fail' with message, 'hang', or 'slow' with delay and jitter.
        """
        with self._lock:
            if len(self.list()) >= MOST_RULES:
                raise Invalid(f'There are {MOST_RULES} rules, and no room for more.')
            rule = FaultRule(facts, self.clock, self.remove)
            if rule.about_requests:
                self.about_requests += (rule,)
            else:
                self.about_work += (rule,)
        return rule

    def list(self) -> builtins.list[FaultRule]:
        """The rules that there are, with their hits, the oldest first."""
        return sorted((*self.about_requests, *self.about_work), key=lambda rule: rule.id)

    def get(self, rule_id: int) -> FaultRule:
        """The rule of that number; NotFound."""
        for rule in self.list():
            if rule.id == rule_id:
                return rule
        raise NotFound(f'There is no rule {rule_id}.')

    def remove(self, rule: FaultRule) -> None:
        """Let a rule be over, if it is not yet; what hangs because of it goes on."""
        self._keep(lambda each: each is not rule)

    def clear(self) -> None:
        """Let all be over."""
        self._keep(lambda each: False)

    def _keep(self, kept: Callable[[FaultRule], bool]) -> None:
        with self._lock:
            before = len(self.about_work)
            self.about_requests = tuple(filter(kept, self.about_requests))
            self.about_work = tuple(filter(kept, self.about_work))
            fewer = len(self.about_work) < before
        if fewer:
            self.hasten()

    # ------------------------------------------------------------------ the work of the hypervisor

    def of_work(self, task: int, operation: str, server: Server) -> builtins.list[DriverRule]:
        """The rules that a piece of work is hit by, until it is `done`."""
        if not self.about_work:
            return []
        with self._lock:
            work = (task, operation, server.uuid, server.host)
            if work not in self._decisions:
                self._decisions[work] = [*self._hit(operation, server)]
                if len(self._decisions) > MOST_DECISIONS:
                    self._decisions.popitem(last=False)
            return [*self._standing(self._decisions[work])]

    def _hit(self, operation: str, server: Server) -> Iterator[tuple[FaultRule, DriverRule]]:
        for rule in self.about_work:
            if rule.concerns_work(operation) and rule.servers.holds(server) and rule.occasions.take():
                yield rule, rule.driver_rule(operation)

    def _standing(self, made: builtins.list[tuple[FaultRule, DriverRule]]) -> Iterator[DriverRule]:
        """Those that have not been taken away since. What hangs goes on when the time of the rule is over."""
        for rule, each in made:
            left = rule.occasions.left()
            if rule in self.about_work and not (each.effect == HANG and not left):
                yield replace(each, look_again=min(each.look_again, left))

    def done(self, task: int, operation: str, server: Server) -> None:
        """The work is over, as it is if it failed."""
        with self._lock:
            self._decisions.pop((task, operation, server.uuid, server.host), None)

    def found_otherwise(self) -> None:
        """All work is other work: the store is not what it was."""
        with self._lock:
            self.epoch += 1
            self._decisions.clear()
