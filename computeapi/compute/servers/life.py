"""What a server can be asked for once it is there: checked and written down here, done by a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.backends.hypervisor import Capability, Hypervisor, HypervisorError, require
from computeapi.clock import utcnow
from computeapi.compute.quotas import Quotas
from computeapi.compute.states import (
    ACTIVE,
    BUILDING,
    ERROR,
    PAUSED,
    RESCUED,
    RESIZED,
    SOFT_DELETED,
    STOPPED,
    SUSPENDED,
    Change,
)
from computeapi.compute.tasks import Tasks
from computeapi.context import Context
from computeapi.db import actions, server_migrations
from computeapi.db import servers as rows
from computeapi.db.engine import Store
from computeapi.db.servers import Server
from computeapi.errors import Conflict, ServerLocked, ServerNotFound, Unavailable

START = Change('start', 'start', 'powering-on', frozenset({STOPPED}), hosted=True)
STOP = Change('stop', 'stop', 'powering-off', frozenset({ACTIVE, ERROR}), hosted=True)
SOFT_REBOOT = Change('reboot', 'reboot', 'rebooting', frozenset({ACTIVE}))
HARD_REBOOT = Change(
    'reboot',
    'reboot',
    'rebooting_hard',
    frozenset({ACTIVE, STOPPED, PAUSED, SUSPENDED, ERROR}),
    frozenset({None, 'rebooting', 'reboot_started', 'rebooting_hard', 'reboot_started_hard', 'resuming', 'unpausing'}),
)
DELETE = Change('delete', 'delete', 'deleting', None, None)
FORCE_DELETE = Change('forceDelete', 'delete', 'deleting', None, None)
SOFT_DELETE = Change('delete', 'soft_delete', 'soft-deleting', None, None)
RESTORE = Change('restore', 'restore', 'restoring', frozenset({SOFT_DELETED}))
PAUSE = Change('pause', 'pause', 'pausing', frozenset({ACTIVE}))
UNPAUSE = Change('unpause', 'unpause', 'unpausing', frozenset({PAUSED}))
SUSPEND = Change('suspend', 'suspend', 'suspending', frozenset({ACTIVE}))
RESUME = Change('resume', 'resume', 'resuming', frozenset({SUSPENDED}))
RESCUE = Change('rescue', 'rescue', 'rescuing', frozenset({ACTIVE, STOPPED, ERROR}))
UNRESCUE = Change('unrescue', 'unrescue', 'unrescuing', frozenset({RESCUED}))
CRASH_DUMP = Change('trigger_crash_dump', 'crash_dump', None, frozenset({ACTIVE, PAUSED, RESCUED, RESIZED, ERROR}))
CHANGE_PASSWORD = Change('changePassword', '', None, frozenset({ACTIVE}))


class Life:
    """Changes of a server. Errors: ServerLocked, Conflict when its state does not allow the change."""

    def __init__(
        self,
        store: Store,
        tasks: Tasks,
        hypervisor: Hypervisor,
        quotas: Quotas,
        *,
        reclaim_seconds: int = 0,
        clock: Callable[[], datetime] = utcnow,
    ):
        self.store, self.tasks, self.hypervisor, self.quotas = store, tasks, hypervisor, quotas
        self.reclaim_seconds, self.clock = reclaim_seconds, clock

    def begin(
        self,
        context: Context,
        server: Server,
        change: Change,
        arguments: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> None:
        """Write down that the server goes through *change*, and wake a worker."""
        check(context, server, change)
        with self.store.write() as connection:
            self.begin_in(connection, context, server, change, arguments, **values)
        self.tasks.wake()

    def begin_in(
        self,
        connection: sa.Connection,
        context: Context,
        server: Server,
        change: Change,
        arguments: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> None:
        """The same in the caller's transaction: the state, the action and the task. The caller wakes the worker."""
        self._begin(connection, server, change, **values)
        action_id = actions.start(connection, context, server.uuid, change.name, self.clock())
        self.tasks.add(connection, change.work, server.uuid, context, arguments, action_id=action_id)

    def _begin(self, connection: sa.Connection, server: Server, change: Change, **values: Any) -> None:
        """The new state, if the server is still in one that allows it."""
        new = {'task_state': change.task_state, 'updated_at': self.clock(), **values}
        states = {'vm_states': change.vm_states, 'task_states': change.task_states}
        if not rows.change(connection, server.uuid, new, **states):  # type: ignore[arg-type]
            raise refusal(rows.get(connection, server.uuid), server.uuid, change)

    @contextmanager
    def prepared(
        self,
        context: Context,
        server: Server,
        change: Change,
        arguments: Mapping[str, Any],
        undo: Callable[[], None],
    ) -> Iterator[None]:
        """Begin the change when the block has made what it needs; `undo` takes that back if one of them fails."""
        check(context, server, change)
        with self.tasks.held(change.work, server.uuid, context, arguments, undo) as task:
            yield
            with self.store.write() as connection:
                self._begin(connection, server, change)
                action_id = actions.start(connection, context, server.uuid, change.name, self.clock())
                if not self.tasks.let_go(connection, task, action_id):
                    raise Unavailable()

    def record(self, connection: sa.Connection, context: Context, server: Server, name: str) -> None:
        """Note an action that is done at once."""
        now = self.clock()
        actions.finish(connection, actions.start(connection, context, server.uuid, name, now), now)

    # ------------------------------------------------------------ the changes

    def delete(self, context: Context, server: Server) -> None:
        """Delete the server, whatever it is doing; where servers are reclaimed later it is kept for that time.

        Asking twice is no error."""
        if server.task_state in ('deleting', 'soft-deleting'):
            return
        kept = self.reclaim_seconds and server.host and server.vm_state not in (ERROR, BUILDING, SOFT_DELETED)
        self.begin(context, server, SOFT_DELETE if kept else DELETE, progress=0)

    def force_delete(self, context: Context, server: Server) -> None:
        """Delete it now, also one that is kept for a while."""
        if server.task_state != 'deleting':
            self.begin(context, server, FORCE_DELETE, progress=0)

    def restore(self, context: Context, server: Server) -> None:
        """Take a server back that is kept for a while; it counts again, so there must be quota for it."""
        check(context, server, RESTORE)
        wanted = {'instances': 1, 'cores': server.vcpus, 'ram': server.memory_mb}
        with self.store.write() as connection:
            self.quotas.reserve(connection, server.project_id, server.user_id, **wanted)
            self.begin_in(connection, context, server, RESTORE)
        self.tasks.wake()

    def reset_state(self, context: Context, server: Server, vm_state: str) -> None:
        """Set the state by hand; whatever is under way is overtaken, and a worker looks after what it leaves."""
        now = self.clock()
        with self.store.write() as connection:
            current = rows.get(connection, server.uuid, lock=True)
            if current is None:
                raise ServerNotFound(id=server.uuid)
            sizes = {name: current.flavor[name] for name in ('vcpus', 'memory_mb')}
            values = {'vm_state': vm_state, 'task_state': None, 'updated_at': now}
            rows.update(connection, server.uuid, values | sizes)
            if current.vm_state == RESIZED:
                server_migrations.settle(connection, server.uuid, now)
            self.tasks.cancel(connection, server.uuid)
            self.tasks.add(connection, 'reset', server.uuid, context)
            self.record(connection, context, server, 'resetState')
        self.tasks.wake()

    def change_password(self, context: Context, server: Server, password: str) -> None:
        """Set the administrator's password in the server. It is handed over at once: passwords are not kept."""
        check(context, server, CHANGE_PASSWORD)
        try:
            self.hypervisor.set_password(server, password)
        except HypervisorError as error:
            raise Conflict(str(error)) from None
        with self.store.write() as connection:
            self.record(connection, context, server, CHANGE_PASSWORD.name)

    def start(self, context: Context, server: Server) -> None:
        self.begin(context, server, START)

    def stop(self, context: Context, server: Server) -> None:
        self.begin(context, server, STOP, progress=0)

    def reboot(self, context: Context, server: Server, *, hard: bool) -> None:
        self.begin(context, server, HARD_REBOOT if hard else SOFT_REBOOT, {'hard': hard})

    def lock(self, context: Context, server: Server, reason: str | None = None) -> None:
        """Refuse changes from now on; an owner's lock leaves an administrator's in place."""
        owner = server.project_id == context.project_id
        if server.locked_by and owner:
            return
        with self.store.write() as connection:
            locked = {'locked_by': 'owner' if owner else 'admin', 'locked_reason': reason}
            rows.update(connection, server.uuid, locked | {'updated_at': self.clock()})
            self.record(connection, context, server, 'lock')

    def unlock(self, context: Context, server: Server) -> None:
        with self.store.write() as connection:
            unlocked = {'locked_by': None, 'locked_reason': None, 'updated_at': self.clock()}
            rows.update(connection, server.uuid, unlocked)
            self.record(connection, context, server, 'unlock')

    def console_output(self, context: Context, server: Server, lines: int | None) -> str:
        """The last *lines* of the serial console; None: all that is kept."""
        if server.host is None:
            raise not_ready(server)
        require(self.hypervisor, Capability.CONSOLE_OUTPUT)
        return self.hypervisor.console_output(server, lines)


