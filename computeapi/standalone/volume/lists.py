"""Lists of volumes, snapshots and attachments: filters, pages, counts."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from computeapi import errors
from computeapi.backends.volume.local.kept import MAX_IMAGE_METADATA
from computeapi.db.listing import MAX_PAGE
from computeapi.standalone.access import CALLER
from computeapi.standalone.query import comparison, number, sort, truth
from computeapi.standalone.volume.service import CinderController, added
from computeapi.web.contract import View
from computeapi.web.controller import operation
from computeapi.web.paging import next_link
from computeapi.web.request import Request

MAX_MAPPING = 4096

Parser = Callable[[str, str], Any]
Parsers = Mapping[str, Parser]


def text(name: str, value: str) -> str:
    return value


def mapping(name: str, value: str) -> dict[str, str]:
    """`{"key": "value"}`; clients write it with either kind of quotes."""
    try:
        found = orjson.loads(value[:MAX_MAPPING].replace("'", '"'))
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(item, str) for item in found.values()):
        raise errors.Invalid(f'{name} must be a mapping of names to values.')
    # Each is a part of the statement, of which SQLite takes a thousand.
    if len(found) > MAX_IMAGE_METADATA:
        raise errors.Invalid(f'{name} must not have more than {MAX_IMAGE_METADATA} items.')
    return found


COMMON: Parsers = {
    **dict.fromkeys(('id', 'name', 'status', 'user_id', 'project_id'), text),
    **dict.fromkeys(('created_at', 'updated_at'), comparison),
    'metadata': mapping,
}
VOLUME_FILTERS: Parsers = {
    **COMMON,
    **dict.fromkeys(('availability_zone', 'volume_type', 'snapshot_id', 'group_id'), text),
    **dict.fromkeys(('bootable', 'multiattach'), truth),
    'glance_metadata': mapping,
}
SNAPSHOT_FILTERS: Parsers = {**COMMON, 'volume_id': text}
BACKUP_FILTERS: Parsers = {**COMMON, 'volume_id': text, 'snapshot_id': text}
TRANSFER_FILTERS: Parsers = dict.fromkeys(('id', 'name', 'volume_id'), text)
GROUP_FILTERS: Parsers = dict.fromkeys(('id', 'name', 'status', 'group_type', 'project_id'), text)
MESSAGE_FILTERS: Parsers = dict.fromkeys(
    ('event_id', 'message_level', 'request_id', 'resource_type', 'resource_uuid'), text
)
ATTACHMENT_FILTERS: Parsers = dict.fromkeys(('status', 'project_id', 'volume_id', 'instance_id'), text)

RENAMED = {'glance_metadata': 'image_metadata', 'instance_id': 'server_id'}
"""What the backend calls otherwise."""

COUNT = {'with_count': added('3.45', True)}
"""Whether a list tells how many items there are in all pages, as `with_count` asks for."""


class CinderCollection(CinderController):
    """What is listed in pages, under this noun, with or without details."""

    noun: str
    summary: View
    detail: View
    filters: Parsers
    counted = True

    def found(self, req: Request, **asked: Any) -> Iterable[Any]:
        """The items of a page: filters, limit, marker, all_projects."""
        raise NotImplementedError

    def count(self, req: Request, **asked: Any) -> int:
        """How many items there are in all pages: filters, all_projects."""
        raise NotImplementedError

    @operation('GET', policy=CALLER, behaviour=COUNT)
    def list(self, req: Request) -> dict[str, Any]:
        return self._list(req, self.summary)

    @operation('GET', '/detail', policy=CALLER, behaviour=COUNT)
    def list_in_detail(self, req: Request) -> dict[str, Any]:
        return self._list(req, self.detail)

    def _list(self, req: Request, view: View) -> dict[str, Any]:
        asked = self.asked(req)
        limit = min(number('limit', req.parameter('limit', str(MAX_PAGE))), MAX_PAGE)
        found = self.found(req, **asked, limit=limit, marker=req.parameter('marker') or None)
        items = view.render_all(req, found)
        last = items[-1]['id'] if items else ''
        further = next_link(req, items, limit, last, without='offset')
        document: dict[str, Any] = {self.noun: items, **({f'{self.noun}_links': further} if further else {})}
        if self.counted and req.behaviour.with_count and truth('with_count', req.parameter('with_count', '0')):
            document['count'] = self.count(req, **asked)
        return document

    def asked(self, req: Request) -> dict[str, Any]:
        """The filters in the words of the backend, and whether all projects are meant; others mean nothing."""
        known = [(name, values[-1]) for name, values in req.query.items() if name in self.filters]
        return {
            'filters': {RENAMED.get(name, name): self.filters[name](name, value) for name, value in known},
            'all_projects': truth('all_tenants', req.parameter('all_tenants') or '0'),
        }


def page(req: Request) -> dict[str, Any]:
    """The part of a list that is asked for, where it does not say what comes next."""
    limit = number('limit', req.parameter('limit')) if 'limit' in req.query else None
    return {**window(req), 'limit': limit, 'marker': req.parameter('marker') or None}


def window(req: Request) -> dict[str, Any]:
    """In which order the items are, and how many of them are passed over."""
    return {'sort': sort(req), 'offset': number('offset', req.parameter('offset')) if 'offset' in req.query else None}
