"""Notifies other services, such as Ceilometer, Designate or Watcher, of what happens to servers.

A notification is written in the transaction that it tells about, so a crash neither loses one nor invents one. `Sender`
sends it soon afterwards, again if it is not known whether it arrived.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.compute.notifications import unversioned, versioned
from computeapi.compute.notifications.catalogue import AT_ONCE, NOTICES, Notice
from computeapi.compute.notifications.subject import Subject
from computeapi.context import Context
from computeapi.db import notifications as rows
from computeapi.db import server_migrations, servers

__all__ = ['ActionNotices', 'ServerNotifications', 'are_on', 'notifications_of']

ERROR, INFO = 'error', 'info'
CALLER = ('user_id', 'project_id', 'user_name', 'project_name', 'is_admin', 'request_id', 'global_request_id')
"""What a notification says of the caller; not its token."""


class NotifiedStep(NamedTuple):
    """A step of a server's action. arguments: of its task."""

    name: str
    host: str | None
    server_id: str
    context: Context
    arguments: Mapping[str, Any]


class ServerNotifications:
    """Writes the notifications about the steps of actions."""

    def __init__(self, conf: cfg.ConfigOpts, clock: Callable[[], datetime]):
        self.clock = clock
        self.host, self.name_template = conf.host, conf.instance_name_template
        self.most_waiting, self.tells_disks = conf.notifications.most_waiting, conf.notifications.bdms_in_notifications
        wanted = conf.notifications.notification_format
        self.formats = [each for each in ('unversioned', 'versioned') if wanted in (each, 'both')]

    def begun(self, connection: sa.Connection, step: NotifiedStep) -> None:
        self._tell(connection, step, NOTICES.get(step.name, []), 'start')

    def ended(self, connection: sa.Connection, step: NotifiedStep, *, with_action: bool) -> None:
        """Tell about the end of a step, unless that is told with the end of the action, or (with_action) the latter."""
        notices = [each for each in reversed(NOTICES.get(step.name, [])) if each.with_action == with_action]
        self._tell(connection, step, notices, 'end')

    def failed(
        self, connection: sa.Connection, step: NotifiedStep, error: BaseException, *, with_action: bool = False
    ) -> None:
        """Tell that a step has failed, or (with_action) that the action has failed after it."""
        notices = [each for each in reversed(NOTICES.get(step.name, [])) if each.with_action or not with_action]
        self._tell(connection, step, notices, 'error', error)

    def happened(self, connection: sa.Connection, context: Context, server_id: str, event: str) -> None:
        """Tell about something that a request has done."""
        notices = [AT_ONCE[event]] if event in AT_ONCE else []
        self._tell(connection, NotifiedStep(event, self.host, server_id, context, {}), notices, None)

    def _tell(
        self,
        connection: sa.Connection,
        step: NotifiedStep,
        notices: list[Notice],
        phase: str | None,
        error: BaseException | None = None,
    ) -> None:
        subject = None
        for notice in notices:
            subject = subject or self._subject(connection, step, error)
            if subject is None:
                return
            for form, event_type, publisher_id, payload in self._forms(subject, notice, phase):
                rows.add(
                    connection,
                    self.most_waiting,
                    created_at=self.clock(),
                    format=form,
                    priority=INFO if error is None else ERROR,
                    publisher_id=publisher_id,
                    event_type=event_type,
                    context=_described(step.context),
                    payload=payload,
                )

    def _subject(self, connection: sa.Connection, step: NotifiedStep, error: BaseException | None) -> Subject | None:
        """The server as it is in this transaction; None if it is archived already."""
        needs = (servers.TAGS, servers.VOLUMES)
        server = servers.get(connection, step.server_id, needs=needs, deleted=True)
        if server is None:
            return None
        name, host = self.name_template % server.id, step.host or server.host or self.host
        flavor = _new_flavor(connection, step.arguments)
        return Subject(server, step.context, step.arguments, host, name, flavor, error)

    def _forms(
        self, subject: Subject, notice: Notice, phase: str | None
    ) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
        """Format, event type, publisher and payload."""
        if 'unversioned' in self.formats and notice.unversioned is not None:
            event_type = f'compute.instance.{notice.unversioned}.{phase}'
            yield 'unversioned', event_type, f'compute.{subject.host}', unversioned.payload(subject, event_type)
        if 'versioned' in self.formats:
            event_type = f'instance.{notice.action}.{phase}' if phase else f'instance.{notice.action}'
            source = 'nova-compute' if phase else 'nova-api'
            yield (
                'versioned',
                event_type,
                f'{source}:{subject.host}',
                versioned.payload(subject, notice.payload, disks=self.tells_disks),
            )


def notifications_of(conf: cfg.ConfigOpts, clock: Callable[[], datetime]) -> ServerNotifications | None:
    """None if they are off."""
    return ServerNotifications(conf, clock) if are_on(conf) else None


def are_on(conf: cfg.ConfigOpts) -> bool:
    return bool(conf.notifications.notification_format != 'none')


def _new_flavor(connection: sa.Connection, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """The flavor of the migration that the task is about, if any."""
    migration = arguments.get('migration_id') and server_migrations.get(connection, arguments['migration_id'])
    return migration.new_flavor if migration else None


def _described(context: Context) -> dict[str, Any]:
    return {name: getattr(context, name) for name in CALLER} | {'roles': sorted(context.roles)}


class ActionNotices:
    """The notifications about one action, as a task performs it; False, and without effect, if notifications are off.

    The end of a step that ends the whole action is told in the transaction with the outcome of the action.
    """

    def __init__(
        self, notifications: ServerNotifications | None, server_id: str, context: Context, arguments: Mapping[str, Any]
    ):
        self.notifications, self.server_id, self.context, self.arguments = notifications, server_id, context, arguments
        # The steps whose end, or that of the action with them, has not been told.
        self.untold: dict[str, NotifiedStep] = {}

    def __bool__(self) -> bool:
        return self.notifications is not None

    def begun(self, connection: sa.Connection, name: str, host: str | None, *, new: bool) -> None:
        """new: whether the step has not begun in an earlier attempt."""
        if self.notifications is None:
            return
        step = self.untold[name] = NotifiedStep(name, host, self.server_id, self.context, self.arguments)
        if new:
            self.notifications.begun(connection, step)

    def ended(self, connection: sa.Connection, name: str) -> None:
        if self.notifications is not None:
            self.notifications.ended(connection, self.untold[name], with_action=False)

    def failed(self, connection: sa.Connection, name: str, error: BaseException) -> None:
        if self.notifications is not None:
            self.notifications.failed(connection, self.untold.pop(name), error)

    def all_ended(self, connection: sa.Connection) -> None:
        """The action has ended; called in its last transaction."""
        if self.notifications is not None:
            for step in reversed(self.untold.values()):
                self.notifications.ended(connection, step, with_action=True)

    def all_failed(self, connection: sa.Connection, error: BaseException) -> None:
        """The action has failed after these steps."""
        if self.notifications is not None:
            for step in reversed(self.untold.values()):
                self.notifications.failed(connection, step, error, with_action=True)
