"""/os-volumes and /os-snapshots: proxies to block storage, until 2.35; later clients call its service directly."""

from collections.abc import Mapping
from typing import Any

from computeapi.api import pages
from computeapi.api.controller import ComputeController
from computeapi.api.gone import PROXIES
from computeapi.api.types import (
    INTEGER,
    LENIENT_BOOLEAN,
    NULLABLE_STRING,
    OBJECT,
    POSITIVE,
    STRING,
    TEXT,
    exact_date,
)
from computeapi.backends.volume import Volume
from computeapi.booleans import is_true
from computeapi.web.contract import MEMBER_OR_ADMIN, READER_OR_ADMIN, Field, Policy, View, attr
from computeapi.web.controller import operation
from computeapi.web.paging import window_of
from computeapi.web.request import Reply, Request
from computeapi.web.schemas import array, closed, lone, query

LIST = Policy('os_compute_api:os-volumes:list', READER_OR_ADMIN, 'List volumes')
DETAIL = Policy('os_compute_api:os-volumes:detail', READER_OR_ADMIN, 'List volumes with details')
SHOW = Policy('os_compute_api:os-volumes:show', READER_OR_ADMIN, 'Show a volume')
CREATE = Policy('os_compute_api:os-volumes:create', MEMBER_OR_ADMIN, 'Create a volume')
DELETE = Policy('os_compute_api:os-volumes:delete', MEMBER_OR_ADMIN, 'Delete a volume')
LIST_SNAPSHOTS = Policy('os_compute_api:os-volumes:snapshots:list', READER_OR_ADMIN, 'List snapshots')
DETAIL_SNAPSHOTS = Policy('os_compute_api:os-volumes:snapshots:detail', READER_OR_ADMIN, 'List snapshots with details')
SHOW_SNAPSHOT = Policy('os_compute_api:os-volumes:snapshots:show', READER_OR_ADMIN, 'Show a snapshot')
CREATE_SNAPSHOT = Policy('os_compute_api:os-volumes:snapshots:create', MEMBER_OR_ADMIN, 'Create a snapshot')
DELETE_SNAPSHOT = Policy('os_compute_api:os-volumes:snapshots:delete', MEMBER_OR_ADMIN, 'Delete a snapshot')

# ------------------------------------------------------------------ requests

NEW_VOLUME = closed(
    {
        'volume_type': TEXT,
        'metadata': {'type': 'object', 'propertyNames': TEXT, 'additionalProperties': TEXT},
        'snapshot_id': TEXT,
        'size': POSITIVE,
        'availability_zone': TEXT,
        'display_name': TEXT,
        'display_description': TEXT,
    },
    required=['size'],
)
NEW_SNAPSHOT = closed(
    {'volume_id': STRING, 'force': LENIENT_BOOLEAN, 'display_name': TEXT, 'display_description': TEXT},
    required=['volume_id'],
)

# ------------------------------------------------------------------ views


def attachments(volume: Volume) -> list[dict[str, Any]]:
    """A volume without attachments is shown with a single empty one, for compatibility."""
    return [_attachment(volume, attached) for attached in volume.attachments] or [{}]


def _attachment(volume: Volume, attached: Mapping[str, Any]) -> dict[str, Any]:
    shown = {'id': volume.id, 'volumeId': volume.id, 'serverId': attached['server_id']}
    return shown | ({'device': attached['device']} if attached['device'] else {})


ATTACHMENT = closed(dict.fromkeys(('id', 'volumeId', 'serverId', 'device'), STRING))
COMMON_FIELDS = {
    'id': Field(STRING, attr('id')),
    'status': Field(STRING, attr('status')),
    'size': Field(INTEGER, attr('size')),
    'createdAt': exact_date('created_at'),
    'displayName': Field(NULLABLE_STRING, attr('name')),
    'displayDescription': Field(NULLABLE_STRING, attr('description')),
}
VOLUME = View(
    COMMON_FIELDS
    | {
        'availabilityZone': Field(NULLABLE_STRING, attr('availability_zone')),
        'volumeType': Field(NULLABLE_STRING, attr('volume_type')),
        'snapshotId': Field(NULLABLE_STRING, attr('snapshot_id')),
        'metadata': Field(OBJECT, attr('metadata')),
        'attachments': Field(array(ATTACHMENT), attachments),
    }
)
SNAPSHOT = View(COMMON_FIELDS | {'volumeId': Field(STRING, attr('volume_id'))})
VOLUMES, SNAPSHOTS = {'volumes': array(VOLUME)}, {'snapshots': array(SNAPSHOT)}
LIST_QUERY = query(pages.WINDOW)


