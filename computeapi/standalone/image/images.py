"""Images, their data and their tags."""

from collections.abc import Iterator
from typing import Any

import webob

from computeapi import errors
from computeapi.backends.image import Image
from computeapi.backends.image.files import CHUNK
from computeapi.standalone.face import FaceRequest, route
from computeapi.standalone.image import query
from computeapi.standalone.image.documents import facts, view, writable
from computeapi.standalone.image.patch import operations_of, patched
from computeapi.standalone.image.service import ImageService
from computeapi.standalone.query import link, sort

MAX_TAG = 255


class ImageRoutes(ImageService):
    @route('GET', '/v2/images')
    def list_images(self, req: FaceRequest) -> dict[str, Any]:
        limit = query.limit(req.GET)
        found = self.images.list(
            req.context,
            filters=query.filters(req.GET),
            sort=sort(req.GET),
            limit=limit,
            marker=req.GET.get('marker') or None,
        )
        document = {
            'images': [view(image) for image in found],
            'first': link('/v2/images', req.GET),
            'schema': '/v2/schemas/images',
        }
        if found and len(found) == limit:
            document['next'] = link('/v2/images', req.GET, marker=found[-1].id)
        return document

    @route('POST', '/v2/images')
    def create_image(self, req: FaceRequest) -> webob.Response:
        given = {'visibility': 'shared', **facts(req.document)}
        name, image_id = given.pop('name', None), given.pop('id', None)
        image = self.images.create(req.context, name, image_id=image_id, **given)
        response = self.render((201, view(image)))
        response.location = f'{req.application_url}/v2/images/{image.id}'
        return response

    @route('GET', '/v2/images/{image_id}')
    def show_image(self, req: FaceRequest, image_id: str) -> dict[str, Any]:
        return view(self.images.get(req.context, image_id))

    @route('PATCH', '/v2/images/{image_id}')
    def update_image(self, req: FaceRequest, image_id: str) -> dict[str, Any]:
        operations = operations_of(req.json_value, req.content_type)

        def change(image: Image) -> dict[str, Any]:
            wanted = facts(patched(writable(image), operations))
            return {name: value for name, value in wanted.items() if value != getattr(image, name)}

        return view(self.images.change(req.context, image_id, change))

    @route('DELETE', '/v2/images/{image_id}')
    def delete_image(self, req: FaceRequest, image_id: str) -> tuple[int, None]:
        self.images.delete(req.context, image_id)
        return 204, None

    @route('PUT', '/v2/images/{image_id}/file')
    def upload(self, req: FaceRequest, image_id: str) -> tuple[int, None]:
        self.images.upload(req.context, image_id, chunks(req))
        return 204, None

    @route('GET', '/v2/images/{image_id}/file')
    def download(self, req: FaceRequest, image_id: str) -> webob.Response | tuple[int, None]:
        image = self.images.get(req.context, image_id)
        try:
            data = self.images.download(req.context, image_id)
        except errors.ImageNotActive:
            return 204, None
        response = webob.Response(app_iter=data, content_type='application/octet-stream', charset=None)
        response.content_length = image.size
        response.content_md5 = image.checksum
        return response

    @route('POST', '/v2/images/{image_id}/actions/deactivate')
    def deactivate(self, req: FaceRequest, image_id: str) -> tuple[int, None]:
        self.images.deactivate(req.context, image_id)
        return 204, None

    @route('POST', '/v2/images/{image_id}/actions/reactivate')
    def reactivate(self, req: FaceRequest, image_id: str) -> tuple[int, None]:
        self.images.reactivate(req.context, image_id)
        return 204, None

    @route('PUT', '/v2/images/{image_id}/tags/{tag}')
    def add_tag(self, req: FaceRequest, image_id: str, tag: str) -> tuple[int, None]:
        if len(tag) > MAX_TAG:
            raise errors.Invalid(f'A tag must not be longer than {MAX_TAG} characters.')
        self.images.change(req.context, image_id, lambda image: {'tags': (*image.tags, tag)})
        return 204, None

    @route('DELETE', '/v2/images/{image_id}/tags/{tag}')
    def remove_tag(self, req: FaceRequest, image_id: str, tag: str) -> tuple[int, None]:
        def change(image: Image) -> dict[str, Any]:
            if tag not in image.tags:
                raise errors.NotFound(f'Image {image_id} has no tag {tag}.')
            return {'tags': [other for other in image.tags if other != tag]}

        self.images.change(req.context, image_id, change)
        return 204, None


def chunks(req: FaceRequest) -> Iterator[bytes]:
    """The body in pieces, however long it is."""
    return iter(lambda: req.body_file.read(CHUNK), b'')
