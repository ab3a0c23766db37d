"""The history of servers, as rows: the requested actions, and the events of each."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.context import Context
from computeapi.db import listing
from computeapi.db.listing import Page
from computeapi.db.records import Rows, insertion
from computeapi.db.tables.servers import ServerAction, ServerActionEvent
from computeapi.db.tables.servers import server_action_events as events
from computeapi.db.tables.servers import server_actions as actions

__all__ = ['ServerAction', 'ServerActionEvent']

FAILED = 'Error'
ACTIONS, EVENTS = Rows(ServerAction, actions), Rows(ServerActionEvent, events)
NUMBERS = sa.select(actions.c.server_id, actions.c.id).where(
    actions.c.server_id.in_(sa.bindparam('servers', expanding=True))
)
ACTION: sa.BindParameter[Any] = sa.bindparam('its_action')
OF_SERVER = ACTIONS.select.where(actions.c.server_id == sa.bindparam('its_server'))
NEWEST_FIRST = ((actions.c.id, True),)
EVENTS_OF = EVENTS.select.where(events.c.action_id == ACTION).order_by(events.c.id.desc())
LEFT = sa.update(events).where(events.c.action_id == ACTION, events.c.finish_time.is_(None))
HOST = sa.bindparam('its_host', type_=events.c.host.type)
LEFT_THERE = LEFT.values(host=sa.case((events.c.id == sa.bindparam('its_event'), HOST), else_=events.c.host))
SAME = EVENTS.select.where(
    events.c.action_id == ACTION,
    events.c.event == sa.bindparam('its_event'),
    sa.func.coalesce(events.c.result, '') != FAILED,
)


class StartedEvent(NamedTuple):
    """An event that begins, or that goes on because it had begun before; then it may even have finished."""

    id: int
    is_new: bool = False
    is_over: bool = False


def start(connection: sa.Connection, context: Context, server_id: str, action: str, now: datetime) -> int:
    """Record that the caller asked for *action*; returns the ID of the record.

    One request may do several things to a server; only the first is recorded as an action.
    """
    request_id = context.request_id or f'task-{now.timestamp()}'
    if found := by_request(connection, server_id, request_id):
        return found.id
    return ACTIONS.add(connection, server_id=server_id, **_beginning(context, request_id, action, now))


def start_all(
    connection: sa.Connection, context: Context, server_ids: Sequence[str], action: str, now: datetime
) -> dict[str, int]:
    """The same for new servers, on which the caller has no action yet; returns the IDs by server."""
    facts = _beginning(context, context.request_id or f'task-{now.timestamp()}', action, now)
    if len(server_ids) == 1:
        return {server_ids[0]: ACTIONS.add(connection, server_id=server_ids[0], **facts)}
    connection.execute(insertion(actions), [{'server_id': server_id, **facts} for server_id in server_ids])
    # MySQL does not return the IDs of several inserted rows.
    return dict(connection.execute(NUMBERS, {'servers': list(server_ids)}).all())


def _beginning(context: Context, request_id: str, action: str, now: datetime) -> dict[str, Any]:
    who = {'user_id': context.user_id, 'project_id': context.project_id}
    return {'action': action, 'request_id': request_id, **who, 'start_time': now, 'updated_at': now}


def finish(
    connection: sa.Connection,
    action_id: int,
    now: datetime,
    message: str | None = None,
    *,
    where: tuple[int, str | None] | None = None,
) -> None:
    """A message (Error) means that the action has failed. Events that are still open, e.g. because a worker died, end
    too.

    where: the ID of an event and the host where it happened, if that is known only now."""
    values = {'finish_time': now, 'updated_at': now} | ({} if message is None else {'message': message})
    result = {'finish_time': now, 'result': message or 'Success', 'its_action': action_id}
    event_id, host = where or (None, None)
    if host is None:
        connection.execute(LEFT, result)
    else:
        connection.execute(LEFT_THERE, {**result, 'its_event': event_id, 'its_host': host})
    ACTIONS.update(connection, values, id=action_id)


def start_event(
    connection: sa.Connection, action_id: int, event: str, host: str | None, now: datetime, *, new: bool = False
) -> StartedEvent:
    """An event that was begun before a worker died or had to wait is continued. A retry after a failure is a new event.
    new: skip the look-up, because no event has that name."""
    if not new and (found := EVENTS.first(connection, SAME, {'its_action': action_id, 'its_event': event})):
        return StartedEvent(found.id, is_over=found.finish_time is not None)
    begun = {'action_id': action_id, 'event': event, 'host': host, 'start_time': now}
    ACTIONS.update(connection, {'updated_at': now}, id=action_id)
    return StartedEvent(EVENTS.add(connection, **begun), is_new=True)


def finish_event(
    connection: sa.Connection,
    event_id: int,
    now: datetime,
    *,
    result: str = 'Success',
    traceback: str | None = None,
    details: str | None = None,
    host: str | None = None,
) -> None:
    """host: where the event happened, if that was not known when it began."""
    values: dict[str, Any] = {'finish_time': now, 'result': result, 'traceback': traceback, 'details': details}
    if host is not None:
        values['host'] = host
    EVENTS.update(connection, values, id=event_id)


def page(
    connection: sa.Connection,
    server_id: str,
    page: Page,
    *,
    since: datetime | None = None,
    before: datetime | None = None,
) -> list[ServerAction]:
    """One page of a server's actions that were updated in a period, newest first.

    The marker is a request ID; Invalid for an unknown one.
    """
    if page.marker is None and since is None and before is None:
        parameters = {'its_server': server_id}
        return ACTIONS.all(connection, *listing.beginning(OF_SERVER, NEWEST_FIRST, page.limit, parameters))
    where = []
    if since is not None:
        where.append(actions.c.updated_at >= since)
    if before is not None:
        where.append(actions.c.updated_at <= before)
    statement = listing.paged(
        connection,
        OF_SERVER.params(its_server=server_id),
        NEWEST_FIRST,
        page,
        marked=[actions.c.request_id == page.marker],
        where=where,
        unknown='Marker {marker:.64} could not be found.',
    )
    return ACTIONS.all(connection, statement)


def by_request(connection: sa.Connection, server_id: str, request_id: str) -> ServerAction | None:
    return ACTIONS.find(connection, server_id=server_id, request_id=request_id)


def events_of(connection: sa.Connection, action_id: int) -> list[ServerActionEvent]:
    """The events of an action, newest first."""
    return EVENTS.all(connection, EVENTS_OF, {ACTION.key: action_id})
