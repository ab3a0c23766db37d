"""Images, their data and their tags."""

from collections.abc import Iterator
from typing import Any

import webob
from webob.byterange import Range

from computeapi import errors
from computeapi.backends.image import Image
from computeapi.backends.image.files import CHUNK
from computeapi.standalone.access import CALLER, WRITER
from computeapi.standalone.image import query
from computeapi.standalone.image.documents import check_names, facts, view, writable
from computeapi.standalone.image.patch import operations_of, patched
from computeapi.standalone.image.service import GlanceController
from computeapi.standalone.query import sort
from computeapi.web.controller import operation
from computeapi.web.faults import UnsupportedMediaType
from computeapi.web.paging import page_query
from computeapi.web.request import Reply, Request

MAX_TAG = 255
OCTETS = 'application/octet-stream'


class GlanceImageResources(GlanceController):
    path = '/images'

    @operation('GET', policy=CALLER)
    def list(self, req: Request) -> dict[str, Any]:
        limit = query.limit(req)
        found = self.images.list(
            req.context,
            filters=query.filters(req),
            sort=sort(req),
            limit=limit,
            marker=req.parameter('marker') or None,
        )
        document = {
            'images': [view(image) for image in found],
            'first': _address(page_query(req)),
            'schema': '/v2/schemas/images',
        }
        if found and len(found) == limit:
            document['next'] = _address(page_query(req, found[-1].id))
        return document

    @operation('POST', policy=WRITER, body={'type': 'object'}, status=201)
    def create(self, req: Request, body: dict[str, Any]) -> Reply:
        check_names(body)
        given = {'visibility': 'shared', **facts(body)}
        name, image_id = given.pop('name', None), given.pop('id', None)
        image = self.images.create(req.context, name, image_id=image_id, **given)
        return Reply(view(image), {'Location': f'{req.endpoint}/images/{image.id}'})

    @operation('GET', '/{image_id}', policy=CALLER)
    def show(self, req: Request, image_id: str) -> dict[str, Any]:
        return view(self.images.get(req.context, image_id))

    @operation('PATCH', '/{image_id}', policy=WRITER, body={})
    def update(self, req: Request, image_id: str, body: Any) -> dict[str, Any]:
        operations = operations_of(body, req.content_type)

        def change(image: Image) -> dict[str, Any]:
            wanted = facts(patched(writable(image), operations))
            return {name: value for name, value in wanted.items() if value != getattr(image, name)}

        return view(self.images.change(req.context, image_id, change))

    @operation('DELETE', '/{image_id}', policy=WRITER, status=204)
    def delete(self, req: Request, image_id: str) -> None:
        self.images.delete(req.context, image_id)

    @operation('PUT', '/{image_id}/file', policy=WRITER, status=204)
    def upload(self, req: Request, image_id: str) -> None:
        if req.content_type != OCTETS:
            raise UnsupportedMediaType(f'Content-Type must be {OCTETS}.')
        self.images.upload(req.context, image_id, chunks(req))

    @operation('GET', '/{image_id}/file', policy=WRITER)
    def download(self, req: Request, image_id: str) -> webob.Response | Reply:
        """The data, or the part that a Range asks for."""
        image = self.images.get(req.context, image_id)
        part = None if image.size is None else wanted_part(req, image.size)
        try:
            data = self.images.download(req.context, image_id)
        except errors.ImageNotActive:
            return Reply(status=204)
        response = webob.Response(app_iter=data, content_type=OCTETS)
        if part is not None:
            start, stop = part
            data.narrow(start, stop)
            response.status_code = 206
            response.content_range = (start, stop, image.size)
            response.content_length = stop - start
        else:
            response.content_length = image.size
            response.content_md5 = image.checksum
        return response

    @operation('POST', '/{image_id}/actions/deactivate', policy=WRITER, status=204)
    def deactivate(self, req: Request, image_id: str) -> None:
        self.images.deactivate(req.context, image_id)

    @operation('POST', '/{image_id}/actions/reactivate', policy=WRITER, status=204)
    def reactivate(self, req: Request, image_id: str) -> None:
        self.images.reactivate(req.context, image_id)

    @operation('PUT', '/{image_id}/tags/{tag}', policy=WRITER, status=204)
    def add_tag(self, req: Request, image_id: str, tag: str) -> None:
        if len(tag) > MAX_TAG:
            raise errors.Invalid(f'A tag must not be longer than {MAX_TAG} characters.')
        self.images.change(req.context, image_id, lambda image: {'tags': (*image.tags, tag)})

    @operation('DELETE', '/{image_id}/tags/{tag}', policy=WRITER, status=204)
    def remove_tag(self, req: Request, image_id: str, tag: str) -> None:
        def change(image: Image) -> dict[str, Any]:
            if tag not in image.tags:
                raise errors.NotFound(f'Image {image_id} has no tag {tag}.')
            return {'tags': [other for other in image.tags if other != tag]}

        self.images.change(req.context, image_id, change)


def wanted_part(req: Request, size: int) -> tuple[int, int] | None:
    """The first byte that the Range header asks for, and the one after the last; None: all.

    Raises Invalid for several ranges, RangeNotSatisfiable for a range that is malformed or outside the data.
    """
    text = req.headers.get('Range')
    if text is None:
        return None
    if ',' in text:
        raise errors.Invalid('Requests with multiple ranges are not supported; ask for one range at a time.')
    wanted = Range.parse(text)
    part = None if wanted is None else wanted.range_for_length(size)
    if part is None:
        raise errors.RangeNotSatisfiable()
    return part


def chunks(req: Request) -> Iterator[bytes]:
    """The body in chunks, of any length. Raises Invalid if the client disconnects before its end."""
    try:
        yield from iter(lambda: req.body_file.read(CHUNK), b'')
    except OSError:
        raise errors.Invalid('The data is shorter than announced.') from None


def _address(query: str) -> str:
    return f'/v2/images?{query}' if query else '/v2/images'
