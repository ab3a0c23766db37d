"""/os-snapshots: snapshots of volumes by way of the compute API, until 2.35; later clients ask the volume service."""

from typing import Any

from computeapi.api import pages
from computeapi.api.controller import ComputeController
from computeapi.api.gone import PROXIES
from computeapi.api.types import INTEGER, NULLABLE_STRING, SPOKEN_BOOLEAN, STRING, TEXT, exact_date
from computeapi.booleans import spoken
from computeapi.web.contract import MEMBER_OR_ADMIN, READER_OR_ADMIN, Field, Policy, View, array, attr, closed, query
from computeapi.web.controller import operation
from computeapi.web.paging import window_of
from computeapi.web.request import Request

# ------------------------------------------------------------------ policies

LIST = Policy('os_compute_api:os-volumes:snapshots:list', READER_OR_ADMIN, 'List snapshots')
DETAIL = Policy('os_compute_api:os-volumes:snapshots:detail', READER_OR_ADMIN, 'List snapshots with details')
SHOW = Policy('os_compute_api:os-volumes:snapshots:show', READER_OR_ADMIN, 'Show a snapshot')
CREATE = Policy('os_compute_api:os-volumes:snapshots:create', MEMBER_OR_ADMIN, 'Create a snapshot')
DELETE = Policy('os_compute_api:os-volumes:snapshots:delete', MEMBER_OR_ADMIN, 'Delete a snapshot')

# ------------------------------------------------------------------ requests

SNAPSHOT = closed(
    {'volume_id': TEXT, 'force': SPOKEN_BOOLEAN, 'display_name': TEXT, 'display_description': TEXT},
    required=['volume_id'],
)

# ------------------------------------------------------------------ view

SHOWN = View(
    {
        'id': Field(STRING, attr('id')),
        'volumeId': Field(STRING, attr('volume_id')),
        'status': Field(STRING, attr('status')),
        'size': Field(INTEGER, attr('size')),
        'createdAt': exact_date('created_at'),
        'displayName': Field(NULLABLE_STRING, attr('name')),
        'displayDescription': Field(NULLABLE_STRING, attr('description')),
    }
)
SHOWN_ALL = {'snapshots': array(SHOWN)}

# ------------------------------------------------------------------ controller


class Snapshots(ComputeController):
    """Snapshots of volumes, by way of the compute API."""

    path = '/os-snapshots'
    versions = PROXIES

    @operation('GET', policy=LIST, query=query(pages.WINDOW), response=SHOWN_ALL)
    def index(self, req: Request) -> dict[str, Any]:
        """List snapshots."""
        limit, offset = window_of(req, self.cloud.max_limit)
        found = self.cloud.volumes.list_snapshots(req.context)
        return {'snapshots': SHOWN.render_all(req, found[offset : offset + limit])}

    @operation('GET', '/detail', policy=DETAIL, query=query(pages.WINDOW), response=SHOWN_ALL)
    def detail(self, req: Request) -> dict[str, Any]:
        """List snapshots with details."""
        return self.index(req)

    @operation('GET', '/{id}', policy=SHOW, response={'snapshot': SHOWN}, errors=(404,))
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show a snapshot."""
        return {'snapshot': SHOWN.render(req, self.cloud.volumes.get_snapshot(req.context, id))}

    @operation(
        'POST',
        policy=CREATE,
        body=closed({'snapshot': SNAPSHOT}, required=['snapshot']),
        response={'snapshot': SHOWN},
        errors=(404,),
    )
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Create a snapshot; with force also of a volume that is in use."""
        wanted = body['snapshot']
        snapshot = self.cloud.volumes.create_snapshot(
            req.context,
            wanted['volume_id'],
            name=wanted.get('display_name'),
            description=wanted.get('display_description'),
            force=spoken(wanted.get('force', False)),
        )
        return {'snapshot': SHOWN.render(req, snapshot)}

    @operation('DELETE', '/{id}', policy=DELETE, status=202, errors=(404,))
    def delete(self, req: Request, id: str) -> None:
        """Delete a snapshot."""
        self.cloud.volumes.delete_snapshot(req.context, id)
