"""The query parameters of network lists: filters, fields, order and page."""

from typing import Any

from computeapi import errors
from computeapi.db.listing import Page
from computeapi.db.network_collection import Document
from computeapi.standalone.query import MAX_SORT_KEYS, MAX_VALUES, number, one_of
from computeapi.web.paging import link_after
from computeapi.web.request import Request

MAX_PAGE = 1000
REVERSE = 'page_reverse'
RESERVED = ('fields', 'limit', 'marker', 'sort_key', 'sort_dir', REVERSE)


def filters(req: Request) -> dict[str, list[str]]:
    """Every parameter other than those for paging and fields is a filter: an attribute with its accepted values."""
    if sum(map(len, req.query.values())) > MAX_VALUES:
        raise errors.Invalid(f'A query may have no more than {MAX_VALUES} parameters.')
    return {name: [*values] for name, values in req.query.items() if name not in RESERVED}


def fields(req: Request) -> list[str]:
    return [name for name in req.query.get('fields', ()) if name]


def page(req: Request) -> Page:
    return Page(_limit(req), req.parameter('marker') or None, _sort(req), _is_reversed(req))


def links(req: Request, key: str, documents: list[Document], page: Page) -> dict[str, Any]:
    """The links to the next page and, if the request limits the page, to the previous one; not beyond a page that is
    not full. Beside an empty page, they lead to the first page and to the last one."""
    is_full, is_limited = len(documents) == page.limit, int(req.parameter('limit', '0')) > 0
    found = []
    if is_full or page.backwards and is_limited:
        found += link_after(req, documents[-1]['id'] if documents else None, without=REVERSE)
    if is_limited and (is_full or not page.backwards):
        [link] = link_after(req, documents[0]['id'] if documents else None, without=REVERSE)
        found.append({'rel': 'previous', 'href': f'{link["href"]}&{REVERSE}=True'})
    return {f'{key}_links': found} if found else {}


def _is_reversed(req: Request) -> bool:
    return req.parameter(REVERSE, '').lower() in ('true', '1')


def _sort(req: Request) -> list[tuple[str, bool]]:
    keys, directions = req.query.get('sort_key', ()), req.query.get('sort_dir', ())
    if len(keys) > MAX_SORT_KEYS:
        raise errors.Invalid(f'sort_key may be given {MAX_SORT_KEYS} times at most.')
    if directions and len(directions) != len(keys):
        raise errors.Invalid('The number of sort_keys and sort_dirs must be same')
    direction = one_of('asc', 'desc')
    descending = (direction('sort_dir', text) == 'desc' for text in directions or ['asc'] * len(keys))
    return list(zip(keys, descending, strict=True))


def _limit(req: Request) -> int:
    """The requested limit, at most MAX_PAGE; 0 means no limit was requested."""
    return min(number('limit', req.parameter('limit', '0')) or MAX_PAGE, MAX_PAGE)
