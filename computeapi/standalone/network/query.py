"""What the query of a list asks for: filters, fields, order and page."""

from typing import Any

from computeapi import errors
from computeapi.db.listing import Page
from computeapi.db.network_collection import Document
from computeapi.standalone.query import MAX_SORT_KEYS, MAX_VALUES, number, one_of
from computeapi.web.paging import next_link
from computeapi.web.request import Request

MAX_PAGE = 1000
RESERVED = ('fields', 'limit', 'marker', 'sort_key', 'sort_dir')


def filters(req: Request) -> dict[str, list[str]]:
    """Every parameter that says nothing about the page is an attribute with the values that fit."""
    if sum(map(len, req.query.values())) > MAX_VALUES:
        raise errors.Invalid(f'A query may have no more than {MAX_VALUES} parameters.')
    return {name: [*values] for name, values in req.query.items() if name not in RESERVED}


def fields(req: Request) -> list[str]:
    return [name for name in req.query.get('fields', ()) if name]


def page(req: Request) -> Page:
    return Page(sort=_sort(req), marker=req.parameter('marker') or None, limit=_limit(req))


def links(req: Request, key: str, documents: list[Document], limit: int | None) -> dict[str, Any]:
    """The way to the next page, if this one is full."""
    further = next_link(req, documents, limit, documents[-1]['id'] if documents else '')
    return {f'{key}_links': further} if further else {}


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
    """As many as asked for, but never more than one answer should hold; 0 is no wish at all."""
    return min(number('limit', req.parameter('limit', '0')) or MAX_PAGE, MAX_PAGE)
