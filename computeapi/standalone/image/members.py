"""Projects that an image is shared with."""

from typing import Any

from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.image.documents import member_view
from computeapi.standalone.image.service import ImageService
from computeapi.standalone.schema import Schema

OFFER = Schema(
    {
        'type': 'object',
        'properties': {'member': {'type': 'string', 'minLength': 1, 'maxLength': 64}},
        'required': ['member'],
    }
)
ANSWER = Schema({'type': 'object', 'properties': {'status': {'type': 'string'}}, 'required': ['status']})


class MemberRoutes(ImageService):
    @route('GET', '/v2/images/{image_id}/members')
    def list_members(self, req: FaceRequest, image_id: str) -> dict[str, Any]:
        members = self.images.members.list(req.context, image_id)
        return {'members': [member_view(member) for member in members], 'schema': '/v2/schemas/members'}

    @route('POST', '/v2/images/{image_id}/members')
    def add_member(self, req: FaceRequest, image_id: str) -> dict[str, Any]:
        OFFER.check(req.document)
        return member_view(self.images.members.add(req.context, image_id, req.document['member']))

    @route('GET', '/v2/images/{image_id}/members/{member_id}')
    def show_member(self, req: FaceRequest, image_id: str, member_id: str) -> dict[str, Any]:
        return member_view(self.images.members.get(req.context, image_id, member_id))

    @route('PUT', '/v2/images/{image_id}/members/{member_id}')
    def answer_member(self, req: FaceRequest, image_id: str, member_id: str) -> dict[str, Any]:
        ANSWER.check(req.document)
        return member_view(self.images.members.answer(req.context, image_id, member_id, req.document['status']))

    @route('DELETE', '/v2/images/{image_id}/members/{member_id}')
    def remove_member(self, req: FaceRequest, image_id: str, member_id: str) -> tuple[int, None]:
        self.images.members.remove(req.context, image_id, member_id)
        return 204, None
