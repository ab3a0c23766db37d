"""/os-services: the services that make up the cloud."""

from computeapi.api.controller import ComputeController
from computeapi.api.types import (
    BOOLEAN,
    INTEGER,
    NULLABLE_DATETIME,
    NULLABLE_STRING,
    SPOKEN_BOOLEAN,
    STRING,
    UUID,
    bare,
    integer_id,
    spoken,
)
from computeapi.errors import Invalid, NotFound
from computeapi.versions import APIVersionRequest, added, changed
from computeapi.web.contract import ADMIN, Field, Policy, View, closed, query
from computeapi.web.controller import operation
from computeapi.web.formats import uuid_like

# ------------------------------------------------------------------ policies

LIST = Policy('os_compute_api:os-services:list', ADMIN, 'List the services')
UPDATE = Policy('os_compute_api:os-services:update', ADMIN, 'Take a service out of use, or back')
DELETE = Policy('os_compute_api:os-services:delete', ADMIN, 'Forget a service')

FORCED_DOWN = APIVersionRequest.parse('2.11')
BY_UUID = APIVersionRequest.parse('2.53')

# ------------------------------------------------------------------ requests

LIST_QUERY = query({'host': STRING, 'binary': STRING}, strict='2.75')
HOST = {'type': 'string', 'minLength': 1, 'maxLength': 255, 'pattern': '^[a-zA-Z0-9-._]*$'}
REASON = {'type': 'string', 'minLength': 1, 'maxLength': 255}
NAMED = {'host': HOST, 'binary': {'type': 'string', 'minLength': 1, 'maxLength': 255}}
UPDATE_BODY = changed(
    {
        '2.1': closed(
            NAMED | {'disabled_reason': REASON, 'forced_down': added('2.11', SPOKEN_BOOLEAN)}, ['host', 'binary']
        ),
        '2.53': closed(
            {
                'status': {'type': 'string', 'enum': ['enabled', 'disabled']},
                'disabled_reason': REASON,
                'forced_down': SPOKEN_BOOLEAN,
            }
        ),
    }
)

# ------------------------------------------------------------------ views


def of(name):
    return lambda status: getattr(status.service, name)


def state(status):
    return 'disabled' if status.service.disabled else 'enabled'


SHARED = {
    'host': Field(STRING, of('host')),
    'binary': Field(STRING, of('binary')),
}
SERVICE = View(
    SHARED
    | {
        'id': changed({'2.1': Field(INTEGER, of('id')), '2.53': Field(UUID, of('uuid'))}),
        'status': Field(STRING, state),
        'state': Field(STRING, lambda status: 'up' if status.up else 'down'),
        'zone': Field(STRING, lambda status: status.zone),
        'updated_at': Field(
            NULLABLE_DATETIME,
            lambda status: bare(max(filter(None, [status.service.updated_at, status.service.seen_at]), default=None)),
        ),
        'disabled_reason': Field(NULLABLE_STRING, of('disabled_reason')),
        'forced_down': added('2.11', Field(BOOLEAN, of('forced_down'))),
    }
)
CHANGED = View(
    SHARED
    | {
        'status': Field(STRING, state, optional=True),
        'disabled_reason': Field(NULLABLE_STRING, of('disabled_reason'), optional=True),
        'forced_down': Field(BOOLEAN, of('forced_down'), optional=True),
    }
)
UPDATED = changed({'2.1': closed({'service': CHANGED}, ['service']), '2.53': closed({'service': SERVICE}, ['service'])})

# ------------------------------------------------------------------ controller


class Services(ComputeController):
    """The services that make up the cloud."""

    path = '/os-services'

    @operation(
        'GET',
        policy=LIST,
        query=LIST_QUERY,
        response=closed({'services': {'type': 'array', 'items': SERVICE}}, ['services']),
    )
    def index(self, req):
        """List the services."""
        found = self.cloud.services.list(req.parameter('host'), req.parameter('binary'))
        return {'services': SERVICE.render_all(req, found)}

    @operation('PUT', '/{id}', policy=UPDATE, body=UPDATE_BODY, response=UPDATED, errors=(404,))
    def update(self, req, id, body):
        """Take a service out of use, or back: by its UUID, before 2.53 by an action on a host and a binary."""
        if req.version >= BY_UUID:
            return {'service': SERVICE.render(req, self.change(id, body))}
        shown = {'enable': ('status',), 'disable': ('status',), 'disable-log-reason': ('status', 'disabled_reason')}
        status = self.act(req, id, body)
        kept = {'host', 'binary', *shown.get(id, ('forced_down',))}
        return {'service': {key: value for key, value in CHANGED.render(req, status).items() if key in kept}}

    def act(self, req, name, body):
        """The older form."""
        if name not in ('enable', 'disable', 'disable-log-reason', 'force-down') or (
            name == 'force-down' and req.version < FORCED_DOWN
        ):
            raise NotFound('Unknown action')
        reason = body.get('disabled_reason')
        if name == 'disable-log-reason' and not reason:
            raise Invalid('Missing disabled reason field')
        if name == 'force-down' and 'forced_down' not in body:
            raise Invalid('Missing forced_down field')
        service = self.cloud.services.find(host=body['host'], binary=body['binary']).service
        if name == 'enable':
            return self.cloud.services.enable(service)
        if name == 'force-down':
            return self.cloud.services.force_down(service, spoken(body['forced_down']))
        return self.cloud.services.disable(service, reason if name == 'disable-log-reason' else None)

    def change(self, identifier, body):
        """The newer form: by UUID, several things at once."""
        if not uuid_like(identifier):
            raise Invalid(f'Invalid uuid {identifier}')
        status = self.cloud.services.get(identifier)
        wanted = body.get('status')
        if wanted == 'enabled' and 'disabled_reason' in body:
            raise Invalid("Specifying 'disabled_reason' with status 'enabled' is invalid.")
        if wanted is None and 'forced_down' not in body:
            raise Invalid("No updates were requested. Fields 'status' or 'forced_down' should be specified.")
        if wanted == 'enabled':
            status = self.cloud.services.enable(status.service)
        elif wanted == 'disabled':
            status = self.cloud.services.disable(status.service, body.get('disabled_reason'))
        if 'forced_down' in body:
            status = self.cloud.services.force_down(status.service, spoken(body['forced_down']))
        return status

    @operation('DELETE', '/{id}', policy=DELETE, status=204, errors=(404, 409))
    def delete(self, req, id):
        """Forget a service that is gone."""
        if req.version >= BY_UUID and not uuid_like(id):
            raise Invalid(f'Invalid uuid {id}')
        if req.version < BY_UUID:
            integer_id(id)
        self.cloud.services.delete(id)
