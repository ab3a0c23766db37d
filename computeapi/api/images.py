"""/images: a proxy to images, until 2.35, and to their metadata, until 2.38."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from oslo_utils import strutils

from computeapi import clock
from computeapi.api import pages
from computeapi.api.cloud import CloudManagers
from computeapi.api.controller import ComputeController
from computeapi.api.gone import PROXIES
from computeapi.api.servers.schemas import ITEM_BODY, ITEMS_BODY
from computeapi.api.types import INTEGER, LIMIT, LINKS, MARKER, NULLABLE_STRING, STRING, check_key, date
from computeapi.backends.image import Image
from computeapi.compute.images import ATTRIBUTES, metadata_of
from computeapi.context import Context
from computeapi.errors import Invalid, NotFound
from computeapi.versions import ABSENT
from computeapi.web.contract import Field, Reader, View, attr
from computeapi.web.controller import Bounds, operation
from computeapi.web.request import Request
from computeapi.web.schemas import query, whole

# ------------------------------------------------------------------ requests

SIZE = {'type': 'string', 'pattern': '^[0-9]+$', 'maxLength': 9}
PARAMETERS = {
    **dict.fromkeys(('limit', 'page_size', 'offset'), LIMIT | {'minimum': 1}),
    'marker': MARKER,
    **dict.fromkeys(('name', 'status', 'changes-since', 'server', 'type'), STRING),
    **dict.fromkeys(('minRam', 'minDisk'), SIZE),
}
PAGE = query(PARAMETERS, patternProperties={'^property-.*$': STRING})

STATUSES = {'queued': 'SAVING', 'saving': 'SAVING', 'active': 'ACTIVE', 'deleted': 'DELETED', 'killed': 'ERROR'}
COLUMNS = {'name': 'name', 'minRam': 'min_ram', 'minDisk': 'min_disk', 'type': 'image_type', 'server': 'instance_uuid'}


def filters_of(query: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The filters of a query, by the image service's names; Invalid for a bad date or an attribute as a property."""
    found: dict[str, Any] = {}
    for name, values in query.items():
        value = values[-1]
        if name == 'changes-since':
            found['updated_at'] = ('gte', moment(value))
        elif name == 'status':
            found['status'] = [ours for ours, theirs in STATUSES.items() if theirs == value.upper()] or [value]
        elif name in ('minRam', 'minDisk'):
            found[COLUMNS[name]] = int(value)
        elif name in COLUMNS:
            # A server may be given by its link.
            found[COLUMNS[name]] = value.rpartition('/')[2] if name == 'server' else value
        elif name.startswith('property-'):
            found[property_name(name)] = value
    return found


def moment(text: str) -> Any:
    try:
        return clock.parsed(text)
    except ValueError:
        raise Invalid('Invalid changes-since: it must be a date and time in ISO 8601.') from None


def property_name(parameter: str) -> str:
    name = parameter.removeprefix('property-')
    if name in ATTRIBUTES:
        raise Invalid(f'Invalid filter {parameter}: {name} is an attribute of images, not a property.')
    return name


# ------------------------------------------------------------------ views

# Nearly all values are text; lists of disks are not.
METADATA = {'type': 'object', 'additionalProperties': {}}
PROGRESS = {'queued': 25, 'saving': 50, 'active': 100}
ALTERNATE = 'application/vnd.openstack.image'


def image_address(cloud: CloudManagers, context: Context) -> str | None:
    """The URL of the image service, if it is a separate one or configured."""
    prefix: str | None = cloud.conf.api.glance_link_prefix
    return prefix or cloud.images.address(context)


class ImageAtAddress(NamedTuple):
    """An image, with the URL of the image service."""

    image: Image
    address: str


def links(req: Request) -> Reader:
    def read(shown: ImageAtAddress) -> list[dict[str, str]]:
        alternate = {'rel': 'alternate', 'type': ALTERNATE, 'href': f'{shown.address}/images/{shown.image.id}'}
        return [*req.links('images', shown.image.id), alternate]

    return read


def disk_config(shown: ImageAtAddress) -> Any:
    """Whether servers resize their disk partition automatically, if the image says so."""
    automatic = shown.image.properties.get('auto_disk_config')
    return ABSENT if automatic is None else 'AUTO' if strutils.bool_from_string(automatic) else 'MANUAL'


def server(req: Request) -> Reader:
    """The server that the image was created from."""

    def read(shown: ImageAtAddress) -> Any:
        server_id = shown.image.properties.get('instance_uuid')
        return {'id': server_id, 'links': req.links('servers', server_id)} if server_id else ABSENT

    return read


