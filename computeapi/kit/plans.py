"""How long transitional states last: not at all, some seconds, until a number of reads, or until released."""

from __future__ import annotations

import builtins
import itertools
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from computeapi.backends.hypervisor import NotYet
from computeapi.backends.hypervisor.behaviour import LOOK_AGAIN_SECONDS, OPERATIONS
from computeapi.db import servers
from computeapi.db.engine import Store
from computeapi.db.servers import Server
from computeapi.errors import Invalid, NotFound
from computeapi.kit.removable import Removable
from computeapi.states import GOING, STATUS, STATUS_BY_TASK, TaskState, status_of
from computeapi.versions import COMPUTE
from computeapi.web.schemas import closed, one_of
from computeapi.web.validation import BodyValidator

MAX_PLANS = 1000
MAX_STAYS = 10_000
RELEASE_TIMEOUT_SECONDS = 5.0
"""How long `release` waits for a server to reach the state in which it is held."""
LEAVING_SECONDS = 2.0
"""How long a read waits for a server that may leave its state, which it normally does at once."""
POLL_SECONDS = 0.005
NOTHING = 'nothing'
"""Stands for no operation of the hypervisor: only plans for a state match."""

STATUSES = frozenset({*STATUS.values(), *(name for each in STATUS_BY_TASK.values() for name in each.values())})
FACTS = closed(
    {
        'state': {
            **one_of(*sorted(STATUSES), *sorted(map(str, TaskState))),
            'description': 'a status, such as BUILD, or a task_state, such as shelving',
        },
        'operation': {**one_of(*sorted(OPERATIONS)), 'description': 'an operation of the hypervisor, such as spawn'},
        'server': {
            'type': 'string',
            'minLength': 1,
            'maxLength': 255,
            'description': 'how its name starts',
        },
        'seconds': {'type': 'number', 'minimum': 0, 'maximum': 86400, 'description': 'how many seconds it lasts'},
        'reads': {
            'type': 'integer',
            'minimum': 0,
            'maximum': 10**6,
            'description': 'how often a client must read it',
        },
        'until_told': {'type': 'boolean', 'enum': [True], 'description': 'it lasts until it is released'},
    }
)
CHECKED = BodyValidator(FACTS)


class StatePlan(Removable):
    """How long one state lasts. Raises Invalid for invalid facts. remove: removes the plan."""

    _ids = itertools.count(1)

    def __init__(self, facts: Mapping[str, Any], remove: Callable[[StatePlan], None]):
        self.facts = dict(facts)
        CHECKED.check(self.facts, COMPUTE.max, False)
        if len(self.facts.keys() & {'state', 'operation'}) != 1:
            raise Invalid('A plan requires either a `state` or an `operation`.')
        if len(self.facts.keys() & {'seconds', 'reads', 'until_told'}) != 1:
            raise Invalid('A plan requires one of `seconds`, `reads` and `until_told`.')
        self.id, self._remove = next(self._ids), remove

    def concerns(self, operation: str, server: Server) -> bool:
        """Whether the plan applies to what the hypervisor is about to do with the server."""
        if not server.name.startswith(str(self.facts.get('server', ''))):
            return False
        return bool(self.facts.get('operation') == operation or self.is_state_of(server))

    def is_state_of(self, server: Server) -> bool:
        """Whether a server is in the state of the plan. For one that is being deleted, only the task_state counts."""
        status = None if server.task_state in GOING else status_of(server.vm_state, server.task_state)
        return bool(self.facts.get('state', '') in (status, server.task_state))

    def document(self) -> dict[str, Any]:
        """The plan as JSON."""
        return {'id': self.id, **self.facts}


@dataclass
class Stay:
    """A server that is held in a state. task_state: of the server when it was held.  reads: how often it was read since
    the action was requested."""

    plan: StatePlan
    server_id: str
    name: str
    task_state: str | None
    reads: int = 0
    released: bool = False

    @property
    def is_read_enough(self) -> bool:
        return bool(self.reads >= self.plan.facts.get('reads', math.inf))

    def is_in(self, server: Server) -> bool:
        """Whether the server is still in the state."""
        if 'state' in self.plan.facts:
            return self.plan.is_state_of(server)
        return server.task_state is not None and server.task_state == self.task_state


