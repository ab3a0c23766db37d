"""/os-services: the services of the cloud."""

from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.types import (
    BOOLEAN,
    HOST,
    INTEGER,
    LENIENT_BOOLEAN,
    NONEMPTY,
    NULLABLE_DATETIME,
    NULLABLE_STRING,
    STRING,
    UUID,
    bare,
    check_integer_id,
    uuid_id,
)
from computeapi.api.unreachable import BEHAVIOUR, STATUS, either, render_all
from computeapi.booleans import is_true
from computeapi.compute.services import ServiceStatus
from computeapi.errors import Invalid, NotFound
from computeapi.versions import added, changed
from computeapi.web.contract import ADMIN, Field, Policy, View, attr
from computeapi.web.controller import api_version, operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, one_of, query

LIST = Policy('os_compute_api:os-services:list', ADMIN, 'List the services')
UPDATE = Policy('os_compute_api:os-services:update', ADMIN, 'Disable or enable a service')
DELETE = Policy('os_compute_api:os-services:delete', ADMIN, 'Delete a service')

FORCED_DOWN, BY_UUID = '2.11', '2.53'

# ------------------------------------------------------------------ requests

LIST_QUERY = query({'host': STRING, 'binary': STRING}, strict='2.75')
NAMED = {'host': HOST, 'binary': NONEMPTY}
UPDATE_BODY = changed(
    {
        '2.1': closed(
            NAMED | {'disabled_reason': NONEMPTY, 'forced_down': added(FORCED_DOWN, LENIENT_BOOLEAN)},
            ['host', 'binary'],
        ),
        BY_UUID: closed(
            {
                'status': one_of('enabled', 'disabled'),
                'disabled_reason': NONEMPTY,
                'forced_down': LENIENT_BOOLEAN,
            }
        ),
    }
)
# The older format names an action in the path; the response shows the attributes that the action is about.
SHOWN_AFTER = {
    'enable': ('status',),
    'disable': ('status',),
    'disable-log-reason': ('status', 'disabled_reason'),
    'force-down': ('forced_down',),
}
ACTIONS = [added(FORCED_DOWN, name) if name == 'force-down' else name for name in SHOWN_AFTER]

# ------------------------------------------------------------------ views


def state(status: ServiceStatus) -> str:
    return 'disabled' if status.service.disabled else 'enabled'


COMMON_FIELDS = {
    'host': Field(STRING, attr('service.host')),
    'binary': Field(STRING, attr('service.binary')),
}
SERVICE = View(
    COMMON_FIELDS
    | {
        'id': changed({'2.1': Field(INTEGER, attr('service.id')), BY_UUID: Field(UUID, attr('service.uuid'))}),
        'status': Field(STRING, state),
        'state': Field(STRING, lambda status: 'up' if status.up else 'down'),
        'zone': Field(STRING, attr('zone')),
        'updated_at': Field(
            NULLABLE_DATETIME,
            lambda status: bare(max(filter(None, [status.service.updated_at, status.service.seen_at]), default=None)),
        ),
        'disabled_reason': Field(NULLABLE_STRING, attr('service.disabled_reason')),
        'forced_down': added(FORCED_DOWN, Field(BOOLEAN, attr('service.forced_down'))),
    }
)
CHANGED = View(
    COMMON_FIELDS
    | {
        'status': Field(STRING, state, optional=True),
        'disabled_reason': Field(NULLABLE_STRING, attr('service.disabled_reason'), optional=True),
        'forced_down': Field(BOOLEAN, attr('service.forced_down'), optional=True),
    }
)
UNREACHABLE = View(COMMON_FIELDS | {'status': STATUS})
UPDATED = {'service': changed({'2.1': CHANGED, BY_UUID: SERVICE})}


class Services(ComputeController):
    """The compute services."""

    path = '/os-services'

    @operation(
        'GET',
        policy=LIST,
        query=LIST_QUERY,
        response={'services': array(either(SERVICE, UNREACHABLE))},
        behaviour=BEHAVIOUR,
    )
    def index(self, req: Request) -> dict[str, Any]:
        """List the services."""
        unreachable = bool(req.behaviour.unreachable)
        found = self.cloud.services.list(req.parameter('host'), req.parameter('binary'), unreachable=unreachable)
        return {'services': render_all(req, SERVICE, UNREACHABLE, found)}

    @operation(
        'PUT',
        '/{id}',
        policy=None,
        also=(UPDATE,),
        body=UPDATE_BODY,
        response=UPDATED,
        errors=(403,),
        behaviour={'actions': ACTIONS},
    )
    def update(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Disable or enable a service, by an action on its host and binary."""
        req.check(UPDATE)
        if id not in req.behaviour.actions:
            raise NotFound('Unknown action')
        check_action(id, body)
        shown = CHANGED.render(req, self.act(req, id, body))
        return {'service': {name: shown[name] for name in ('host', 'binary', *SHOWN_AFTER[id])}}

    def act(self, req: Request, action: str, body: Any) -> ServiceStatus:
        service = self.cloud.services.find(host=body['host'], binary=body['binary']).service
        if action == 'enable':
            return self.cloud.services.enable(req.context, service)
        if action == 'force-down':
            return self.cloud.services.force_down(req.context, service, is_true(body['forced_down']))
        reason = body['disabled_reason'] if action == 'disable-log-reason' else None
        return self.cloud.services.disable(req.context, service, reason)

    @api_version(BY_UUID)
    def update(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Disable or enable a service, or force it down, by its UUID."""
        # A malformed UUID is refused before the caller's rights are checked.
        uuid_id(id)
        req.check(UPDATE)
        status = self.cloud.services.get(id)
        wanted = body.get('status')
        if wanted == 'enabled' and 'disabled_reason' in body:
            raise Invalid("Specifying 'disabled_reason' with status 'enabled' is invalid.")
        if wanted is None and 'forced_down' not in body:
            raise Invalid("No updates were requested. Fields 'status' or 'forced_down' should be specified.")
        # The change that may be refused comes first, so that nothing is changed in that case.
        if 'forced_down' in body:
            status = self.cloud.services.force_down(req.context, status.service, is_true(body['forced_down']))
        if wanted == 'enabled':
            status = self.cloud.services.enable(req.context, status.service)
        elif wanted == 'disabled':
            status = self.cloud.services.disable(req.context, status.service, body.get('disabled_reason'))
        return {'service': SERVICE.render(req, status)}

    @operation('DELETE', '/{id}', policy=DELETE, status=204, errors=(409,))
    def delete(self, req: Request, id: str) -> None:
        """Delete a service that is no longer used, by its number."""
        check_integer_id(id)
        self.cloud.services.delete(req.context, id)

    @api_version(BY_UUID)
    def delete(self, req: Request, id: str) -> None:
        """Delete a service that is no longer used, by its UUID."""
        self.cloud.services.delete(req.context, uuid_id(id))


def check_action(action: str, body: Any) -> None:
    """Invalid if the body lacks what the action needs."""
    if action == 'disable-log-reason' and not body.get('disabled_reason'):
        raise Invalid('Missing disabled reason field')
    if action == 'force-down' and 'forced_down' not in body:
        raise Invalid('Missing forced_down field')
