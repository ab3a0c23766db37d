"""Lists of the volume service: filters, pages and counts."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from computeapi import errors
from computeapi.db.listing import MAX_PAGE
from computeapi.standalone.access import CALLER
from computeapi.standalone.query import comparison, mapping, number, sort, truth
from computeapi.standalone.volume.service import CinderController, added
from computeapi.versions import resolve
from computeapi.web.contract import View
from computeapi.web.controller import operation
from computeapi.web.paging import next_link
from computeapi.web.request import Request

MAX_SHOWN = 300
MAX_BOUNDS = 10
"""The maximum number of bounds of a time. Each adds to the statement, and SQLite allows a thousand."""

CONSUMES_QUOTA = 'consumes_quota'
"""A filter that everything here passes: there are no temporary volumes or snapshots."""

CONTROLS = frozenset({'limit', 'marker', 'offset', 'sort', 'sort_key', 'sort_dir', 'all_tenants', 'with_count'})
"""Parameters that are no filters."""

STRICT = {'strict': added('3.31', True)}
"""Whether unknown filters are refused; before, they are ignored."""

Parser = Callable[[str, str], Any]
Parsers = Mapping[str, Parser]


def text(name: str, value: str) -> str:
    return value


def several_comparisons(name: str, value: str) -> list[tuple[str, datetime]]:
    """Parses `gte:2030-01-01T00:00:00Z,lt:2031-01-01T00:00:00Z`."""
    parts = value.split(',')
    if len(parts) > MAX_BOUNDS:
        raise errors.Invalid(f'{name} must not have more than {MAX_BOUNDS} bounds.')
    return [comparison(name, part) for part in parts]


def unless_none(name: str, value: str) -> str | None:
    return None if value.lower() == 'none' else value


COMMON: Parsers = {
    **dict.fromkeys(('id', 'name', 'status', 'user_id', 'project_id'), text),
    **dict.fromkeys(('created_at', 'updated_at'), several_comparisons),
    'metadata': mapping,
}
VOLUME_FILTERS: Parsers = {
    **COMMON,
    **dict.fromkeys(('availability_zone', 'volume_type', 'volume_type_id', 'snapshot_id', 'group_id'), text),
    **dict.fromkeys(('description', 'display_name'), text),
    **dict.fromkeys(('bootable', 'multiattach', 'encrypted', CONSUMES_QUOTA), truth),
    'size': number,
    'migration_status': unless_none,
    'glance_metadata': mapping,
}
SNAPSHOT_FILTERS: Parsers = {**COMMON, 'volume_id': text, 'availability_zone': text, CONSUMES_QUOTA: truth}
BACKUP_FILTERS: Parsers = {**COMMON, 'volume_id': text, 'snapshot_id': text}
TRANSFER_FILTERS: Parsers = dict.fromkeys(('id', 'name', 'volume_id'), text)
GROUP_FILTERS: Parsers = dict.fromkeys(('id', 'name', 'status', 'group_type', 'project_id'), text)
MESSAGE_FILTERS: Parsers = dict.fromkeys(
    ('event_id', 'message_level', 'request_id', 'resource_type', 'resource_uuid'), text
)
ATTACHMENT_FILTERS: Parsers = dict.fromkeys(('status', 'project_id', 'volume_id', 'instance_id'), text)

RENAMED = {'glance_metadata': 'image_metadata', 'instance_id': 'server_id', 'display_name': 'name'}
"""Filters that have another name in the backend."""

COUNT = {'with_count': added('3.45', True)}
"""Whether a list can show the total number of items, requested by `with_count`."""


class CinderCollection(CinderController):
    """A paged list of the items named by the noun, with or without details."""

    noun: str
    summary: View
    detail: View
    filters: Parsers
    counted = True

    def found(self, req: Request, **options: Any) -> Iterable[Any]:
        """The items of a page: filters, limit, marker, all_projects."""
        raise NotImplementedError

    def count(self, req: Request, **options: Any) -> int:
        """The number of items on all pages: filters, all_projects."""
        raise NotImplementedError

    @operation('GET', policy=CALLER, behaviour=COUNT)
    def list(self, req: Request) -> dict[str, Any]:
        return self._list(req, self.summary)

    @operation('GET', '/detail', policy=CALLER, behaviour=COUNT)
    def list_in_detail(self, req: Request) -> dict[str, Any]:
        return self._list(req, self.detail)

    def _list(self, req: Request, view: View) -> dict[str, Any]:
        options = self.search_options(req)
        limit = min(number('limit', req.parameter('limit', str(MAX_PAGE))), MAX_PAGE)
        found = self.found(req, **options, limit=limit, marker=req.parameter('marker') or None)
        items = view.render_all(req, found)
        last = items[-1]['id'] if items else ''
        further = next_link(req, items, limit, last, without='offset')
        document: dict[str, Any] = {self.noun: items, **({f'{self.noun}_links': further} if further else {})}
        if self.counted and req.behaviour.with_count and truth('with_count', req.parameter('with_count', '0')):
            document['count'] = self.count(req, **options)
        return document

    def search_options(self, req: Request) -> dict[str, Any]:
        """The filters in the backend's terms, and whether to include all projects; raises Invalid for unknown ones."""
        unknown = sorted(req.query.keys() - self.filters.keys() - CONTROLS)
        if unknown and resolve(STRICT, req.version):
            raise errors.Invalid(f'Invalid filters {",".join(unknown)[:MAX_SHOWN]} are found in query options.')
        known = [(name, values[-1]) for name, values in req.query.items() if name in self.filters]
        filters = {RENAMED.get(name, name): self.filters[name](name, value) for name, value in known}
        if not filters.pop(CONSUMES_QUOTA, True):
            filters['id'] = []
        return {
            'filters': filters,
            'all_projects': truth('all_tenants', req.parameter('all_tenants') or '0'),
        }


def page(req: Request) -> dict[str, Any]:
    """The order and page that the query asks for; limit is None if it is not given."""
    limit = number('limit', req.parameter('limit')) if 'limit' in req.query else None
    return {**window(req), 'limit': limit, 'marker': req.parameter('marker') or None}


def window(req: Request) -> dict[str, Any]:
    """The order of the items, and the number of items to skip."""
    return {'sort': sort(req), 'offset': number('offset', req.parameter('offset')) if 'offset' in req.query else None}
