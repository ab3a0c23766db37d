"""/os-aggregates: groups of hosts that an administrator makes."""

import functools

from computeapi.api.controller import ComputeController
from computeapi.api.servers.actions import lone
from computeapi.api.types import (
    DATETIME,
    INTEGER,
    NAME,
    NULLABLE_DATETIME,
    NULLABLE_STRING,
    STRING,
    TEXTS,
    UUID,
    bare,
    integer_id,
)
from computeapi.errors import Invalid
from computeapi.versions import added
from computeapi.web.contract import ADMIN, Field, Policy, View, attr, closed
from computeapi.web.controller import action, api_version, operation

# ------------------------------------------------------------------ policies

policy = functools.partial(Policy, default=ADMIN)
INDEX = policy('os_compute_api:os-aggregates:index', description='List the aggregates')
CREATE = policy('os_compute_api:os-aggregates:create', description='Create an aggregate')
SHOW = policy('os_compute_api:os-aggregates:show', description='Show an aggregate')
UPDATE = policy('os_compute_api:os-aggregates:update', description='Rename an aggregate or change its zone')
DELETE = policy('os_compute_api:os-aggregates:delete', description='Delete an aggregate')
ADD_HOST = policy('os_compute_api:os-aggregates:add_host', description='Add a host to an aggregate')
REMOVE_HOST = policy('os_compute_api:os-aggregates:remove_host', description='Remove a host from an aggregate')
SET_METADATA = policy('os_compute_api:os-aggregates:set_metadata', description='Change the metadata of an aggregate')
IMAGES = policy('compute:aggregates:images', description='Have images ready on the hosts of an aggregate')

# ------------------------------------------------------------------ requests

ZONE_NAME = {'type': 'string', 'minLength': 1, 'maxLength': 255, 'pattern': '^[^:]*$'}
ZONE = {'oneOf': [ZONE_NAME, {'type': 'null'}]}
# A new name may come with spaces around it at every version.
SPACED_NAME = {'type': 'string', 'format': 'name_with_leading_trailing_spaces', 'minLength': 1, 'maxLength': 255}
CREATE_BODY = closed({'aggregate': closed({'name': NAME, 'availability_zone': ZONE}, ['name'])}, ['aggregate'])
UPDATE_BODY = closed(
    {'aggregate': closed({'name': SPACED_NAME, 'availability_zone': ZONE}) | {'minProperties': 1}}, ['aggregate']
)
HOST = closed({'host': {'type': 'string', 'minLength': 1, 'maxLength': 255, 'pattern': '^[a-zA-Z0-9-._]*$'}}, ['host'])
METADATA = {
    'type': 'object',
    'patternProperties': {'^[^\x00-\x1f\x7f]{1,255}$': {'type': ['string', 'null'], 'maxLength': 255}},
    'additionalProperties': False,
}
IMAGES_BODY = closed({'cache': {'type': 'array', 'minItems': 1, 'items': closed({'id': UUID}, ['id'])}}, ['cache'])

# ------------------------------------------------------------------ views

BRIEF = {
    'id': Field(INTEGER, attr('id')),
    'uuid': added('2.41', Field(UUID, attr('uuid'))),
    'name': Field(STRING, attr('name')),
    'availability_zone': Field(NULLABLE_STRING, attr('availability_zone')),
    'created_at': Field(DATETIME, lambda aggregate: bare(aggregate.created_at)),
    'updated_at': Field(NULLABLE_DATETIME, lambda aggregate: bare(aggregate.updated_at)),
    'deleted': Field({'const': False}, lambda aggregate: False),
    'deleted_at': Field({'type': 'null'}, lambda aggregate: None),
}
CREATED = View(BRIEF)
AGGREGATE = View(
    BRIEF
    | {
        'hosts': Field({'type': 'array', 'items': STRING}, attr('hosts')),
        'metadata': Field(TEXTS, attr('metadata')),
    }
)
ONE = closed({'aggregate': AGGREGATE}, ['aggregate'])

# ------------------------------------------------------------------ controller


class Aggregates(ComputeController):
    """Groups of hosts that an administrator makes."""

    path = '/os-aggregates'

    @operation(
        'GET', policy=INDEX, response=closed({'aggregates': {'type': 'array', 'items': AGGREGATE}}, ['aggregates'])
    )
    def index(self, req):
        """List the aggregates."""
        return {'aggregates': AGGREGATE.render_all(req, self.cloud.aggregates.all())}

    @operation(
        'POST', policy=CREATE, body=CREATE_BODY, response=closed({'aggregate': CREATED}, ['aggregate']), errors=(409,)
    )
    def create(self, req, body):
        """Create an aggregate."""
        wanted = body['aggregate']
        made = self.cloud.aggregates.create(wanted['name'].strip(), wanted.get('availability_zone'))
        return {'aggregate': CREATED.render(req, made)}

    @operation('GET', '/{id}', policy=SHOW, response=ONE, errors=(404,))
    def show(self, req, id):
        """Show an aggregate."""
        return self.answer(req, self.cloud.aggregates.get(integer_id(id)))

    @operation('PUT', '/{id}', policy=UPDATE, body=UPDATE_BODY, response=ONE, errors=(404, 409))
    def update(self, req, id, body):
        """Rename an aggregate or change its zone."""
        changes = dict(body['aggregate'])
        if 'name' in changes:
            changes['name'] = changes['name'].strip()
        return self.answer(req, self.cloud.aggregates.update(integer_id(id), changes))

    @operation('DELETE', '/{id}', policy=DELETE, errors=(404,))
    def delete(self, req, id):
        """Delete an aggregate that has no hosts."""
        self.cloud.aggregates.delete(integer_id(id))

    @action('add_host', policy=ADD_HOST, body=lone('add_host', HOST), response=ONE, status=200, errors=(404, 409))
    def add_host(self, req, id, body):
        """Add a host to an aggregate."""
        return self.answer(req, self.cloud.aggregates.add_host(integer_id(id), body['add_host']['host']))

    @action(
        'remove_host', policy=REMOVE_HOST, body=lone('remove_host', HOST), response=ONE, status=200, errors=(404, 409)
    )
    def remove_host(self, req, id, body):
        """Remove a host from an aggregate."""
        return self.answer(req, self.cloud.aggregates.remove_host(integer_id(id), body['remove_host']['host']))

    @action(
        'set_metadata',
        policy=SET_METADATA,
        body=lone('set_metadata', closed({'metadata': METADATA}, ['metadata'])),
        response=ONE,
        status=200,
        errors=(404, 409),
    )
    def set_metadata(self, req, id, body):
        """Add to the metadata of an aggregate, or take keys away."""
        return self.answer(req, self.cloud.aggregates.set_metadata(integer_id(id), body['set_metadata']['metadata']))

    @operation('POST', '/{id}/images', policy=IMAGES, body=IMAGES_BODY, status=202, errors=(404,))
    @api_version('2.81')
    def images(self, req, id, body):
        """Have images ready on the hosts of an aggregate."""
        aggregate_id = integer_id(id)
        image_ids = [image['id'] for image in body['cache']]
        if len(set(image_ids)) != len(image_ids):
            raise Invalid('Duplicate images in request')
        self.cloud.aggregates.cache_images(req.context, aggregate_id, image_ids)

    def answer(self, req, aggregate):
        return {'aggregate': AGGREGATE.render(req, aggregate)}
