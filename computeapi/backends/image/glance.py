"""Images of a Glance."""

import builtins
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import requests
from oslo_config import cfg
from oslo_utils.uuidutils import is_uuid_like

from computeapi import clock
from computeapi.backends.image import Image, texts
from computeapi.backends.neighbour import NeighbourService, Refusals, pieces
from computeapi.context import Context
from computeapi.errors import (
    Conflict,
    Error,
    Forbidden,
    ImageNotActive,
    ImageNotFound,
    Invalid,
    NeighbourAway,
    TooLarge,
)

if TYPE_CHECKING:
    from computeapi.backends.image.signatures import Signatures

NEWEST_FIRST = (('created_at', 'desc'),)
MAX_IMAGES = 1000
"""The maximum number of images in a list, and in a page of Glance."""
PIECE = 2**20
SENT = 2**16
"""The size of chunks in uploads; uwsgi, under which Glance may run, does not accept chunks of a MiB."""
PATCH = 'application/openstack-images-v2.1-json-patch'

VERSION = re.compile(r'(/v\d[^/]*)?/*$')
"""The end of a versioned endpoint URL."""

NAMES_IN_GLANCE = {'hidden': 'os_hidden', 'hash_value': 'os_hash_value'}
"""The attributes of Image with other names in Glance."""
PLAIN = (
    *('id', 'name', 'status', 'owner', 'visibility', 'size', 'virtual_size', 'disk_format', 'container_format'),
    *('checksum', 'protected'),
)
ATTRIBUTES = frozenset({*PLAIN, *NAMES_IN_GLANCE.values(), 'min_disk', 'min_ram', 'tags', 'created_at', 'updated_at'})
# Further keys of a body, about the data and its locations, which are not passed on to servers.
UNTOLD = frozenset({'self', 'file', 'schema', 'locations', 'direct_url', 'stores', 'os_hash_algo'})

COMPARED = frozenset({'id', 'name', 'status', 'disk_format', 'container_format'})
"""Filters that accept an operator, so that a value with a colon must be preceded by one."""
# Reserved words of Glance's queries, which it does not treat as properties.
WORDS = frozenset({'limit', 'marker', 'tag', 'tags', 'sort', 'sort_key', 'sort_dir', 'member_status', 'deleted'})
WORDS |= {'changes-since', 'is_public', 'properties', 'metadata', 'members', 'locations'} | UNTOLD
BOUNDS = frozenset({'size_min', 'size_max'})

Filters = dict[str, Any]


