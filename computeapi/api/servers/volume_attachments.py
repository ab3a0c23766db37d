"""/servers/{id}/os-volume_attachments: the volumes attached to a server."""

from typing import Any

from computeapi.api.pages import WINDOW
from computeapi.api.servers.controller import ServerController
from computeapi.api.servers.schemas import TAG
from computeapi.api.types import BOOLEAN, LENIENT_BOOLEAN, NULLABLE_STRING, STRING, UUID
from computeapi.booleans import is_true
from computeapi.db.servers import BlockDevice, Server
from computeapi.versions import ABSENT, added, changed, removed
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
)
from computeapi.web.controller import api_version, operation
from computeapi.web.paging import window_of
from computeapi.web.request import Request, target_of
from computeapi.web.schemas import array, closed, lone, query

INDEX = Policy('os_compute_api:os-volumes-attachments:index', READER_OR_ADMIN, 'List the volumes of a server')
SHOW = Policy('os_compute_api:os-volumes-attachments:show', READER_OR_ADMIN, 'Show a volume of a server')
CREATE = Policy('os_compute_api:os-volumes-attachments:create', MEMBER_OR_ADMIN, 'Attach a volume to a server')
UPDATE = Policy('os_compute_api:os-volumes-attachments:update', MEMBER_OR_ADMIN, 'Update a volume attachment')
SWAP = Policy('os_compute_api:os-volumes-attachments:swap', SERVICE_OR_ADMIN, 'Swap an attached volume for another one')
DELETE = Policy('os_compute_api:os-volumes-attachments:delete', MEMBER_OR_ADMIN, 'Detach a volume from a server')

SHELVED, UPDATABLE, WITH_IDS, WITHOUT_BODY = '2.20', '2.85', '2.89', '2.101'
ON_SHELVED = {'shelved': added(SHELVED, True)}
# Before it is reserved, a volume has no attachment_id.
WITH_ID = {'only_reserved': added(WITH_IDS, True)}

# ------------------------------------------------------------------ requests

DEVICE = {'type': ['string', 'null'], 'pattern': '(^/dev/x{0,1}[a-z]{0,1}d{0,1})([a-z]+)[0-9]*$', 'maxLength': 255}
ATTACH = closed(
    {
        'volumeId': UUID,
        'device': DEVICE,
        'tag': added('2.49', TAG),
        'delete_on_termination': added('2.79', LENIENT_BOOLEAN),
    },
    required=['volumeId'],
)
CHANGE = closed(
    {
        'volumeId': UUID,
        'device': added(UPDATABLE, DEVICE),
        'tag': added(UPDATABLE, TAG),
        'delete_on_termination': added(UPDATABLE, LENIENT_BOOLEAN),
        'serverId': added(UPDATABLE, UUID),
        'id': added(UPDATABLE, UUID),
    },
    required=['volumeId'],
)

# ------------------------------------------------------------------ views


def device_or_absent(device: BlockDevice) -> Any:
    """A disk has no device name before it is connected."""
    return device.device_name or ABSENT


ATTACHED = {
    'id': removed(WITH_IDS, Field(UUID, attr('volume_id'))),
    'serverId': Field(UUID, attr('server_id')),
    'volumeId': Field(UUID, attr('volume_id')),
    'device': Field(STRING, device_or_absent, optional=True),
    'tag': added('2.70', Field(NULLABLE_STRING, attr('tag'))),
    'delete_on_termination': added('2.79', Field(BOOLEAN, attr('delete_on_termination'))),
}
ATTACHMENT = View(
    ATTACHED
    | {
        'attachment_id': added(WITH_IDS, Field(UUID, attr('attachment_id'))),
        'bdm_uuid': added(WITH_IDS, Field(UUID, attr('uuid'))),
    }
)
NEW_ATTACHMENT = View(
    ATTACHED | {'id': Field(UUID, attr('volume_id')), 'device': Field(NULLABLE_STRING, attr('device_name'))}
)


