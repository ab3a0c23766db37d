"""/os-snapshots: snapshots of volumes by way of the compute API, until 2.35; later clients ask the volume service."""

from computeapi.api.controller import ComputeController
from computeapi.api.types import NULLABLE_DATETIME, NULLABLE_STRING, SPOKEN_BOOLEAN, STRING, bare, spoken
from computeapi.api.volumes import TEXT, WINDOW
from computeapi.web.contract import MEMBER_OR_ADMIN, READER_OR_ADMIN, Field, Policy, View, attr, closed, query
from computeapi.web.controller import api_version, operation
from computeapi.web.paging import window_of

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
        'size': Field({'type': 'integer'}, attr('size')),
        'createdAt': Field(NULLABLE_DATETIME, lambda snapshot: bare(snapshot.created_at)),
        'displayName': Field(NULLABLE_STRING, attr('name')),
        'displayDescription': Field(NULLABLE_STRING, attr('description')),
    }
)
SHOWN_ALL = {'snapshots': {'type': 'array', 'items': SHOWN}}

# ------------------------------------------------------------------ controller


class Snapshots(ComputeController):
    """Snapshots of volumes, by way of the compute API."""

    path = '/os-snapshots'

    @operation('GET', policy=LIST, query=query(WINDOW), response=SHOWN_ALL)
    @api_version('2.1', '2.35')
    def index(self, req):
        """List snapshots."""
        limit, offset = window_of(req, self.cloud.max_limit)
        found = self.cloud.volumes.list_snapshots(req.context)
        return {'snapshots': SHOWN.render_all(req, found[offset : offset + limit])}

    @operation('GET', '/detail', policy=DETAIL, query=query(WINDOW), response=SHOWN_ALL)
    @api_version('2.1', '2.35')
    def detail(self, req):
        """List snapshots with details."""
        return self.index(req)

    @operation('GET', '/{id}', policy=SHOW, response={'snapshot': SHOWN}, errors=(404,))
    @api_version('2.1', '2.35')
    def show(self, req, id):
        """Show a snapshot."""
        return {'snapshot': SHOWN.render(req, self.cloud.volumes.get_snapshot(req.context, id))}

    @operation(
        'POST',
        policy=CREATE,
        body=closed({'snapshot': SNAPSHOT}, required=['snapshot']),
        response={'snapshot': SHOWN},
        errors=(403, 404),
    )
    @api_version('2.1', '2.35')
    def create(self, req, body):
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
    @api_version('2.1', '2.35')
    def delete(self, req, id):
        """Delete a snapshot."""
        self.cloud.volumes.delete_snapshot(req.context, id)