class GlanceImages:
    """See `computeapi.backends.image.Images`. Glance itself enforces policies and quotas."""

    def __init__(self, conf: cfg.ConfigOpts):
        self.service = NeighbourService(conf, 'Glance', 'glance', 'image', 2)
        options = conf.glance
        self.verifies, self.validates = options.verify_glance_signatures, options.enable_certificate_validation
        defaults = options.default_trusted_certificate_ids if self.verifies and self.validates else ()
        self.trusted_certificates: Sequence[str] = tuple(defaults)

    @functools.cached_property
    def signatures(self) -> 'Signatures':
        """Imported on first use, because its dependencies take long to load."""
        from computeapi.backends.image.signatures import Signatures

        return Signatures(self.service.conf)

    def translating_errors(
        self, context: Context, image_id: str = '', refusals: Refusals | None = None
    ) -> AbstractContextManager[None]:
        usual: Refusals = {
            400: Invalid,
            403: Forbidden,
            404: lambda words: ImageNotFound(id=image_id),
            409: Conflict,
            410: lambda words: NeighbourAway(words),
            413: TooLarge,
        }
        return self.service.translating_errors(context, {**usual, **(refusals or {})})

    def address(self, context: Context) -> str | None:
        with self.translating_errors(context):
            return VERSION.sub('', self.service.adapter(context).get_endpoint() or '')

    def get(self, context: Context, image_id: str) -> Image:
        path = _path(image_id)
        with self.translating_errors(context, image_id):
            return image_of(self.service.adapter(context).get(path).json())

    def get_many(self, context: Context, image_ids: Iterable[str]) -> dict[str, Image]:
        missing = {image_id for image_id in image_ids if is_uuid_like(image_id)}
        found: dict[str, Image] = {}
        # A list contains either hidden images or others, never both; hardly any image is hidden.
        for hidden in (False, True):
            for ids in pieces(missing):
                filters = {'id': ids, 'hidden': hidden, 'visibility': 'all', 'member_status': 'all'}
                found |= {image.id: image for image in self.list(context, filters=filters)}
            missing -= found.keys()
        return found

    def list(
        self,
        context: Context,
        *,
        filters: Mapping[str, Any] | None = None,
        sort: Sequence[tuple[str, str]] = NEWEST_FIRST,
        limit: int | None = None,
        marker: str | None = None,
    ) -> builtins.list[Image]:
        room = MAX_IMAGES if limit is None else min(limit, MAX_IMAGES)
        if marker is not None and not is_uuid_like(marker):
            raise _no_such_marker(marker)
        query, rest = query_of(filters or {})
        query |= {'sort': ','.join(f'{NAMES_IN_GLANCE.get(key, key)}:{way}' for key, way in sort)}
        images = (image for image in self._all(context, query, room, marker) if fits(image, rest))
        return [*itertools.islice(images, room)]

    def _all(self, context: Context, query: Filters, limit: int, marker: str | None) -> Iterator[Image]:
        """All images that match the query, page by page."""
        unknown = dict.fromkeys((403, 404), lambda words: _no_such_marker(marker or '')) if marker else {}
        glance, more = self.service.adapter(context), limit > 0
        while more:
            place = {'limit': limit} if marker is None else {'limit': limit, 'marker': marker}
            with self.translating_errors(context, refusals=unknown):
                page = glance.get('/images', params=query | place).json()
            yield from map(image_of, page['images'])
            more = 'next' in page and bool(page['images'])
            marker = page['images'][-1]['id'] if more else None

    def create(self, context: Context, name: str | None, *, image_id: str | None = None, **kwargs: Any) -> Image:
        wanted = {'id': image_id} if image_id is not None else {}
        body = body_of({'name': name, 'visibility': 'private', **wanted, **kwargs})
        with self.translating_errors(context, image_id or ''):
            return image_of(self.service.adapter(context).post('/images', json=body).json())

    def upload(self, context: Context, image_id: str, data: Iterable[bytes]) -> Image:
        path, pieces = f'{_path(image_id)}/file', Pieces(data)
        headers = {'Content-Type': 'application/octet-stream'}
        # The data can be sent only once: no retry may start with what is left of them.
        once = {'connect_retries': 0, 'status_code_retries': 0, 'allow_reauth': False, 'redirect': False}
        try:
            with self.translating_errors(context, image_id):
                self.service.adapter(context).put(path, data=iter(pieces), headers=headers, **once)
        except Conflict:
            # The failed upload may have been reset since.
            if self.get(context, image_id).status in ('saving', 'queued'):
                raise NeighbourAway(f'Glance does not release an interrupted upload of image {image_id}.') from None
            raise
        except Error:
            if pieces.error is not None:
                raise pieces.error from None
            raise
        return self.get(context, image_id)

    def download(self, context: Context, image_id: str) -> Iterator[bytes]:
        path = f'{_path(image_id)}/file'
        with self.translating_errors(context, image_id):
            response = self.service.adapter(context).get(path, stream=True)
        if response.status_code == 204:
            raise ImageNotActive(id=image_id)
        return self._pieces(response)

    def _pieces(self, response: requests.Response) -> Iterator[bytes]:
        with response:
            try:
                yield from response.iter_content(PIECE)
            except requests.RequestException as error:
                raise NeighbourAway(name=self.service.name) from error

    def check_signature(self, context: Context, image_id: str, trusted: Sequence[str]) -> bool:
        """If the server has trusted certificates, its image is verified and the certificate validated, whatever the
        options say; default certificates apply to servers without any. The image is read as this service itself,
        because the caller's token may have expired long ago."""
        trusted = trusted or self.trusted_certificates
        if not (trusted or self.verifies):
            return False
        image = self.get(context.elevated(), image_id)
        verifier = self.signatures.verifier(context, image, trusted, validates=self.validates)
        verifier.check(self.download(context.elevated(), image_id))
        return True

    def update(self, context: Context, image_id: str, **kwargs: Any) -> Image:
        path = _path(image_id)
        with self.translating_errors(context, image_id):
            glance = self.service.adapter(context)
            known = image_of(glance.get(path).json()).properties if 'properties' in kwargs else {}
            changes = [*patch(known, kwargs)]
            return image_of(glance.patch(path, json=changes, headers={'Content-Type': PATCH}).json())

    def delete(self, context: Context, image_id: str) -> None:
        path = _path(image_id)
        with self.translating_errors(context, image_id):
            self.service.adapter(context).delete(path)


