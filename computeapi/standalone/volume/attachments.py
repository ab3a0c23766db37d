"""Attachments of volumes."""

from collections.abc import Iterable
from typing import Any

from computeapi import errors
from computeapi.backends.volume import Attachment
from computeapi.backends.volume.local import LocalVolumes
from computeapi.standalone.access import CALLER
from computeapi.standalone.schema import wrapped
from computeapi.standalone.volume.documents import ATTACHMENT, ATTACHMENT_SUMMARY, NOTHING, UUID
from computeapi.standalone.volume.lists import ATTACHMENT_FILTERS, CinderCollection
from computeapi.standalone.volume.service import USER, added, removed
from computeapi.web.controller import Bounds, action, api_version, operation
from computeapi.web.request import Request

CREATE = wrapped(
    'attachment',
    {
        'volume_uuid': UUID,
        'instance_uuid': {'anyOf': [UUID, NOTHING]},
        'connector': {'type': ['object', 'null'], 'maxProperties': 64},
        'mode': added('3.54', {'type': 'string', 'enum': ['rw', 'ro']}),
    },
    'volume_uuid',
)
CONNECTOR = {'type': 'object', 'minProperties': 1, 'maxProperties': 64}
UPDATE = wrapped('attachment', {'connector': CONNECTOR}, 'connector', extra=True)
# Before os-complete was introduced, a volume was in use as soon as its attachment had a connector.
IN_USE_AT_ONCE = removed('3.44', True)


class CinderAttachments(CinderCollection):
    path = '/attachments'
    versions = Bounds('3.27')
    noun, summary, detail, filters = 'attachments', ATTACHMENT_SUMMARY, ATTACHMENT, ATTACHMENT_FILTERS
    counted = False

    def found(self, req: Request, **options: Any) -> Iterable[Attachment]:
        return self.volumes.list_attachments(req.context, **options)

    @operation('POST', policy=USER, body=CREATE, behaviour={'in_use_at_once': IN_USE_AT_ONCE})
    def create(self, req: Request, body: dict[str, Any]) -> dict[str, Any]:
        requested = body['attachment']
        attachment_id = self.volumes.reserve(
            req.context, requested['volume_uuid'], requested.get('instance_uuid'), mode=requested.get('mode', 'rw')
        )
        if requested.get('connector'):
            self._connect(req, attachment_id, requested['connector'])
        return self.show(req, attachment_id)

    @operation('GET', '/{attachment_id}', policy=CALLER)
    def show(self, req: Request, attachment_id: str) -> dict[str, Any]:
        return {'attachment': ATTACHMENT.render(req, self._shown(req, attachment_id))}

    @operation('PUT', '/{attachment_id}', policy=USER, body=UPDATE, behaviour={'in_use_at_once': IN_USE_AT_ONCE})
    def update(self, req: Request, attachment_id: str, body: dict[str, Any]) -> dict[str, Any]:
        self._connect(req, attachment_id, body['attachment']['connector'])
        return self.show(req, attachment_id)

    @action('os-complete', policy=USER, status=204)
    @api_version('3.44')
    def complete(self, req: Request, id: str) -> None:
        self.volumes.complete(req.context, id)

    @operation('DELETE', '/{attachment_id}', policy=USER)
    def delete(self, req: Request, attachment_id: str) -> dict[str, Any]:
        attachment = self._attachment(req, attachment_id)
        check_release(req, self.volumes, attachment.volume_id, attachment.server_id)
        self.volumes.release(req.context, attachment_id)
        left = self.volumes.list_attachments(req.context, filters={'volume_id': attachment.volume_id})
        return {'attachments': ATTACHMENT_SUMMARY.render_all(req, left)}

    def _attachment(self, req: Request, attachment_id: str) -> Attachment:
        return self.volumes.attachment(req.context, attachment_id)

    def _shown(self, req: Request, attachment_id: str) -> Attachment:
        """The attachment with its connection info for administrators and services (hosts), without it for the owner."""
        if req.context.is_admin or req.context.is_service:
            return self.volumes.connection(req.context, attachment_id)
        return self._attachment(req, attachment_id)

    def _connect(self, req: Request, attachment_id: str, connector: dict[str, Any]) -> None:
        self.volumes.connect(req.context, attachment_id, connector)
        if req.behaviour.in_use_at_once:
            self.volumes.complete(req.context, attachment_id)


def check_release(req: Request, volumes: LocalVolumes, volume_id: str, server_id: str | None) -> None:
    """Raises Conflict if a server uses the volume and the caller is not a service: a volume taken away behind the
    server's back could be attached, with its data, to another server."""
    if server_id is not None and 'service' not in req.context.roles and volumes.used(volume_id, server_id):
        raise errors.Conflict(f'Detach volume from instance {server_id} using the Compute API')
