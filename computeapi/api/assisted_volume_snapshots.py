"""/os-assisted-volume-snapshots: snapshots of volumes that a volume service cannot take by itself."""

from typing import Any

import orjson

from computeapi.api.controller import ComputeController
from computeapi.api.types import STRING
from computeapi.errors import Invalid
from computeapi.web.contract import SERVICE_OR_ADMIN, Policy, closed, query
from computeapi.web.controller import operation
from computeapi.web.request import Request

CREATE = Policy(
    'os_compute_api:os-assisted-volume-snapshots:create', SERVICE_OR_ADMIN, 'Take a snapshot of an attached volume'
)
DELETE = Policy(
    'os_compute_api:os-assisted-volume-snapshots:delete', SERVICE_OR_ADMIN, 'Delete a snapshot of an attached volume'
)

TEXT = {'type': 'string', 'minLength': 1}
CREATE_INFO = closed(
    {
        'snapshot_id': TEXT,
        'type': {'type': 'string', 'enum': ['qcow2']},
        'new_file': TEXT,
        'id': TEXT,
    },
    required=['snapshot_id', 'type', 'new_file'],
)
CREATE_BODY = closed(
    {'snapshot': closed({'volume_id': TEXT, 'create_info': CREATE_INFO}, required=['volume_id', 'create_info'])},
    required=['snapshot'],
)
DELETE_QUERY = query({'delete_info': STRING}, strict='2.75')
SNAPSHOT = closed({'id': STRING, 'volumeId': STRING}, required=['id', 'volumeId'])


class AssistedVolumeSnapshots(ComputeController):
    """Snapshots that the machine which uses a volume takes for the volume service."""

    path = '/os-assisted-volume-snapshots'

    @operation('POST', policy=CREATE, body=CREATE_BODY, response={'snapshot': SNAPSHOT})
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Take a snapshot of an attached volume."""
        wanted = body['snapshot']
        info = wanted['create_info']
        self.cloud.assisted_snapshots.create(req.context, wanted['volume_id'], info)
        return {'snapshot': {'id': info.get('id', info['snapshot_id']), 'volumeId': wanted['volume_id']}}

    @operation('DELETE', '/{id}', policy=DELETE, query=DELETE_QUERY, status=204)
    def delete(self, req: Request, id: str) -> None:
        """Delete a snapshot of an attached volume."""
        info = delete_info(req)
        self.cloud.assisted_snapshots.delete(req.context, info['volume_id'], id, info)


def delete_info(req: Request) -> dict[str, Any]:
    """What the query string says about the snapshot: an object in JSON that names the volume."""
    text = req.parameter('delete_info')
    if text is None:
        raise Invalid("'delete_info' is a required query parameter")
    try:
        info = orjson.loads(text)
    except ValueError as error:
        raise Invalid(f'Invalid input for query parameters delete_info: {error}') from None
    if not isinstance(info, dict) or not isinstance(info.get('volume_id'), str):
        raise Invalid("Invalid input for query parameters delete_info: 'volume_id' is a required property")
    return info
