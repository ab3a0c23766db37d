"""/os-aggregates: groups of hosts that an administrator makes."""

import functools
from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.types import (
    DATETIME,
    HOST,
    INTEGER,
    NAME,
    NONEMPTY,
    NOTHING,
    NULLABLE_STRING,
    SPACED_NAME,
    STRING,
    TEXTS,
    UUID,
    exact_date,
    integer_id,
)
from computeapi.db.aggregates import Aggregate
from computeapi.errors import Invalid
from computeapi.versions import added
from computeapi.web.contract import ADMIN, Field, Policy, View, array, attr, closed, lone
from computeapi.web.controller import action, api_version, operation
from computeapi.web.request import Request

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

ZONE_NAME = NONEMPTY | {'pattern': '^[^:]*$'}
ZONE = {'oneOf': [ZONE_NAME, NOTHING]}
CREATE_BODY = closed({'aggregate': closed({'name': NAME, 'availability_zone': ZONE}, ['name'])}, ['aggregate'])
UPDATE_BODY = closed(
    # A new name may come with spaces around it at every version.
    {'aggregate': closed({'name': SPACED_NAME, 'availability_zone': ZONE}) | {'minProperties': 1}},
    ['aggregate'],
)
HOST_BODY = closed({'host': HOST}, ['host'])
METADATA = {
    'type': 'object',
    'patternProperties': {'^[^\x00-\x1f\x7f]{1,255}$': NULLABLE_STRING | {'maxLength': 255}},
    'additionalProperties': False,
}
IMAGES_BODY = closed({'cache': array(closed({'id': UUID}, ['id'])) | {'minItems': 1}}, ['cache'])

# ------------------------------------------------------------------ views

BRIEF = {
    'id': Field(INTEGER, attr('id')),
    'uuid': added('2.41', Field(UUID, attr('uuid'))),
    'name': Field(STRING, attr('name')),
    'availability_zone': Field(NULLABLE_STRING, attr('availability_zone')),
    'created_at': exact_date('created_at', DATETIME),
    'updated_at': exact_date('updated_at'),
    'deleted': Field({'const': False}, lambda aggregate: False),
    'deleted_at': Field(NOTHING, lambda aggregate: None),
}
CREATED = View(BRIEF)
AGGREGATE = View(
    BRIEF
    | {
        'hosts': Field(array(STRING), attr('hosts')),
        'metadata': Field(TEXTS, attr('metadata')),
    }
)
ONE = {'aggregate': AGGREGATE}

# ------------------------------------------------------------------ controller


class Aggregates(ComputeController):
    """Groups of hosts that an administrator makes."""

    path = '/os-aggregates'

    @operation('GET', policy=INDEX, response={'aggregates': array(AGGREGATE)})
    def index(self, req: Request) -> dict[str, Any]:
        """List the aggregates."""
        return {'aggregates': AGGREGATE.render_all(req, self.cloud.aggregates.all())}

    @operation('POST', policy=CREATE, body=CREATE_BODY, response={'aggregate': CREATED}, errors=(409,))
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Create an aggregate."""
        wanted = body['aggregate']
        made = self.cloud.aggregates.create(wanted['name'].strip(), wanted.get('availability_zone'))
        return {'aggregate': CREATED.render(req, made)}

    @operation('GET', '/{id}', policy=SHOW, response=ONE, errors=(404,))
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show an aggregate."""
        return self.answer(req, self.cloud.aggregates.get(integer_id(id)))

    @operation('PUT', '/{id}', policy=UPDATE, body=UPDATE_BODY, response=ONE, errors=(404, 409))
    def update(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Rename an aggregate or change its zone."""
        changes = dict(body['aggregate'])
        if 'name' in changes:
            changes['name'] = changes['name'].strip()
        return self.answer(req, self.cloud.aggregates.update(integer_id(id), changes))

    @operation('DELETE', '/{id}', policy=DELETE, errors=(404,))
    def delete(self, req: Request, id: str) -> None:
        """Delete an aggregate that has no hosts."""
        self.cloud.aggregates.delete(integer_id(id))

    @action('add_host', policy=ADD_HOST, body=lone('add_host', HOST_BODY), response=ONE, status=200, errors=(404, 409))
    def add_host(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Add a host to an aggregate."""
        return self.answer(req, self.cloud.aggregates.add_host(integer_id(id), body['add_host']['host']))

    @action(
        'remove_host',
        policy=REMOVE_HOST,
        body=lone('remove_host', HOST_BODY),
        response=ONE,
        status=200,
        errors=(404, 409),
    )
    def remove_host(self, req: Request, id: str, body: Any) -> dict[str, Any]:
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
    def set_metadata(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Add to the metadata of an aggregate, or take keys away."""
        return self.answer(req, self.cloud.aggregates.set_metadata(integer_id(id), body['set_metadata']['metadata']))

    @operation('POST', '/{id}/images', policy=IMAGES, body=IMAGES_BODY, status=202, errors=(404,))
    @api_version('2.81')
    def images(self, req: Request, id: str, body: Any) -> None:
        """Have images ready on the hosts of an aggregate."""
        aggregate_id = integer_id(id)
        image_ids = [image['id'] for image in body['cache']]
        if len(set(image_ids)) != len(image_ids):
            raise Invalid('Duplicate images in request')
        self.cloud.aggregates.cache_images(req.context, aggregate_id, image_ids)

    def answer(self, req: Request, aggregate: Aggregate) -> dict[str, Any]:
        return {'aggregate': AGGREGATE.render(req, aggregate)}
