"""How a change of a server begins: checked and recorded in one transaction, performed by a worker."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from computeapi.backends.hypervisor import require
from computeapi.compute.notifications.subject import States
from computeapi.compute.platform import Platform
from computeapi.compute.servers import leftovers
from computeapi.compute.tasks.job import FAULT, fault_of
from computeapi.compute.tasks.queue import PREPARING
from computeapi.compute.tasks.transition import Requirement, Transition
from computeapi.context import Context
from computeapi.db import actions, server_shares, servers
from computeapi.db.servers import Server
from computeapi.db.tasks import Task
from computeapi.errors import Conflict, DatabaseError, NeighbourAway, ServerLocked, ServerNotFound, Unavailable


class Changes:
    """Begins transitions. Errors: ServerLocked, Conflict if the server's state does not allow it, NotSupported."""

    def __init__(self, platform: Platform):
        self.platform = platform
        self.store, self.tasks, self.clock = platform.store, platform.tasks, platform.clock

    def begin(
        self,
        context: Context,
        server: Server,
        transition: Transition,
        arguments: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> None:
        """Record that the server goes through *transition*, and wake a worker. *values*: further columns."""
        self.check(context, server, transition)
        with self.tasks.adding() as connection:
            self.begin_in(connection, context, server, transition, arguments, **values)

    def follow(self, context: Context, server: Server, transition: Transition) -> None:
        """Begin *transition* because of something that was observed. Nothing follows if the server is in another state
        by now, has other work in progress, or is deleted."""
        try:
            self.begin(context, server, transition)
        except (Conflict, ServerNotFound):
            return

    def begin_in(
        self,
        connection: sa.Connection,
        context: Context,
        server: Server,
        transition: Transition,
        arguments: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> None:
        """The same in the caller's transaction: the state, the action and the task. The caller wakes the worker."""
        self._enter(connection, context, server, transition, **values)
        action_id = actions.start(connection, context, server.uuid, transition.name, self.clock())
        self.tasks.add(connection, transition, server.uuid, context, arguments, action_id=action_id)

    def withdraw(self, connection: sa.Connection, context: Context, server: Server, transition: Transition) -> None:
        """Take back a transition: the state, the action and the task. A worker that has the task can do no more."""
        now = self.clock()
        values = {'task_state': None, 'updated_at': now}
        if servers.change(connection, server.uuid, values, task_states=transition.doing):
            self.notify_of_states(connection, context, server, vm_state=server.vm_state, task_state=None)
        for action_id in self.tasks.remove(connection, transition, server.uuid):
            actions.finish(connection, action_id, now)

    def _enter(
        self, connection: sa.Connection, context: Context, server: Server, transition: Transition, **values: Any
    ) -> None:
        """Set the new state, if the current one allows it and the server has nothing that the transition forbids."""
        states = {} if transition.beside else {'task_state': transition.during}
        new = {**states, 'updated_at': self.clock(), **values}
        allowed, doing = transition.allowed, transition.while_doing
        unlocked = needs_unlocked(context, transition)
        if not servers.change(connection, server.uuid, new, vm_states=allowed, task_states=doing, unlocked=unlocked):
            current = servers.get(connection, server.uuid)
            if current is not None:
                check(context, current, transition)
            raise refusal(current, server.uuid, transition)
        refuse_shares(connection, server, transition)
        if not transition.beside:
            self.notify_of_states(connection, context, server, vm_state=server.vm_state, task_state=transition.during)

    def notify(self, connection: sa.Connection, context: Context, server: Server, event: str) -> None:
        """Notify others of something that the request does at once."""
        self.platform.notifications.happened(connection, context, server.uuid, event)

    def notify_of_states(
        self, connection: sa.Connection, context: Context, server: Server, *, vm_state: str, task_state: str | None
    ) -> None:
        """Notify others of the new states of a server, which is as it was before."""
        before, after = States(server.vm_state, server.task_state), States(vm_state, task_state)
        self.platform.notifications.moved_on(connection, context, server.uuid, before, after)

    @contextmanager
    def prepared(
        self,
        context: Context,
        server: Server,
        transition: Transition,
        arguments: Mapping[str, Any],
        undo: Callable[[], None],
    ) -> Iterator[None]:
        """Begin after the block has created what is needed; `undo` takes that back if either fails."""
        self.check(context, server, transition)
        self.store.query(refuse_shares, server, transition)
        with self.tasks.leased(transition, server.uuid, context, {**arguments, PREPARING: True}, undo) as task:
            yield
            with self.store.write() as connection:
                self._enter(connection, context, server, transition)
                action_id = actions.start(connection, context, server.uuid, transition.name, self.clock())
                if not self.tasks.release(connection, task._replace(arguments={**arguments}), action_id):
                    raise Unavailable()

    @contextmanager
    def accepting(self, context: Context, server: Server, transition: Transition, task: Task) -> Iterator[None]:
        """The part of a task that may be refused; the workers do the rest, which is an action of the server.

        If a neighbour or the database is away, what was done may be unknown: a worker takes it back, as after a
        failure."""
        try:
            yield
        except (NeighbourAway, DatabaseError) as error:
            task.arguments[FAULT] = fault_of(error, self.clock())
            self.store.change(self.tasks.release, task, None)
            self.tasks.wake()
            raise
        except Exception:
            self.store.change(self.tasks.done, task)
            raise
        now = self.clock()
        with self.tasks.adding() as connection:
            action_id = actions.start(connection, context, server.uuid, transition.name, now)
            is_left = self.tasks.release(connection, task, action_id)
            if not is_left:
                actions.finish(connection, action_id, now)
        if not is_left:
            # It took so long that a worker has taken over.
            leftovers.settle(self.platform, context, server)

    def check(self, context: Context, server: Server, transition: Transition) -> None:
        """Refuse what can be refused by the server as it was read, and by the capabilities of its driver."""
        check(context, server, transition)
        if transition.capability is not None:
            require(self.platform.hypervisor, transition.capability, server.host)

    def record(
        self,
        connection: sa.Connection,
        context: Context,
        server: Server,
        name: str,
        *,
        event: str | None = None,
        host: str | None = None,
        message: str | None = None,
    ) -> None:
        """Record an action that is done at once, and its event on that host; with a message (Error), a failed one."""
        now = self.clock()
        action_id = actions.start(connection, context, server.uuid, name, now)
        if event is not None:
            actions.start_event(connection, action_id, event, host, now)
            self.notify(connection, context, server, event)
        actions.finish(connection, action_id, now, message)


def check(context: Context, server: Server, requirement: Requirement) -> None:
    """Refuse what can be refused by the server as it was read."""
    if server.locked_by and needs_unlocked(context, requirement):
        raise ServerLocked(id=server.uuid) if requirement.tells_lock else invalid_state(server, requirement)
    if requirement.hosted and server.host is None:
        raise not_ready(server)
    wrong_vm = requirement.allowed is not None and server.vm_state not in requirement.allowed
    wrong_task = requirement.while_doing is not None and server.task_state not in requirement.while_doing
    if wrong_vm or wrong_task:
        raise refusal(server, server.uuid, requirement)
    if requirement.launched and server.launched_at is None:
        raise invalid_state(server, requirement)


def refuse_shares(connection: sa.Connection, server: Server, transition: Transition) -> None:
    if not transition.shares and server_shares.of_server(connection, server.uuid):
        raise Conflict('Feature not supported with instances that have shares.')


def needs_unlocked(context: Context, requirement: Requirement) -> bool:
    return requirement.lockable and not context.is_admin


def locked(
    connection: sa.Connection, context: Context, server: Server, requirement: Requirement, needs: Collection[str] = ()
) -> Server:
    """The server as it is now, locked until the transaction ends; refused if its state does not allow the request."""
    current = servers.get(connection, server.uuid, needs=needs, lock=True)
    if current is None:
        raise ServerNotFound(id=server.uuid)
    check(context, current, requirement)
    return current


def invalid_state(server: Server, requirement: Requirement) -> Conflict:
    return Conflict(f"Instance {server.uuid} is in an invalid state for '{requirement.name}'")


def not_ready(server: Server) -> Conflict:
    return Conflict(f'Instance {server.uuid} is not ready')


def refusal(server: Server | None, server_id: str, requirement: Requirement) -> Exception:
    """The error for a server that does not allow the request."""
    if server is None:
        return ServerNotFound(id=server_id)
    if requirement.allowed is not None and server.vm_state not in requirement.allowed:
        state = f'vm_state {server.vm_state}'
    elif server.task_state is None:
        return invalid_state(server, requirement)
    else:
        state = f'task_state {server.task_state}'
    return Conflict(f"Cannot '{requirement.api_name or requirement.name}' instance {server_id} while it is in {state}")
