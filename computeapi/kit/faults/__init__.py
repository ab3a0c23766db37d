"""Fault rules of a cloud, about requests and about the work of the hypervisor."""

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

MAX_RULES = 1000
MAX_DECISIONS = 10_000

Work = tuple[int, str, str, str | None]
"""A piece of work of the hypervisor: the task, the operation, the server and its host."""


class Faults:
    """The rules of a cloud, in the order in which they are applied.

    clock: of the cloud.  hasten: lets waiting work be tried again at once.
    """

    def __init__(self, clock: Callable[[], datetime], hasten: Callable[[], None]):
        self.clock, self.hasten = clock, hasten
        # Replaced and never changed in place, so that requests need no lock.
        self.about_requests: tuple[FaultRule, ...] = ()
        self.about_work: tuple[FaultRule, ...] = ()
        # How often the state of the cloud was replaced.
        self.epoch = 0
        self._lock = threading.Lock()
        # Work is tried repeatedly until it is done, but which rules hit it is decided once.
        self._decisions: OrderedDict[Work, builtins.list[tuple[FaultRule, DriverRule]]] = OrderedDict()

    def add(self, **kwargs: Any) -> FaultRule:
        """Add a rule, after all others; Invalid for invalid arguments.

        Which requests: operation ('POST /servers', 'os-stop'), service, path ('/v2.1/servers/*', '^/image/v[12]/'),
        min_version, max_version, project, server (a prefix of the name), host, metadata.
        Which work: hypervisor ('spawn', 'reboot', '*'), project, server, host, metadata.
        When: probability and seed, nth, count, after and lasting (seconds).
        What happens to requests: status with message or body and retry_after; delay and jitter, trickle (seconds);
        cut='before', 'after' or 'within', and abrupt. To work: effect='fail' with message, 'hang', or 'slow' with delay
        and jitter.
        """
        with self._lock:
            if len(self.list()) >= MAX_RULES:
                raise Invalid(f'There are already {MAX_RULES} rules, which is the maximum.')
            rule = FaultRule(kwargs, self.clock, self.remove)
            if rule.about_requests:
                self.about_requests += (rule,)
            else:
                self.about_work += (rule,)
        return rule

    def list(self) -> builtins.list[FaultRule]:
        """All rules, with their hits, the oldest first."""
        return sorted((*self.about_requests, *self.about_work), key=lambda rule: rule.id)

    def get(self, rule_id: int) -> FaultRule:
        """The rule with this number; NotFound."""
        for rule in self.list():
            if rule.id == rule_id:
                return rule
        raise NotFound(f'There is no rule {rule_id}.')

    def remove(self, rule: FaultRule) -> None:
        """Remove a rule, if it still exists; work that hangs because of it continues."""
        self._keep(lambda each: each is not rule)

    def clear(self) -> None:
        """Remove all rules."""
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
        """The rules that hit a piece of work; they stay the same until it is `done`."""
        if not self.about_work:
            return []
        with self._lock:
            work = (task, operation, server.uuid, server.host)
            if work not in self._decisions:
                self._decisions[work] = [*self._hit(operation, server)]
                if len(self._decisions) > MAX_DECISIONS:
                    self._decisions.popitem(last=False)
            return [*self._standing(self._decisions[work])]

    def _hit(self, operation: str, server: Server) -> Iterator[tuple[FaultRule, DriverRule]]:
        for rule in self.about_work:
            if rule.concerns_work(operation) and rule.servers.holds(server) and rule.selection.take():
                yield rule, rule.driver_rule(operation)

    def _standing(self, made: builtins.list[tuple[FaultRule, DriverRule]]) -> Iterator[DriverRule]:
        """The rules that still apply: those that were not removed. Hanging work continues when the time of its rule is
        over."""
        for rule, each in made:
            left = rule.selection.left()
            if rule in self.about_work and not (each.effect == HANG and not left):
                yield replace(each, look_again=min(each.look_again, left))

    def done(self, task: int, operation: str, server: Server) -> None:
        """Note that the work ended, successfully or not."""
        with self._lock:
            self._decisions.pop((task, operation, server.uuid, server.host), None)

    def state_replaced(self) -> None:
        """Forget what was decided: the state of the cloud was replaced, so all work is different."""
        with self._lock:
            self.epoch += 1
            self._decisions.clear()
