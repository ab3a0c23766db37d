"""/servers/{server_id}/os-instance-actions: what was done to a server, by whom, and how it went."""

from typing import NamedTuple

from computeapi.api.servers.readers import host_id_of
from computeapi.api.servers.subject import ServerController
from computeapi.api.types import DATETIME, LIMIT, LINKS, MARKER, NULLABLE_STRING, STRING, UUID, bare
from computeapi.db.actions import ServerAction, ServerActionEvent
from computeapi.db.servers import Server
from computeapi.versions import APIVersionRequest, added, changed
from computeapi.web.contract import ADMIN, READER_OR_ADMIN, Field, Policy, View, attr, closed, query
from computeapi.web.controller import operation
from computeapi.web.paging import limit_of, next_link, period_of

# ------------------------------------------------------------------ policies

LIST = Policy('os_compute_api:os-instance-actions:list', READER_OR_ADMIN, 'List the actions on a server')
SHOW = Policy('os_compute_api:os-instance-actions:show', READER_OR_ADMIN, 'Show an action on a server')
EVENTS = Policy(
    'os_compute_api:os-instance-actions:events', ADMIN, 'See the hosts and tracebacks of events; below 2.51, the events'
)
DETAILS = Policy('os_compute_api:os-instance-actions:events:details', ADMIN, 'See why an event failed')

DELETED_TOO = APIVersionRequest.parse('2.21')
PAGED = APIVersionRequest.parse('2.58')

# ------------------------------------------------------------------ requests

MOMENT = {'type': 'string', 'format': 'date-time'}
LIST_QUERY = query(
    {
        'limit': added('2.58', LIMIT),
        'marker': added('2.58', MARKER),
        'changes-since': added('2.58', MOMENT),
        'changes-before': added('2.66', MOMENT),
    },
    strict='2.58',
    single=True,
)

# ------------------------------------------------------------------ views


class Step(NamedTuple):
    """An event, with the server that it happened to."""

    event: ServerActionEvent
    server: Server


class Account(NamedTuple):
    """An action, with its steps."""

    action: ServerAction
    steps: list[Step]


def moment(get) -> Field:
    return Field(DATETIME, lambda model: bare(get(model)))


EVENT = View(
    {
        'event': Field(STRING, attr('event.event')),
        'start_time': moment(attr('event.start_time')),
        'finish_time': Field({'type': ['string', 'null']}, lambda step: bare(step.event.finish_time)),
        'result': Field(NULLABLE_STRING, attr('event.result')),
        'traceback': Field(NULLABLE_STRING, attr('event.traceback'), policy=EVENTS),
        'hostId': added('2.62', Field(STRING, lambda step: host_id_of(step.server.project_id, step.event.host))),
        'host': added('2.62', Field(NULLABLE_STRING, attr('event.host'), policy=EVENTS)),
        'details': added('2.84', Field(NULLABLE_STRING, attr('event.details'), policy=DETAILS)),
    }
)
STEPS = {'type': 'array', 'items': EVENT}


def steps(account: Account, req) -> list[dict]:
    return EVENT.render_all(req, account.steps)


ACTION = View(
    {
        'action': Field(STRING, attr('action.action')),
        'instance_uuid': Field(UUID, attr('action.server_id')),
        'message': Field(NULLABLE_STRING, attr('action.message')),
        'project_id': Field(NULLABLE_STRING, attr('action.project_id')),
        'request_id': Field(STRING, attr('action.request_id')),
        'start_time': moment(attr('action.start_time')),
        'updated_at': added('2.58', moment(attr('action.updated_at'))),
        'user_id': Field(NULLABLE_STRING, attr('action.user_id')),
        'events': changed(
            {
                '2.1': Field(STEPS, steps, policy=EVENTS, request=True),
                '2.51': Field(STEPS, steps, request=True),
            }
        ),
    }
)
SUMMARY = ACTION.without('events')

# ------------------------------------------------------------------ controller


class InstanceActions(ServerController):
    """What was done to a server."""

    path = '/servers/{server_id}/os-instance-actions'

    def find(self, req, identifier):
        return self.cloud.servers.get(req.context, identifier, deleted=req.version >= DELETED_TOO)

    @operation(
        'GET',
        policy=LIST,
        query=LIST_QUERY,
        response=closed(
            {'instanceActions': {'type': 'array', 'items': SUMMARY}, 'links': added('2.58', LINKS)}, ['instanceActions']
        ),
        errors=(400, 404),
    )
    def index(self, req, server):
        """List the actions on a server, the newest first."""
        limit = limit_of(req, self.cloud.max_limit) if req.version >= PAGED else None
        since, before = period_of(req)
        found = self.cloud.actions.list(server, limit, req.parameter('marker'), since=since, before=before)
        body = {'instanceActions': SUMMARY.render_all(req, [Account(action, []) for action in found])}
        last = found[-1].request_id if found else ''
        link = next_link(req, f'servers/{server.uuid}/os-instance-actions', found, limit, last)
        return body | ({'links': link} if link else {})

    @operation('GET', '/{id}', policy=SHOW, also=(EVENTS, DETAILS), response={'instanceAction': ACTION}, errors=(404,))
    def show(self, req, server, id):
        """Show an action on a server and its events."""
        action, events = self.cloud.actions.get(server, id)
        account = Account(action, [Step(event, server) for event in events])
        return {'instanceAction': ACTION.render(req, account)}