NAMED = {
    'id': Field(STRING, attr('image.id')),
    'name': Field(NULLABLE_STRING, attr('image.name')),
    'links': Field(LINKS, links, request=True),
}
SUMMARY = View(NAMED)
IMAGE = View(
    NAMED
    | {
        'status': Field(STRING, lambda shown: STATUSES.get(shown.image.status, 'UNKNOWN')),
        'progress': Field(INTEGER, lambda shown: PROGRESS.get(shown.image.status, 0)),
        'minDisk': Field(INTEGER, attr('image.min_disk')),
        'minRam': Field(INTEGER, attr('image.min_ram')),
        'metadata': Field(METADATA, lambda shown: metadata_of(shown.image)),
        'created': date('image.created_at'),
        'updated': date('image.updated_at'),
        'OS-EXT-IMG-SIZE:size': Field(INTEGER, lambda shown: shown.image.size or 0),
        'OS-DCF:diskConfig': Field(STRING, disk_config, optional=True),
        'server': Field(whole({'id': STRING, 'links': LINKS}), server, request=True, optional=True),
    }
)


class ProxiedImages(ComputeController):
    """A proxy to the images of the image service."""

    path = '/images'
    versions = PROXIES

    @operation('GET', policy=None, query=PAGE, response=pages.schema('images', SUMMARY))
    def index(self, req: Request) -> dict[str, Any]:
        """List images."""
        return self.page(req, SUMMARY)

    @operation('GET', '/detail', policy=None, query=PAGE, response=pages.schema('images', IMAGE))
    def detail(self, req: Request) -> dict[str, Any]:
        """List images with details."""
        return self.page(req, IMAGE)

    def page(self, req: Request, view: View) -> dict[str, Any]:
        limit, marker, *_ = pages.requested_page(req, self.cloud.max_limit)
        found = self.cloud.images.list(req.context, filters=filters_of(req.query), limit=limit, marker=marker or None)
        address = self.address(req)
        shown = view.render_all(req, [ImageAtAddress(image, address) for image in found])
        return pages.page_response(req, 'images', shown, limit)

    def address(self, req: Request) -> str:
        """The URL of the image service."""
        return image_address(self.cloud, req.context) or req.link_prefix + '/image'

    @operation('GET', '/{id}', policy=None, response={'image': IMAGE})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show an image."""
        image = self.cloud.image_proxy.get(req.context, id)
        return {'image': IMAGE.render(req, ImageAtAddress(image, self.address(req)))}

    @operation('DELETE', '/{id}', policy=None, status=204, errors=(403,))
    def delete(self, req: Request, id: str) -> None:
        """Delete an image."""
        self.cloud.image_proxy.delete(req.context, id)


class ImageMetadata(ComputeController):
    """A proxy to the metadata of images."""

    path = '/images/{image_id}/metadata'
    versions = Bounds(last='2.38')

    @operation('GET', policy=None, response={'metadata': METADATA}, errors=(403,))
    def index(self, req: Request, image_id: str) -> dict[str, Any]:
        """List the metadata of an image."""
        return {'metadata': self.cloud.image_proxy.metadata(req.context, image_id)}

    @operation('GET', '/{id}', policy=None, response={'meta': METADATA}, errors=(403,))
    def show(self, req: Request, image_id: str, id: str) -> dict[str, Any]:
        """Show a metadata item of an image."""
        items = self.cloud.image_proxy.metadata(req.context, image_id)
        if id not in items:
            raise NotFound()
        return {'meta': {id: items[id]}}

    @operation('POST', policy=None, body=ITEMS_BODY, response={'metadata': METADATA}, errors=(403,))
    def create(self, req: Request, image_id: str, body: Any) -> dict[str, Any]:
        """Set metadata items of an image; the others are kept."""
        return {'metadata': self.cloud.image_proxy.add_metadata(req.context, image_id, body['metadata'])}

    @operation('PUT', policy=None, body=ITEMS_BODY, response={'metadata': METADATA}, errors=(403,))
    def replace(self, req: Request, image_id: str, body: Any) -> dict[str, Any]:
        """Replace the metadata of an image."""
        return {'metadata': self.cloud.image_proxy.replace_metadata(req.context, image_id, body['metadata'])}

    @operation('PUT', '/{id}', policy=None, body=ITEM_BODY, response={'meta': METADATA}, errors=(403,))
    def update(self, req: Request, image_id: str, id: str, body: Any) -> dict[str, Any]:
        """Set a metadata item of an image."""
        check_key(id, body['meta'])
        self.cloud.image_proxy.add_metadata(req.context, image_id, body['meta'])
        return {'meta': body['meta']}

    @operation('DELETE', '/{id}', policy=None, status=204, errors=(403,))
    def delete(self, req: Request, image_id: str, id: str) -> None:
        """Delete a metadata item of an image."""
        self.cloud.image_proxy.delete_metadata(req.context, image_id, id)
