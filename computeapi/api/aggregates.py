"""/os-aggregates: host aggregates."""

import functools
from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.servers.schemas import metadata_of
from computeapi.api.types import (
    BARE_NAME,
    DATETIME,
    HOST,
    INTEGER,
    NAME,
    NOTHING,
    NULLABLE_STRING,
    SPACED_NAME,
    STRING,
    TEXTS,
    UUID,
    check_integer_id,
    exact_date,
)
from computeapi.db.aggregates import Aggregate
from computeapi.db.listing import MAX_DIGITS
from computeapi.errors import AggregateNotFound, Invalid
from computeapi.versions import added, changed
from computeapi.web.contract import ADMIN, Field, Policy, View, attr
from computeapi.web.controller import action, api_version, operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, lone

policy = functools.partial(Policy, default=ADMIN)
INDEX = policy('os_compute_api:os-aggregates:index', description='List the aggregates')
CREATE = policy('os_compute_api:os-aggregates:create', description='Create an aggregate')
SHOW = policy('os_compute_api:os-aggregates:show', description='Show an aggregate')
UPDATE = policy('os_compute_api:os-aggregates:update', description='Rename an aggregate or change its zone')
DELETE = policy('os_compute_api:os-aggregates:delete', description='Delete an aggregate')
ADD_HOST = policy('os_compute_api:os-aggregates:add_host', description='Add a host to an aggregate')
REMOVE_HOST = policy('os_compute_api:os-aggregates:remove_host', description='Remove a host from an aggregate')
SET_METADATA = policy('os_compute_api:os-aggregates:set_metadata', description='Change the metadata of an aggregate')
IMAGES = policy('compute:aggregates:images', description='Pre-cache images on the hosts of an aggregate')

# ------------------------------------------------------------------ requests

NO_COLON = {'pattern': '^[^:]*$'}
ZONE_NAME = changed({'2.0': SPACED_NAME | NO_COLON, '2.1': BARE_NAME | NO_COLON})
ZONE = {'oneOf': [ZONE_NAME, NOTHING]}
CREATE_BODY = lone('aggregate', closed({'name': NAME, 'availability_zone': ZONE}, ['name']))
CHANGES = {'name': SPACED_NAME, 'availability_zone': ZONE}
UPDATE_BODY = lone('aggregate', closed(CHANGES) | {'anyOf': [{'required': [name]} for name in CHANGES]})
HOST_BODY = lone('host', HOST)
METADATA = metadata_of(NULLABLE_STRING | {'maxLength': 255})
IMAGES_BODY = lone('cache', array(lone('id', UUID)) | {'minItems': 1})

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
change = functools.partial(action, response=ONE, status=200, errors=(409,))
"""An action that returns the changed aggregate."""


class Aggregates(ComputeController):
    """Host aggregates: groups of hosts with common metadata."""

    path = '/os-aggregates'

    @operation('GET', policy=INDEX, response={'aggregates': array(AGGREGATE)})
    def index(self, req: Request) -> dict[str, Any]:
        """List the aggregates."""
        return {'aggregates': AGGREGATE.render_all(req, self.cloud.aggregates.all())}

    @operation('POST', policy=CREATE, body=CREATE_BODY, response={'aggregate': CREATED}, errors=(409,))
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Create an aggregate."""
        wanted = body['aggregate']
        zone = wanted.get('availability_zone')
        made = self.cloud.aggregates.create(req.context, wanted['name'].strip(), zone and zone.strip())
        return {'aggregate': CREATED.render(req, made)}

    @operation('GET', '/{id}', policy=SHOW, response=ONE)
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show an aggregate."""
        return self.answer(req, self.cloud.aggregates.get(aggregate_id(id)))

    @operation('PUT', '/{id}', policy=UPDATE, body=UPDATE_BODY, response=ONE, errors=(409,))
    def update(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Rename an aggregate or change its zone."""
        changes = dict(body['aggregate'])
        if 'name' in changes:
            changes['name'] = changes['name'].strip()
        return self.answer(req, self.cloud.aggregates.update(req.context, aggregate_id(id), changes))

    @operation('DELETE', '/{id}', policy=DELETE)
    def delete(self, req: Request, id: str) -> None:
        """Delete an aggregate that has no hosts."""
        self.cloud.aggregates.delete(req.context, aggregate_id(id))

    @change('add_host', policy=ADD_HOST, takes=HOST_BODY)
    def add_host(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Add a host to an aggregate."""
        return self.answer(req, self.cloud.aggregates.add_host(req.context, aggregate_id(id), body['add_host']['host']))

    @change('remove_host', policy=REMOVE_HOST, takes=HOST_BODY)
    def remove_host(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Remove a host from an aggregate."""
        return self.answer(
            req, self.cloud.aggregates.remove_host(req.context, aggregate_id(id), body['remove_host']['host'])
        )

    @change('set_metadata', policy=SET_METADATA, takes=lone('metadata', METADATA))
    def set_metadata(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Set metadata keys of an aggregate, or remove them."""
        return self.answer(
            req, self.cloud.aggregates.set_metadata(req.context, aggregate_id(id), body['set_metadata']['metadata'])
        )

    @operation('POST', '/{id}/images', policy=IMAGES, body=IMAGES_BODY, status=202)
    @api_version('2.81')
    def images(self, req: Request, id: str, body: Any) -> None:
        """Pre-cache images on the hosts of an aggregate."""
        found = aggregate_id(id)
        image_ids = [image['id'] for image in body['cache']]
        if len(set(image_ids)) != len(image_ids):
            raise Invalid('Duplicate images in request')
        self.cloud.aggregates.cache_images(req.context, found, image_ids)

    def answer(self, req: Request, aggregate: Aggregate) -> dict[str, Any]:
        return {'aggregate': AGGREGATE.render(req, aggregate)}


def aggregate_id(text: str) -> int:
    """The ID in a path; AggregateNotFound for one that is too long for a database."""
    check_integer_id(text)
    if len(text) > MAX_DIGITS:
        raise AggregateNotFound(id=text)
    return int(text)
