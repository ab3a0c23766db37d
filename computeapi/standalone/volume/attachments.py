"""Attachments of volumes (since 3.27)."""

from typing import Any

from computeapi import errors
from computeapi.context import Context
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.schema import body
from computeapi.standalone.volume.documents import UUID, attachment_summary, attachment_view
from computeapi.standalone.volume.query import ATTACHMENT_FILTERS, filters
from computeapi.standalone.volume.service import VolumeService, begins_at, minor, page, paging

CONNECTOR = {'type': ['object', 'null'], 'maxProperties': 64}

CREATE = body(
    'attachment',
    {
        'volume_uuid': UUID,
        'instance_uuid': {'anyOf': [UUID, {'type': 'null'}]},
        'connector': CONNECTOR,
        'mode': {'type': 'string', 'enum': ['rw', 'ro']},
    },
    required=('volume_uuid',),
)
UPDATE = body(
    'attachment',
    {'connector': {'type': 'object', 'minProperties': 1, 'maxProperties': 64}},
    required=('connector',),
    extra=True,
)

ATTACHMENTS = 27
COMPLETE = 44
MODE = 54


class AttachmentRoutes(VolumeService):
    @route('GET', '/v3/attachments')
    def list_attachments(self, req: FaceRequest) -> dict[str, Any]:
        return self._list_attachments(req, attachment_summary)

    @route('GET', '/v3/attachments/detail')
    def list_attachments_in_detail(self, req: FaceRequest) -> dict[str, Any]:
        return self._list_attachments(req, attachment_view)

    def _list_attachments(self, req: FaceRequest, view: Any) -> dict[str, Any]:
        begins_at(req, ATTACHMENTS)
        wanted = filters(req.GET, ATTACHMENT_FILTERS)
        found = self.volumes.attachments(req.context, filters=wanted, **paging(req))
        return page(req, 'attachments', [view(attachment) for attachment in found])

    @route('POST', '/v3/attachments')
    def create_attachment(self, req: FaceRequest) -> dict[str, Any]:
        begins_at(req, ATTACHMENTS)
        CREATE.check(req.document)
        asked = req.member('attachment')
        if 'mode' in asked and minor(req) < MODE:
            raise errors.Invalid('mode: it can be given since microversion 3.54.')
        attachment_id = self.volumes.reserve(
            req.context, asked['volume_uuid'], asked.get('instance_uuid'), mode=asked.get('mode', 'rw')
        )
        if asked.get('connector'):
            self._connect(req, attachment_id, asked['connector'])
        return self._shown(req, attachment_id)

    @route('GET', '/v3/attachments/{attachment_id}')
    def show_attachment(self, req: FaceRequest, attachment_id: str) -> dict[str, Any]:
        begins_at(req, ATTACHMENTS)
        return self._shown(req, attachment_id)

    @route('PUT', '/v3/attachments/{attachment_id}')
    def update_attachment(self, req: FaceRequest, attachment_id: str) -> dict[str, Any]:
        begins_at(req, ATTACHMENTS)
        UPDATE.check(req.document)
        self._connect(req, attachment_id, req.member('attachment')['connector'])
        return self._shown(req, attachment_id)

    @route('POST', '/v3/attachments/{attachment_id}/action')
    def complete_attachment(self, req: FaceRequest, attachment_id: str) -> tuple[int, None]:
        begins_at(req, COMPLETE)
        if list(req.document) != ['os-complete']:
            raise errors.Invalid('The body must hold the action os-complete and nothing else.')
        self.volumes.complete(req.context, attachment_id)
        return 204, None

    @route('DELETE', '/v3/attachments/{attachment_id}')
    def delete_attachment(self, req: FaceRequest, attachment_id: str) -> dict[str, Any]:
        begins_at(req, ATTACHMENTS)
        attachment = self.volumes.attachment(req.context, attachment_id)
        check_release(req.context, attachment.server_id)
        self.volumes.release(req.context, attachment_id)
        left = self.volumes.attachments(req.context, filters={'volume_id': attachment.volume_id})
        return {'attachments': [attachment_summary(other) for other in left]}

    def _connect(self, req: FaceRequest, attachment_id: str, connector: dict[str, Any]) -> None:
        self.volumes.connect(req.context, attachment_id, connector)
        # Before there was os-complete, a volume was in use as soon as somebody knew how to reach it.
        if minor(req) < COMPLETE:
            self.volumes.complete(req.context, attachment_id)

    def _shown(self, req: FaceRequest, attachment_id: str) -> dict[str, Any]:
        return {'attachment': attachment_view(self.volumes.attachment(req.context, attachment_id))}


def check_release(context: Context, server_id: str | None) -> None:
    """A user who took a volume from a running server behind its back could give it to another one with data on it."""
    if server_id is not None and not context.is_admin and 'service' not in context.roles:
        raise errors.Conflict(f'Detach volume from instance {server_id} using the Compute API')