def check(context: Context, server: Server, change: Change) -> None:
    """Refuse what can be refused by looking at the server as it was found."""
    if change.locked:
        check_unlocked(context, server)
    if change.hosted and server.host is None:
        raise not_ready(server)
    wrong_vm = change.vm_states is not None and server.vm_state not in change.vm_states
    wrong_task = change.task_states is not None and server.task_state not in change.task_states
    if wrong_vm or wrong_task:
        raise refusal(server, server.uuid, change)


def locked(connection: sa.Connection, context: Context, server: Server, change: Change) -> Server:
    """The server as it is now, kept from changing until the transaction ends, if *change* is possible."""
    current = rows.get(connection, server.uuid, lock=True)
    if current is None:
        raise ServerNotFound(id=server.uuid)
    check(context, current, change)
    return current


def check_unlocked(context: Context, server: Server) -> None:
    """ServerLocked, unless the caller is an administrator."""
    if server.locked_by and not context.is_admin:
        raise ServerLocked(id=server.uuid)


def not_ready(server: Server) -> Conflict:
    return Conflict(f'Instance {server.uuid} is not ready')


def refusal(server: Server | None, server_id: str, change: Change) -> Exception:
    """Why *change* is not possible."""
    if server is None:
        return ServerNotFound(id=server_id)
    if change.vm_states is not None and server.vm_state not in change.vm_states:
        state = f'vm_state {server.vm_state}'
    else:
        state = f'task_state {server.task_state}'
    return Conflict(f"Cannot '{change.name}' instance {server_id} while it is in {state}")