class ProxiedVolumes(ComputeController):
    """A proxy to the volumes of the block storage service."""

    path = '/os-volumes'
    versions = PROXIES

    @operation('GET', policy=LIST, query=LIST_QUERY, response=VOLUMES)
    def index(self, req: Request) -> dict[str, Any]:
        """List volumes."""
        limit, offset = window_of(req, self.cloud.max_limit)
        found = self.cloud.volumes.list(req.context)
        return {'volumes': VOLUME.render_all(req, found[offset : offset + limit])}

    @operation('GET', '/detail', policy=DETAIL, query=LIST_QUERY, response=VOLUMES)
    def detail(self, req: Request) -> dict[str, Any]:
        """List volumes with details."""
        return self.index(req)

    @operation('GET', '/{id}', policy=SHOW, response={'volume': VOLUME})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show a volume."""
        return {'volume': VOLUME.render(req, self.cloud.volumes.get(req.context, id))}

    @operation('POST', policy=CREATE, body=lone('volume', NEW_VOLUME), response={'volume': VOLUME}, errors=(404,))
    def create(self, req: Request, body: Any) -> Reply:
        """Create a volume."""
        wanted = body['volume']
        # A missing snapshot is reported before any other error.
        if (snapshot_id := wanted.get('snapshot_id')) is not None:
            self.cloud.volumes.get_snapshot(req.context, snapshot_id)
        volume = self.cloud.volumes.create(
            req.context,
            int(wanted['size']),
            name=wanted.get('display_name'),
            description=wanted.get('display_description'),
            volume_type=wanted.get('volume_type'),
            availability_zone=wanted.get('availability_zone'),
            snapshot_id=snapshot_id,
            metadata=wanted.get('metadata'),
        )
        return Reply({'volume': VOLUME.render(req, volume)}, {'Location': f'{req.endpoint}/os-volumes/{volume.id}'})

    @operation('DELETE', '/{id}', policy=DELETE, status=202)
    def delete(self, req: Request, id: str) -> None:
        """Delete a volume."""
        self.cloud.volumes.delete(req.context, id)


class Snapshots(ComputeController):
    """A proxy to the snapshots of volumes."""

    path = '/os-snapshots'
    versions = PROXIES

    @operation('GET', policy=LIST_SNAPSHOTS, query=LIST_QUERY, response=SNAPSHOTS)
    def index(self, req: Request) -> dict[str, Any]:
        """List snapshots."""
        limit, offset = window_of(req, self.cloud.max_limit)
        found = self.cloud.volumes.list_snapshots(req.context)
        return {'snapshots': SNAPSHOT.render_all(req, found[offset : offset + limit])}

    @operation('GET', '/detail', policy=DETAIL_SNAPSHOTS, query=LIST_QUERY, response=SNAPSHOTS)
    def detail(self, req: Request) -> dict[str, Any]:
        """List snapshots with details."""
        return self.index(req)

    @operation('GET', '/{id}', policy=SHOW_SNAPSHOT, response={'snapshot': SNAPSHOT})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show a snapshot."""
        return {'snapshot': SNAPSHOT.render(req, self.cloud.volumes.get_snapshot(req.context, id))}

    @operation(
        'POST',
        policy=CREATE_SNAPSHOT,
        body=lone('snapshot', NEW_SNAPSHOT),
        response={'snapshot': SNAPSHOT},
        errors=(404,),
    )
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Create a snapshot; with force, also of a volume that is in use."""
        wanted = body['snapshot']
        snapshot = self.cloud.volumes.create_snapshot(
            req.context,
            wanted['volume_id'],
            name=wanted.get('display_name'),
            description=wanted.get('display_description'),
            force=is_true(wanted.get('force', False)),
        )
        return {'snapshot': SNAPSHOT.render(req, snapshot)}

    @operation('DELETE', '/{id}', policy=DELETE_SNAPSHOT, status=202)
    def delete(self, req: Request, id: str) -> None:
        """Delete a snapshot."""
        self.cloud.volumes.delete_snapshot(req.context, id)
