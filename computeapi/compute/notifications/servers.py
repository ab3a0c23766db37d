"""The notifications about servers: the steps of their actions, their updates, and their use."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.compute.audit_periods import AuditPeriods, Period
from computeapi.compute.notifications import unversioned, versioned
from computeapi.compute.notifications.catalogue import (
    CHANGES_OF_USE,
    EXISTS,
    NOTICES,
    OF_REQUESTS,
    UPDATE,
    UPDATE_BY_REQUEST,
    Notice,
)
from computeapi.compute.notifications.outbox import (
    ERROR,
    INFO,
    NOBODY,
    UNVERSIONED,
    VERSIONED,
    NewNotification,
    Outbox,
)
from computeapi.compute.notifications.subject import States, Subject
from computeapi.context import Context
from computeapi.db import server_migrations, servers
from computeapi.db.servers import Server

NEEDS = (servers.TAGS, servers.VOLUMES)


class NotifiedStep(NamedTuple):
    """A step of a server's action. arguments: of its task."""

    name: str
    host: str | None
    server_id: str
    context: Context
    arguments: Mapping[str, Any]


class ServerNotifications:
    """Writes the notifications about servers, in the transaction of what they are about."""

    def __init__(self, outbox: Outbox, conf: cfg.ConfigOpts, clock: Callable[[], datetime]):
        self.outbox, self.clock, self.periods = outbox, clock, AuditPeriods(conf)
        self.name_template = conf.instance_name_template
        self.with_disks = conf.notifications.bdms_in_notifications
        self.state_changes = conf.notifications.notify_on_state_change

    @property
    def are_on(self) -> bool:
        return bool(self.outbox.formats)

    # ------------------------------------------------------------ actions

    def begun(self, connection: sa.Connection, step: NotifiedStep) -> None:
        """Notify of the beginning of a step, and first of the use of the server until then if it changes that."""
        if step.name in CHANGES_OF_USE:
            self.outbox.add(connection, step.context, self._of_use(connection, step, EXISTS))
        self._add(connection, step, NOTICES.get(step.name, []), 'start')

    def ended(self, connection: sa.Connection, step: NotifiedStep, *, with_action: bool) -> None:
        """Notify of the end of a step, unless that comes with the end of the action, or (with_action) the latter."""
        notices = [each for each in reversed(NOTICES.get(step.name, [])) if each.with_action == with_action]
        self._add(connection, step, notices, 'end')

    def failed(
        self, connection: sa.Connection, step: NotifiedStep, error: BaseException, *, with_action: bool = False
    ) -> None:
        """Notify that a step has failed, or (with_action) that the action has failed after it."""
        notices = [each for each in reversed(NOTICES.get(step.name, [])) if each.with_action or not with_action]
        self._add(connection, step, notices, 'error', error)

    def happened(self, connection: sa.Connection, context: Context, server_id: str, event: str) -> None:
        """Notify of something that a request has done."""
        if event in OF_REQUESTS:
            notice, phases = OF_REQUESTS[event]
            step = self._step(notice, server_id, context)
            for phase in phases:
                self._add(connection, step, [notice], phase)

    def _add(
        self,
        connection: sa.Connection,
        step: NotifiedStep,
        notices: Sequence[Notice],
        phase: str | None,
        error: BaseException | None = None,
    ) -> None:
        if notices:
            self.outbox.add(connection, step.context, self._of_step(connection, step, notices, phase, error=error))

    # ------------------------------------------------------------ updates and use

    def moved_on(
        self, connection: sa.Connection, context: Context, server_id: str, before: States, after: States
    ) -> None:
        """Notify of new states, if that is configured. before: as they were; after: as they are."""
        wanted = {'vm_state': before.vm_state != after.vm_state, 'vm_and_task_state': before != after}
        if wanted.get(self.state_changes):
            self._update(connection, UPDATE, context, server_id, before=before)

    def updated(
        self, connection: sa.Connection, context: Context, server_id: str, *, old_name: str | None = None
    ) -> None:
        """Notify of other changes, wherever that is done for those of states. old_name: if there is a new one."""
        if self.state_changes != 'none':
            self._update(connection, UPDATE_BY_REQUEST, context, server_id, old_name=old_name)

    def tagged(self, connection: sa.Connection, context: Context, server_id: str) -> None:
        """Notify of new tags, which is always done."""
        self._update(connection, UPDATE_BY_REQUEST, context, server_id)

    def _update(
        self, connection: sa.Connection, notice: Notice, context: Context, server_id: str, **facts: Any
    ) -> None:
        step = self._step(notice, server_id, context)
        self.outbox.add(connection, context, self._of_use(connection, step, notice, **facts))

    def created(self, connection: sa.Connection, context: Context, server_ids: Sequence[str]) -> None:
        """Notify of new servers, wherever that is done for new states."""
        if self.state_changes != 'none':
            self.outbox.add(connection, context, self._of_new(connection, context, server_ids))

    def existed(self, connection: sa.Connection, found: Sequence[Server], period: Period) -> None:
        """Notify that these servers were used in a period."""
        self.outbox.add(connection, NOBODY, self._of_all(connection, NOBODY, found, EXISTS, period))

    def _step(self, notice: Notice, server_id: str, context: Context) -> NotifiedStep:
        """Of no task: on this machine, or on the server's host."""
        host = self.outbox.host if notice.source == 'api' else None
        return NotifiedStep(notice.action, host, server_id, context, {})

    # ------------------------------------------------------------ what is written, read only if notifications are on

    def _of_step(
        self,
        connection: sa.Connection,
        step: NotifiedStep,
        notices: Sequence[Notice],
        phase: str | None = None,
        **facts: Any,
    ) -> Iterator[NewNotification]:
        """About the server as it is in this transaction; nothing if it is archived already."""
        server = servers.get(connection, step.server_id, needs=NEEDS, deleted=True)
        if server is not None:
            host, flavor = step.host or server.host or self.outbox.host, _new_flavor(connection, step.arguments)
            name = self._domain_name(server)
            subject = Subject(server, step.context, step.arguments, host, name, flavor, **facts)
            for notice in notices:
                yield from self._of_subject(subject, notice, phase)

    def _of_use(
        self, connection: sa.Connection, step: NotifiedStep, notice: Notice, **facts: Any
    ) -> Iterator[NewNotification]:
        yield from self._of_step(connection, step, [notice], period=self._current(), **facts)

    def _of_new(
        self, connection: sa.Connection, context: Context, server_ids: Sequence[str]
    ) -> Iterator[NewNotification]:
        found = servers.alive(connection, server_ids)
        yield from self._of_all(connection, context, found, UPDATE, self._current())

    def _of_all(
        self, connection: sa.Connection, context: Context, found: Sequence[Server], notice: Notice, period: Period
    ) -> Iterator[NewNotification]:
        servers.load(connection, found, NEEDS)
        for server in found:
            host, name = server.host or self.outbox.host, self._domain_name(server)
            yield from self._of_subject(Subject(server, context, {}, host, name, period=period), notice)

    def _current(self) -> Period:
        return self.periods.current(self.clock())

    def _domain_name(self, server: Server) -> str:
        return str(self.name_template % server.id)

    def _of_subject(self, subject: Subject, notice: Notice, phase: str | None = None) -> Iterator[NewNotification]:
        sent: dict[str, Any] = {
            'source': notice.source,
            'host': subject.host,
            'priority': INFO if subject.error is None else ERROR,
        }
        if notice.unversioned is not None:
            name = '.'.join(filter(None, ('compute.instance', notice.unversioned, phase)))
            yield NewNotification(UNVERSIONED, name, partial(unversioned.payload, subject, name), **sent)
        name = '.'.join(filter(None, ('instance', notice.action, phase)))
        payload = partial(versioned.payload, subject, notice.payload, disks=self.with_disks)
        yield NewNotification(VERSIONED, name, payload, **sent)


def _new_flavor(connection: sa.Connection, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """The flavor of the migration that the task is about, if any."""
    migration = arguments.get('migration_id') and server_migrations.get(connection, arguments['migration_id'])
    return migration.new_flavor if migration else None