class Pieces:
    """The data of an upload, and the error of reading them, which the HTTP library would hide behind its own."""

    def __init__(self, data: Iterable[bytes]):
        self.data = data
        self.error: BaseException | None = None

    def __iter__(self) -> Iterator[bytes]:
        try:
            for piece in self.data:
                for start in range(0, len(piece), SENT):
                    yield piece[start : start + SENT]
        except Exception as error:
            self.error = error
            raise


def _path(image_id: str) -> str:
    """The path of an image; ImageNotFound for anything but a UUID, so that no other path is requested."""
    if not is_uuid_like(image_id):
        raise ImageNotFound(id=image_id)
    return f'/images/{image_id}'


def _no_such_marker(marker: str) -> Invalid:
    return Invalid(f'No image found with ID {marker}')


# ------------------------------------------------------------------ bodies


def image_of(body: Mapping[str, Any]) -> Image:
    """The image in a body of Glance. Keys that are not attributes are properties."""
    properties = {name: value for name, value in body.items() if name not in ATTRIBUTES and name not in UNTOLD}
    return Image(
        **{name: body.get(name) for name in PLAIN},  # type: ignore[arg-type]
        min_disk=body.get('min_disk') or 0,
        min_ram=body.get('min_ram') or 0,
        hidden=bool(body.get('os_hidden')),
        hash_value=body.get('os_hash_value') if body.get('os_hash_algo') == 'sha512' else None,
        tags=tuple(sorted(body.get('tags') or ())),
        properties=texts(properties),
        created_at=_moment(body.get('created_at')),
        updated_at=_moment(body.get('updated_at')),
    )


def _moment(text: str | None) -> datetime | None:
    return clock.parsed(text) if text else None


def body_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The request body for facts about an image."""
    own = {NAMES_IN_GLANCE.get(name, name): value for name, value in facts.items() if name != 'properties'}
    if 'tags' in own:
        own['tags'] = sorted(set(own['tags']))
    properties = texts(facts.get('properties', {}))
    for name in properties.keys() & (ATTRIBUTES | UNTOLD):
        raise Invalid(f'{name} is an attribute of images, not a property.')
    return properties | own


def patch(known: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The JSON patch for the given changes and the existing properties."""
    body = body_of(facts)
    for name in known.keys() - body.keys() if 'properties' in facts else ():
        yield {'op': 'remove', 'path': _pointer(name)}
    for name, value in body.items():
        if name in ATTRIBUTES or name in known:
            if known.get(name) != value:
                yield {'op': 'replace', 'path': _pointer(name), 'value': value}
        else:
            yield {'op': 'add', 'path': _pointer(name), 'value': value}


def _pointer(name: str) -> str:
    return '/' + name.replace('~', '~0').replace('/', '~1')


# ------------------------------------------------------------------ filters


def query_of(filters: Mapping[str, Any]) -> tuple[Filters, Filters]:
    """The query for Glance, and the filters that are left to be applied here."""
    query: Filters = {}
    rest: Filters = {}
    for name, value in filters.items():
        text = _query_text(name, value)
        if value is None:
            continue
        if text is None:
            rest[name] = value
        else:
            query['tag' if name == 'tags' else NAMES_IN_GLANCE.get(name, name)] = text
    return query, rest


def _query_text(name: str, value: Any) -> Any:
    """The value in a query; None if Glance has no such filter."""
    if name in ('created_at', 'updated_at'):
        operator, moment = value
        return f'{operator}:{moment.isoformat()}Z'
    if name == 'tags':
        return [*value]
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple | set | frozenset):
        return _among(value) if name in COMPARED else None
    if name in COMPARED:
        return f'eq:{value}'
    known = name in ATTRIBUTES or name in BOUNDS or name in ('hidden', 'visibility', 'member_status')
    return None if not known and (name in WORDS or name.endswith(('_min', '_max'))) else value


def _among(values: Iterable[Any]) -> str | None:
    quoted = [f'"{value}"' for value in values]
    return None if any('\\' in each or '"' in each[1:-1] for each in quoted) else f'in:{",".join(quoted)}'


def fits(image: Image, filters: Mapping[str, Any]) -> bool:
    """Whether an image matches these filters."""
    return all(_has(image, name, value) for name, value in filters.items())


def _has(image: Image, name: str, value: Any) -> bool:
    several = value if isinstance(value, list | tuple | set | frozenset) else (value,)
    own = name in ATTRIBUTES or name in NAMES_IN_GLANCE
    return (getattr(image, name) if own else image.properties.get(name)) in several
