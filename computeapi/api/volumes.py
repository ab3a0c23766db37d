"""/os-volumes: volumes by way of the compute API, until 2.35; later clients ask the volume service."""

from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.types import (
    LIMIT,
    NULLABLE_DATETIME,
    NULLABLE_STRING,
    OBJECT,
    POSITIVE,
    STRING,
    bare,
)
from computeapi.web.contract import MEMBER_OR_ADMIN, READER_OR_ADMIN, Field, Policy, View, attr, closed, query
from computeapi.web.controller import api_version, operation
from computeapi.web.paging import window_of
from computeapi.web.request import Reply

# ------------------------------------------------------------------ policies

LIST = Policy('os_compute_api:os-volumes:list', READER_OR_ADMIN, 'List volumes')
DETAIL = Policy('os_compute_api:os-volumes:detail', READER_OR_ADMIN, 'List volumes with details')
SHOW = Policy('os_compute_api:os-volumes:show', READER_OR_ADMIN, 'Show a volume')
CREATE = Policy('os_compute_api:os-volumes:create', MEMBER_OR_ADMIN, 'Create a volume')
DELETE = Policy('os_compute_api:os-volumes:delete', MEMBER_OR_ADMIN, 'Delete a volume')

# ------------------------------------------------------------------ requests

TEXT = {'type': 'string', 'maxLength': 255}
VOLUME = closed(
    {
        'size': POSITIVE,
        'display_name': TEXT,
        'display_description': TEXT,
        'volume_type': TEXT,
        'availability_zone': TEXT,
        'snapshot_id': TEXT,
        'metadata': {'type': 'object', 'propertyNames': TEXT, 'additionalProperties': TEXT},
    },
    required=['size'],
)
WINDOW = {'limit': LIMIT, 'offset': LIMIT}

# ------------------------------------------------------------------ views


def attachments(volume) -> list[dict[str, Any]]:
    """A volume that is attached to nothing has one attachment that says nothing, as it always had."""
    return [_attachment(volume, attached) for attached in volume.attachments] or [{}]


def _attachment(volume, attached) -> dict[str, Any]:
    shown = {'id': volume.id, 'volumeId': volume.id, 'serverId': attached['server_id']}
    return shown | ({'device': attached['device']} if attached['device'] else {})


ATTACHMENT = closed(dict.fromkeys(('id', 'volumeId', 'serverId', 'device'), STRING))
SHOWN = View(
    {
        'id': Field(STRING, attr('id')),
        'status': Field(STRING, attr('status')),
        'size': Field({'type': 'integer'}, attr('size')),
        'availabilityZone': Field(NULLABLE_STRING, attr('availability_zone')),
        'createdAt': Field(NULLABLE_DATETIME, lambda volume: bare(volume.created_at)),
        'displayName': Field(NULLABLE_STRING, attr('name')),
        'displayDescription': Field(NULLABLE_STRING, attr('description')),
        'volumeType': Field(NULLABLE_STRING, attr('volume_type')),
        'snapshotId': Field(NULLABLE_STRING, attr('snapshot_id')),
        'metadata': Field(OBJECT, attr('metadata')),
        'attachments': Field({'type': 'array', 'items': ATTACHMENT}, attachments),
    }
)
SHOWN_ALL = {'volumes': {'type': 'array', 'items': SHOWN}}

# ------------------------------------------------------------------ controller


class Volumes(ComputeController):
    """Volumes, by way of the compute API."""

    path = '/os-volumes'

    @operation('GET', policy=LIST, query=query(WINDOW), response=SHOWN_ALL)
    @api_version('2.1', '2.35')
    def index(self, req):
        """List volumes."""
        limit, offset = window_of(req, self.cloud.max_limit)
        found = self.cloud.volumes.list(req.context)
        return {'volumes': SHOWN.render_all(req, found[offset : offset + limit])}

    @operation('GET', '/detail', policy=DETAIL, query=query(WINDOW), response=SHOWN_ALL)
    @api_version('2.1', '2.35')
    def detail(self, req):
        """List volumes with details."""
        return self.index(req)

    @operation('GET', '/{id}', policy=SHOW, response={'volume': SHOWN}, errors=(404,))
    @api_version('2.1', '2.35')
    def show(self, req, id):
        """Show a volume."""
        return {'volume': SHOWN.render(req, self.cloud.volumes.get(req.context, id))}

    @operation(
        'POST',
        policy=CREATE,
        body=closed({'volume': VOLUME}, required=['volume']),
        response={'volume': SHOWN},
        errors=(403, 404),
    )
    @api_version('2.1', '2.35')
    def create(self, req, body):
        """Create a volume."""
        wanted = body['volume']
        volume = self.cloud.volumes.create(
            req.context,
            int(wanted['size']),
            name=wanted.get('display_name'),
            description=wanted.get('display_description'),
            volume_type=wanted.get('volume_type'),
            availability_zone=wanted.get('availability_zone'),
            snapshot_id=wanted.get('snapshot_id'),
            metadata=wanted.get('metadata'),
        )
        location = f'{req.endpoint}/os-volumes/{volume.id}'
        return Reply({'volume': SHOWN.render(req, volume)}, {'Location': location})

    @operation('DELETE', '/{id}', policy=DELETE, status=202, errors=(404,))
    @api_version('2.1', '2.35')
    def delete(self, req, id):
        """Delete a volume."""
        self.cloud.volumes.delete(req.context, id)
