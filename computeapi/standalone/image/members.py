"""Projects that an image is shared with."""

from typing import Any

from computeapi.standalone.access import CALLER, WRITER
from computeapi.standalone.image.documents import member_view
from computeapi.standalone.image.service import GlanceController
from computeapi.standalone.schema import having
from computeapi.web.controller import operation
from computeapi.web.request import Request

OFFER = having({'member': {'type': 'string', 'minLength': 1, 'maxLength': 64}}, 'member')
ANSWER = having({'status': {'type': 'string'}}, 'status')


class GlanceMembers(GlanceController):
    path = '/images/{image_id}/members'

    @operation('GET', policy=CALLER)
    def list(self, req: Request, image_id: str) -> dict[str, Any]:
        members = self.images.members.list(req.context, image_id)
        return {'members': [member_view(member) for member in members], 'schema': '/v2/schemas/members'}

    @operation('POST', policy=WRITER, body=OFFER)
    def add(self, req: Request, image_id: str, body: dict[str, Any]) -> dict[str, Any]:
        return member_view(self.images.members.add(req.context, image_id, body['member']))

    @operation('GET', '/{member_id}', policy=CALLER)
    def show(self, req: Request, image_id: str, member_id: str) -> dict[str, Any]:
        return member_view(self.images.members.get(req.context, image_id, member_id))

    @operation('PUT', '/{member_id}', policy=WRITER, body=ANSWER)
    def answer(self, req: Request, image_id: str, member_id: str, body: dict[str, Any]) -> dict[str, Any]:
        return member_view(self.images.members.answer(req.context, image_id, member_id, body['status']))

    @operation('DELETE', '/{member_id}', policy=WRITER, status=204)
    def remove(self, req: Request, image_id: str, member_id: str) -> None:
        self.images.members.remove(req.context, image_id, member_id)
