"""The notifications about servers: the steps of their actions, their updates, and their use."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
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
    are_on,
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

    def __init__(self, conf: cfg.ConfigOpts, clock: Callable[[], datetime]):
        self.outbox, self.clock, self.periods = Outbox(conf, clock), clock, AuditPeriods(conf)
        self.host, self.name_template = conf.host, conf.instance_name_template
        self.with_disks = conf.notifications.bdms_in_notifications
        self.state_changes = conf.notifications.notify_on_state_change

    # ------------------------------------------------------------ actions

    def begun(self, connection: sa.Connection, step: NotifiedStep) -> None:
        """Notify of the beginning of a step, and first of the use of the server until then if it changes that."""
        if step.name in CHANGES_OF_USE:
            self._emit(connection, self._subject(connection, step, period=self._current()), [EXISTS])
        self._emit_step(connection, step, NOTICES.get(step.name, []), 'start')

    def ended(self, connection: sa.Connection, step: NotifiedStep, *, with_action: bool) -> None:
        """Notify of the end of a step, unless that comes with the end of the action, or (with_action) the latter."""
        notices = [each for each in reversed(NOTICES.get(step.name, [])) if each.with_action == with_action]
        self._emit_step(connection, step, notices, 'end')

    def failed(
        self, connection: sa.Connection, step: NotifiedStep, error: BaseException, *, with_action: bool = False
    ) -> None:
        """Notify that a step has failed, or (with_action) that the action has failed after it."""
        notices = [each for each in reversed(NOTICES.get(step.name, [])) if each.with_action or not with_action]
        self._emit_step(connection, step, notices, 'error', error)

    def happened(self, connection: sa.Connection, context: Context, server_id: str, event: str) -> None:
        """Notify of something that a request has done."""
        if event in OF_REQUESTS:
            notice, phases = OF_REQUESTS[event]
            step = self._step(notice, server_id, context)
            for phase in phases:
                self._emit_step(connection, step, [notice], phase)

    def _emit_step(
        self,
        connection: sa.Connection,
        step: NotifiedStep,
        notices: list[Notice],
        phase: str | None,
        error: BaseException | None = None,
    ) -> None:
        if notices:
            self._emit(connection, self._subject(connection, step, error=error), notices, phase)

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

    def created(self, connection: sa.Connection, context: Context, server_ids: Sequence[str]) -> None:
        """Notify of new servers, wherever that is done for new states."""
        if self.state_changes != 'none':
            self._emit_all(connection, context, servers.alive(connection, server_ids), UPDATE, self._current())

    def existed(self, connection: sa.Connection, found: Sequence[Server], period: Period) -> None:
        """Notify that these servers were used in a period."""
        self._emit_all(connection, NOBODY, found, EXISTS, period)

    def _emit_all(
        self, connection: sa.Connection, context: Context, found: Sequence[Server], notice: Notice, period: Period
    ) -> None:
        servers.load(connection, found, NEEDS)
        subjects = [
            Subject(server, context, {}, server.host or self.host, self._domain_name(server), period=period)
            for server in found
        ]
        self.outbox.add(connection, (each for subject in subjects for each in self._notifications(subject, [notice])))

    def _update(
        self, connection: sa.Connection, notice: Notice, context: Context, server_id: str, **facts: Any
    ) -> None:
        step = self._step(notice, server_id, context)
        self._emit(connection, self._subject(connection, step, period=self._current(), **facts), [notice])

    def _step(self, notice: Notice, server_id: str, context: Context) -> NotifiedStep:
        """Of no task: on this machine, or on the server's host."""
        return NotifiedStep(notice.action, self.host if notice.source == 'api' else None, server_id, context, {})

    def _current(self) -> Period:
        return self.periods.current(self.clock())

    # ------------------------------------------------------------ writing

    def _subject(self, connection: sa.Connection, step: NotifiedStep, **facts: Any) -> Subject | None:
        """The server as it is in this transaction; None if it is archived already."""
        server = servers.get(connection, step.server_id, needs=NEEDS, deleted=True)
        if server is None:
            return None
        host, flavor = step.host or server.host or self.host, _new_flavor(connection, step.arguments)
        return Subject(server, step.context, step.arguments, host, self._domain_name(server), flavor, **facts)

    def _domain_name(self, server: Server) -> str:
        return str(self.name_template % server.id)

    def _emit(
        self, connection: sa.Connection, subject: Subject | None, notices: list[Notice], phase: str | None = None
    ) -> None:
        if subject is not None:
            self.outbox.add(connection, self._notifications(subject, notices, phase))

    def _notifications(
        self, subject: Subject, notices: Sequence[Notice], phase: str | None = None
    ) -> Iterator[NewNotification]:
        context, priority = subject.context, INFO if subject.error is None else ERROR
        for notice in notices:
            if notice.unversioned is not None and UNVERSIONED in self.outbox.formats:
                event_type = '.'.join(filter(None, ('compute.instance', notice.unversioned, phase)))
                publisher, payload = f'{notice.source}.{subject.host}', unversioned.payload(subject, event_type)
                yield NewNotification(context, UNVERSIONED, publisher, event_type, payload, priority)
            if VERSIONED in self.outbox.formats:
                event_type = '.'.join(filter(None, ('instance', notice.action, phase)))
                payload = versioned.payload(subject, notice.payload, disks=self.with_disks)
                publisher = f'nova-{notice.source}:{subject.host}'
                yield NewNotification(context, VERSIONED, publisher, event_type, payload, priority)


def notifications_of(conf: cfg.ConfigOpts, clock: Callable[[], datetime]) -> ServerNotifications | None:
    """None if they are off."""
    return ServerNotifications(conf, clock) if are_on(conf) else None


def _new_flavor(connection: sa.Connection, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """The flavor of the migration that the task is about, if any."""
    migration = arguments.get('migration_id') and server_migrations.get(connection, arguments['migration_id'])
    return migration.new_flavor if migration else None
