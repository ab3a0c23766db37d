"""/os-volumes: volumes by way of the compute API, until 2.35; later clients ask the volume service."""

from collections.abc import Mapping
from typing import Any

from computeapi.api import pages
from computeapi.api.controller import ComputeController
from computeapi.api.gone import PROXIES
from computeapi.api.types import (
    INTEGER,
    NULLABLE_STRING,
    OBJECT,
    POSITIVE,
    STRING,
    TEXT,
    exact_date,
)
from computeapi.backends.volume import Volume
from computeapi.web.contract import MEMBER_OR_ADMIN, READER_OR_ADMIN, Field, Policy, View, array, attr, closed, query
from computeapi.web.controller import operation
from computeapi.web.paging import window_of
from computeapi.web.request import Reply, Request

# ------------------------------------------------------------------ policies

LIST = Policy('os_compute_api:os-volumes:list', READER_OR_ADMIN, 'List volumes')
DETAIL = Policy('os_compute_api:os-volumes:detail', READER_OR_ADMIN, 'List volumes with details')
SHOW = Policy('os_compute_api:os-volumes:show', READER_OR_ADMIN, 'Show a volume')
CREATE = Policy('os_compute_api:os-volumes:create', MEMBER_OR_ADMIN, 'Create a volume')
DELETE = Policy('os_compute_api:os-volumes:delete', MEMBER_OR_ADMIN, 'Delete a volume')

# ------------------------------------------------------------------ requests

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

# ------------------------------------------------------------------ views


def attachments(volume: Volume) -> list[dict[str, Any]]:
    """A volume that is attached to nothing has one attachment that says nothing, as it always had."""
    return [_attachment(volume, attached) for attached in volume.attachments] or [{}]


def _attachment(volume: Volume, attached: Mapping[str, Any]) -> dict[str, Any]:
    shown = {'id': volume.id, 'volumeId': volume.id, 'serverId': attached['server_id']}
    return shown | ({'device': attached['device']} if attached['device'] else {})


ATTACHMENT = closed(dict.fromkeys(('id', 'volumeId', 'serverId', 'device'), STRING))
SHOWN = View(
    {
        'id': Field(STRING, attr('id')),
        'status': Field(STRING, attr('status')),
        'size': Field(INTEGER, attr('size')),
        'availabilityZone': Field(NULLABLE_STRING, attr('availability_zone')),
        'createdAt': exact_date('created_at'),
        'displayName': Field(NULLABLE_STRING, attr('name')),
        'displayDescription': Field(NULLABLE_STRING, attr('description')),
        'volumeType': Field(NULLABLE_STRING, attr('volume_type')),
        'snapshotId': Field(NULLABLE_STRING, attr('snapshot_id')),
        'metadata': Field(OBJECT, attr('metadata')),
        'attachments': Field(array(ATTACHMENT), attachments),
    }
)
SHOWN_ALL = {'volumes': array(SHOWN)}

# ------------------------------------------------------------------ controller


class ProxiedVolumes(ComputeController):
    """Volumes, by way of the compute API."""

    path = '/os-volumes'
    versions = PROXIES

    @operation('GET', policy=LIST, query=query(pages.WINDOW), response=SHOWN_ALL)
    def index(self, req: Request) -> dict[str, Any]:
        """List volumes."""
        limit, offset = window_of(req, self.cloud.max_limit)
        found = self.cloud.volumes.list(req.context)
        return {'volumes': SHOWN.render_all(req, found[offset : offset + limit])}

    @operation('GET', '/detail', policy=DETAIL, query=query(pages.WINDOW), response=SHOWN_ALL)
    def detail(self, req: Request) -> dict[str, Any]:
        """List volumes with details."""
        return self.index(req)

    @operation('GET', '/{id}', policy=SHOW, response={'volume': SHOWN}, errors=(404,))
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show a volume."""
        return {'volume': SHOWN.render(req, self.cloud.volumes.get(req.context, id))}

    @operation(
        'POST',
        policy=CREATE,
        body=closed({'volume': VOLUME}, required=['volume']),
        response={'volume': SHOWN},
        errors=(404,),
    )
    def create(self, req: Request, body: Any) -> Reply:
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
    def delete(self, req: Request, id: str) -> None:
        """Delete a volume."""
        self.cloud.volumes.delete(req.context, id)