class VolumeAttachments(ServerController):
    """Volume attachments of a server."""

    path = '/servers/{server_id}/os-volume_attachments'

    @operation(
        'GET',
        policy=INDEX,
        query=query(WINDOW, strict='2.75'),
        response={'volumeAttachments': array(ATTACHMENT)},
        behaviour=WITH_ID,
    )
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """List the volumes of a server."""
        limit, offset = window_of(req, self.cloud.max_limit)
        devices = self.cloud.attachments.list(server, limit, offset, only_reserved=bool(req.behaviour.only_reserved))
        return {'volumeAttachments': ATTACHMENT.render_all(req, devices)}

    @operation(
        'GET',
        '/{id}',
        policy=SHOW,
        query=query({}, strict=None),
        response={'volumeAttachment': ATTACHMENT},
        behaviour=WITH_ID,
    )
    def show(self, req: Request, server: Server, id: str) -> dict[str, Any]:
        """Show a volume of a server."""
        device = self.cloud.attachments.get(server, id, only_reserved=bool(req.behaviour.only_reserved))
        return {'volumeAttachment': ATTACHMENT.render(req, device)}

    @operation(
        'POST',
        policy=CREATE,
        body=lone('volumeAttachment', ATTACH),
        response=removed(WITHOUT_BODY, lone('volumeAttachment', NEW_ATTACHMENT)),
        status=changed({'2.1': 200, WITHOUT_BODY: 202}),
        media_type=changed({'2.1': JSON, WITHOUT_BODY: HTML}),
        errors=(403, 409),
        behaviour=ON_SHELVED | {'multiattach': added('2.60', True)},
    )
    def create(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Attach a volume to a server, and return the attachment."""
        device = self.attach(req, server, body['volumeAttachment'], at_once=True)
        return {'volumeAttachment': NEW_ATTACHMENT.render(req, device)}

    @api_version(WITHOUT_BODY)
    def create(self, req: Request, server: Server, body: Any) -> None:
        """Attach a volume to a server."""
        self.attach(req, server, body['volumeAttachment'], at_once=False)

    def attach(self, req: Request, server: Server, wanted: Any, *, at_once: bool) -> BlockDevice:
        return self.cloud.attachments.attach(
            req.context,
            server,
            wanted['volumeId'],
            name=wanted.get('device'),
            tag=wanted.get('tag'),
            delete_on_termination=is_true(wanted.get('delete_on_termination')),
            multiattach=bool(req.behaviour.multiattach),
            shelved=bool(req.behaviour.shelved),
            at_once=at_once,
        )

    @operation(
        'PUT',
        '/{id}',
        policy=None,
        also=(UPDATE, SWAP),
        body=lone('volumeAttachment', CHANGE),
        status=202,
        errors=(403, 409, 501),
    )
    def update(self, req: Request, server: Server, id: str, body: Any) -> None:
        """Swap an attached volume for another one, on behalf of block storage."""
        req.check(SWAP)
        self.cloud.volume_swaps.begin(req.context, server, id, body['volumeAttachment']['volumeId'])

    @api_version(UPDATABLE)
    def update(self, req: Request, server: Server, id: str, body: Any) -> None:
        """Change whether a volume is deleted with the server or, on behalf of block storage, swap it."""
        facts = dict(body['volumeAttachment'])
        volume_id = facts.pop('volumeId')
        if volume_id != id:
            req.check(SWAP)
        else:
            req.check(UPDATE, target_of(server))
        if 'delete_on_termination' in facts:
            facts['delete_on_termination'] = is_true(facts['delete_on_termination'])
        self.cloud.attachments.update(server, id, facts)
        if volume_id != id:
            self.cloud.volume_swaps.begin(req.context, server, id, volume_id)

    @operation('DELETE', '/{id}', policy=DELETE, status=202, errors=(403, 409), behaviour=ON_SHELVED)
    def delete(self, req: Request, server: Server, id: str) -> None:
        """Detach a volume from a server."""
        self.cloud.attachments.detach(req.context, server, id, shelved=bool(req.behaviour.shelved))
