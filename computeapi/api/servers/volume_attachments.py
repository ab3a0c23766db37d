"""/servers/{id}/os-volume_attachments: the volumes of a server."""

from typing import Any

from computeapi.api.servers.schemas import TAG
from computeapi.api.servers.subject import ServerController
from computeapi.api.types import BOOLEAN, LIMIT, NULLABLE_STRING, SPOKEN_BOOLEAN, STRING, UUID
from computeapi.booleans import spoken
from computeapi.db.servers import BlockDevice
from computeapi.versions import ABSENT, APIVersionRequest, added, changed, removed
from computeapi.web.contract import (
    HTML,
    JSON,
    MEMBER_OR_ADMIN,
    READER_OR_ADMIN,
    SERVICE_OR_ADMIN,
    Field,
    Policy,
    View,
    attr,
    closed,
    query,
)
from computeapi.web.controller import operation
from computeapi.web.paging import window_of

# ------------------------------------------------------------------ policies

INDEX = Policy('os_compute_api:os-volumes-attachments:index', READER_OR_ADMIN, 'List the volumes of a server')
SHOW = Policy('os_compute_api:os-volumes-attachments:show', READER_OR_ADMIN, 'Show a volume of a server')
CREATE = Policy('os_compute_api:os-volumes-attachments:create', MEMBER_OR_ADMIN, 'Attach a volume to a server')
UPDATE = Policy('os_compute_api:os-volumes-attachments:update', MEMBER_OR_ADMIN, 'Change how a volume is attached')
SWAP = Policy(
    'os_compute_api:os-volumes-attachments:swap', SERVICE_OR_ADMIN, 'Put another volume in the place of an attached one'
)
DELETE = Policy('os_compute_api:os-volumes-attachments:delete', MEMBER_OR_ADMIN, 'Detach a volume from a server')

SHELVED = APIVersionRequest.parse('2.20')
MULTIATTACH = APIVersionRequest.parse('2.60')
UPDATABLE = APIVersionRequest.parse('2.85')
LATER = APIVersionRequest.parse('2.101')

# ------------------------------------------------------------------ requests

DEVICE = {'type': ['string', 'null'], 'maxLength': 255, 'pattern': '(^/dev/x{0,1}[a-z]{0,1}d{0,1})([a-z]+)[0-9]*$'}
ATTACH = closed(
    {
        'volumeId': UUID,
        'device': DEVICE,
        'tag': added('2.49', TAG),
        'delete_on_termination': added('2.79', SPOKEN_BOOLEAN),
    },
    required=['volumeId'],
)
CHANGE = closed(
    {
        'volumeId': UUID,
        'device': added('2.85', DEVICE),
        'tag': added('2.85', TAG),
        'delete_on_termination': added('2.85', SPOKEN_BOOLEAN),
        'serverId': added('2.85', UUID),
        'id': added('2.85', UUID),
    },
    required=['volumeId'],
)
WINDOW = {'limit': LIMIT, 'offset': LIMIT}

# ------------------------------------------------------------------ views


def device_or_absent(device: BlockDevice) -> Any:
    """A disk has no name before it is connected."""
    return device.device_name or ABSENT


ATTACHED = {
    'id': removed('2.89', Field(UUID, attr('volume_id'))),
    'serverId': Field(UUID, attr('server_id')),
    'volumeId': Field(UUID, attr('volume_id')),
    'device': Field(STRING, device_or_absent, optional=True),
    'tag': added('2.70', Field(NULLABLE_STRING, attr('tag'))),
    'delete_on_termination': added('2.79', Field(BOOLEAN, attr('delete_on_termination'))),
}
ATTACHMENT = View(
    ATTACHED
    | {
        'attachment_id': added('2.89', Field(UUID, attr('attachment_id'))),
        'bdm_uuid': added('2.89', Field(UUID, attr('uuid'))),
    }
)
NEW_ATTACHMENT = View(
    ATTACHED | {'id': Field(UUID, attr('volume_id')), 'device': Field(NULLABLE_STRING, attr('device_name'))}
)

# ------------------------------------------------------------------ controller


class VolumeAttachments(ServerController):
    """The volumes of a server."""

    path = '/servers/{server_id}/os-volume_attachments'

    @operation(
        'GET',
        policy=INDEX,
        query=query(WINDOW, strict='2.75'),
        response={'volumeAttachments': {'type': 'array', 'items': ATTACHMENT}},
        errors=(404,),
    )
    def index(self, req, server):
        """List the volumes of a server."""
        limit, offset = window_of(req, self.cloud.max_limit)
        devices = self.cloud.attachments.list(server, limit, offset)
        return {'volumeAttachments': ATTACHMENT.render_all(req, devices)}

    @operation(
        'GET',
        '/{id}',
        policy=SHOW,
        query=query({}, strict=None),
        response={'volumeAttachment': ATTACHMENT},
        errors=(404,),
    )
    def show(self, req, server, id):
        """Show a volume of a server."""
        return {'volumeAttachment': ATTACHMENT.render(req, self.cloud.attachments.get(server, id))}

    @operation(
        'POST',
        policy=CREATE,
        body=closed({'volumeAttachment': ATTACH}, required=['volumeAttachment']),
        response=removed('2.101', closed({'volumeAttachment': NEW_ATTACHMENT}, ['volumeAttachment'])),
        status=changed({'2.1': 200, '2.101': 202}),
        media_type=changed({'2.1': JSON, '2.101': HTML}),
        errors=(403, 404, 409, 503),
    )
    def create(self, req, server, body):
        """Attach a volume to a server."""
        wanted = body['volumeAttachment']
        device = self.cloud.attachments.attach(
            req.context,
            server,
            wanted['volumeId'],
            name=wanted.get('device'),
            tag=wanted.get('tag'),
            delete_on_termination=spoken(wanted.get('delete_on_termination')),
            multiattach=req.version >= MULTIATTACH,
            shelved=req.version >= SHELVED,
            at_once=req.version < LATER,
        )
        return {'volumeAttachment': NEW_ATTACHMENT.render(req, device)} if req.version < LATER else None

    @operation(
        'PUT',
        '/{id}',
        policy=None,
        also=(UPDATE, SWAP),
        body=closed({'volumeAttachment': CHANGE}, required=['volumeAttachment']),
        status=202,
        errors=(403, 404, 409),
    )
    def update(self, req, server, id, body):
        """Change what becomes of the volume with the server, or, for block storage, put another in its place."""
        facts = dict(body['volumeAttachment'])
        volume_id = facts.pop('volumeId')
        if req.version < UPDATABLE or volume_id != id:
            req.check(SWAP)
            return self.cloud.attachments.swap(req.context, server, id, volume_id)
        req.check(UPDATE, {'project_id': server.project_id, 'user_id': server.user_id})
        if 'delete_on_termination' in facts:
            facts['delete_on_termination'] = spoken(facts['delete_on_termination'])
        return self.cloud.attachments.update(server, id, facts)

    @operation('DELETE', '/{id}', policy=DELETE, status=202, errors=(403, 404, 409))
    def delete(self, req, server, id):
        """Detach a volume from a server."""
        self.cloud.attachments.detach(req.context, server, id, shelved=req.version >= SHELVED)