class Plans:
    """The plans of a cloud. The first plan that matches a state applies.

    hasten: lets waiting work on these servers continue at once.  store: returns the store of the cloud.
    """

    def __init__(self, hasten: Callable[[Collection[str]], None], store: Callable[[], Store]):
        self.hasten, self.store = hasten, store
        self.all: tuple[StatePlan, ...] = ()
        self._changed = threading.Condition()
        self._stays: OrderedDict[tuple[int, int, str], Stay] = OrderedDict()
        self._leaving: OrderedDict[str, Stay] = OrderedDict()
        # By server: the number of reads since the last change was requested.
        self._reads: OrderedDict[str, int] = OrderedDict()

    def add(self, **kwargs: Any) -> StatePlan:
        """Add a plan; Invalid for invalid arguments.

        For what: state='BUILD' (a status or a task_state) or operation='spawn' (an operation of the hypervisor), and
        server (a prefix of the name). How long: seconds, reads, or until_told=True.
        """
        plan = StatePlan(kwargs, self.remove)
        with self._changed:
            if len(self.all) >= MAX_PLANS:
                raise Invalid(f'There are already {MAX_PLANS} plans, which is the maximum.')
            self.all += (plan,)
        return plan

    def list(self) -> builtins.list[StatePlan]:
        """All plans, the oldest first."""
        return [*self.all]

    def get(self, plan_id: int) -> StatePlan:
        """The plan with this number; NotFound."""
        for plan in self.all:
            if plan.id == plan_id:
                return plan
        raise NotFound(f'There is no plan {plan_id}.')

    def remove(self, plan: StatePlan) -> None:
        """Remove a plan, if it still exists; servers that wait because of it continue."""
        self._keep(lambda each: each is not plan)

    def clear(self) -> None:
        """Remove all plans."""
        self._keep(lambda each: False)

    def _keep(self, kept: Callable[[StatePlan], bool]) -> None:
        with self._changed:
            self.all = tuple(filter(kept, self.all))
            freed = [stay for stay in self._stays.values() if not kept(stay.plan)]
        self._let_go(freed)

    def release(self, server: str | None = None) -> None:
        """Release a server, by name or ID, or all servers that are held until they are released.

        Waits for a server that has not reached the state yet; NotFound if it does not in time.
        """

        def found() -> builtins.list[Stay]:
            return [
                stay
                for stay in self._stays.values()
                if 'until_told' in stay.plan.facts and not stay.released and server in (None, stay.name, stay.server_id)
            ]

        with self._changed:
            stays = self._changed.wait_for(found, RELEASE_TIMEOUT_SECONDS)
        if not stays:
            raise NotFound(f'{server or "Some server"} must be in a state that lasts until it is released.')
        self._let_go(stays)

    def _let_go(self, stays: Iterable[Stay]) -> None:
        stays = [*stays]
        with self._changed:
            for stay in stays:
                stay.released = True
                _keep_bounded(self._leaving, stay.server_id, stay)
        if stays:
            self.hasten({stay.server_id for stay in stays})

    # ------------------------------------------------------------------ the work of the hypervisor

    def lasts(self, task: int, operation: str, server: Server, passed: Callable[[str], float]) -> bool:
        """Raise NotYet while a plan applies. Returns whether there was a plan; then no further time is to be taken."""
        plan = next((each for each in self.all if each.concerns(operation, server)), None)
        if plan is None:
            # After a plan was removed, the rest of the work takes no time either.
            return bool(self._stays) and any(key[1:] == (task, server.uuid) for key in [*self._stays])
        stay = self._stay(plan, task, server)
        left = 0.0 if stay.released else _left(plan, passed)
        if left:
            raise NotYet(left)
        stay.released = True
        return True

    def _stay(self, plan: StatePlan, task: int, server: Server) -> Stay:
        """The stay of the server under this plan; it begins now if there is none yet."""
        with self._changed:
            key = (plan.id, task, server.uuid)
            stay = self._stays.get(key)
            if stay is None:
                stay = Stay(plan, server.uuid, server.name, server.task_state, self._reads.pop(server.uuid, 0))
                _keep_bounded(self._stays, key, stay)
                self._changed.notify_all()
                if stay.is_read_enough:
                    stay.released = True
                    _keep_bounded(self._leaving, server.uuid, stay)
            return stay

    def state_replaced(self) -> None:
        """Forget all stays and reads: the state of the cloud was replaced."""
        with self._changed:
            self._stays.clear()
            self._leaving.clear()
            self._reads.clear()

    # ------------------------------------------------------------------ reads

    def read(self, server_ids: Iterable[str]) -> None:
        """Count a read of these servers."""
        if not any('reads' in plan.facts for plan in self.all):
            return
        done = []
        with self._changed:
            waiting = {stay.server_id: stay for stay in self._stays.values() if not stay.released}
            for server_id in server_ids:
                stay = waiting.get(server_id)
                if stay is None:
                    _keep_bounded(self._reads, server_id, self._reads.get(server_id, 0) + 1)
                    continue
                stay.reads += 1
                if stay.is_read_enough:
                    done.append(stay)
        self._let_go(done)

    def requested(self, server_id: str, *, going: bool = False) -> None:
        """Forget the reads of a server: a client requested another action. going: the request deletes the server."""
        with self._changed:
            self._reads.pop(server_id, None)
            for key in [key for key in self._stays if going and key[2] == server_id]:
                del self._stays[key]

    def wait_for_leaving(self, server_id: str | None = None) -> None:
        """Wait a moment until this server, or all servers (None), that may leave their state have left it."""
        until = time.monotonic() + LEAVING_SECONDS
        while self.is_leaving(server_id) and time.monotonic() < until:
            time.sleep(POLL_SECONDS)

    def is_leaving(self, server_id: str | None) -> bool:
        """Whether a server is in a state that has lasted long enough."""
        leaving = [stay for stay in [*self._leaving.values()] if server_id in (None, stay.server_id)]
        if any(map(self._is_there, leaving)):
            return True
        if not server_id:
            return False
        # The server may have been read often enough before it reached the state.
        read = self._reads.get(server_id, 0)
        found = self.store().query(servers.get, server_id)
        plan = next((each for each in self.all if found is not None and each.concerns(NOTHING, found)), None)
        return plan is not None and read >= plan.facts.get('reads', math.inf)

    def _is_there(self, stay: Stay) -> bool:
        found = self.store().query(servers.get, stay.server_id)
        if found is not None and stay.is_in(found):
            return True
        with self._changed:
            if self._leaving.get(stay.server_id) is stay:
                del self._leaving[stay.server_id]
        return False


def _left(plan: StatePlan, passed: Callable[[str], float]) -> float:
    """For how many more seconds the state lasts, or when to look again; 0 for callers that cannot wait."""
    seconds = plan.facts.get('seconds')
    if seconds == 0:
        return 0.0
    so_far = passed(f'plan {plan.id}')
    if so_far == math.inf:
        return 0.0
    return LOOK_AGAIN_SECONDS if seconds is None else float(max(0.0, seconds - so_far))


def _keep_bounded(things: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    things[key] = value
    if len(things) > MAX_STAYS:
        things.popitem(last=False)
