"""/servers/{server_id}/os-instance-actions: the history of a server: what was done, by whom, and the results."""

from typing import Any, NamedTuple

from computeapi.api import pages
from computeapi.api.servers.controller import ServerController
from computeapi.api.servers.readers import host_id_of
from computeapi.api.types import DATETIME, LINKS, NULLABLE_STRING, STRING, UUID, exact_date, parts
from computeapi.db.actions import ServerAction, ServerActionEvent
from computeapi.db.servers import Server
from computeapi.versions import added, changed
from computeapi.web.contract import ADMIN, READER_OR_ADMIN, Field, Policy, View, attr
from computeapi.web.controller import operation
from computeapi.web.paging import period_of
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, query

LIST = Policy('os_compute_api:os-instance-actions:list', READER_OR_ADMIN, 'List the actions on a server')
SHOW = Policy('os_compute_api:os-instance-actions:show', READER_OR_ADMIN, 'Show an action on a server')
EVENTS = Policy(
    'os_compute_api:os-instance-actions:events',
    ADMIN,
    'Show the hosts and tracebacks of events; below 2.51, the events',
)
DETAILS = Policy('os_compute_api:os-instance-actions:events:details', ADMIN, 'Show why an event failed')

PAGED, WITH_HOST = '2.58', '2.62'
DELETED_TOO = {'deleted': added('2.21', True)}

# ------------------------------------------------------------------ requests

LIST_QUERY = query(
    pages.parameters(PAGED) | {'changes-since': added(PAGED, DATETIME), 'changes-before': added('2.66', DATETIME)},
    strict=PAGED,
    single=True,
)

# ------------------------------------------------------------------ views


class Step(NamedTuple):
    """An event, with its server."""

    event: ServerActionEvent
    server: Server


class Account(NamedTuple):
    """An action, with its events."""

    action: ServerAction
    steps: list[Step]


EVENT = View(
    {
        'event': Field(STRING, attr('event.event')),
        'start_time': exact_date('event.start_time', DATETIME),
        'finish_time': exact_date('event.finish_time', NULLABLE_STRING),
        'result': Field(NULLABLE_STRING, attr('event.result')),
        'traceback': Field(NULLABLE_STRING, attr('event.traceback'), policy=EVENTS),
        'hostId': added(WITH_HOST, Field(STRING, lambda step: host_id_of(step.server.project_id, step.event.host))),
        'host': added(WITH_HOST, Field(NULLABLE_STRING, attr('event.host'), policy=EVENTS)),
        'details': added('2.84', Field(NULLABLE_STRING, attr('event.details'), policy=DETAILS)),
    }
)
STEPS = parts(EVENT, 'steps')
ACTION = View(
    {
        'action': Field(STRING, attr('action.action')),
        'instance_uuid': Field(UUID, attr('action.server_id')),
        'message': Field(NULLABLE_STRING, attr('action.message')),
        'project_id': Field(NULLABLE_STRING, attr('action.project_id')),
        'request_id': Field(STRING, attr('action.request_id')),
        'start_time': exact_date('action.start_time', DATETIME),
        'updated_at': added(PAGED, exact_date('action.updated_at', DATETIME)),
        'user_id': Field(NULLABLE_STRING, attr('action.user_id')),
        'events': changed(
            {
                '2.1': STEPS._replace(policy=EVENTS),
                '2.51': STEPS,
            }
        ),
    }
)
SUMMARY = ACTION.without('events')


class InstanceActions(ServerController):
    """The actions on a server, with their events."""

    path = '/servers/{server_id}/os-instance-actions'

    def find(self, req: Request, identifier: str) -> Server:
        return self.cloud.servers.get(req.context, identifier, deleted=bool(req.behaviour.deleted))

    @operation(
        'GET',
        policy=LIST,
        query=LIST_QUERY,
        response=closed({'instanceActions': array(SUMMARY), 'links': added(PAGED, LINKS)}, ['instanceActions']),
        behaviour=DELETED_TOO,
    )
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """List the actions on a server, newest first."""
        page = pages.requested_page(req, self.cloud.max_limit)
        since, before = period_of(req)
        found = self.cloud.actions.list(server, page, since=since, before=before)
        shown = SUMMARY.render_all(req, [Account(action, []) for action in found])
        return pages.page_response(
            req, 'instanceActions', shown, page.limit, marker='request_id', links='links', server_id=server.uuid
        )

    @operation(
        'GET', '/{id}', policy=SHOW, also=(EVENTS, DETAILS), response={'instanceAction': ACTION}, behaviour=DELETED_TOO
    )
    def show(self, req: Request, server: Server, id: str) -> dict[str, Any]:
        """Show an action on a server and its events."""
        action, events = self.cloud.actions.get(server, id)
        account = Account(action, [Step(event, server) for event in events])
        return {'instanceAction': ACTION.render(req, account)}
