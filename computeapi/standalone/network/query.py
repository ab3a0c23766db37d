"""What the query of a list asks for: filters, fields, order and page."""

import urllib.parse
from typing import Any

from computeapi import errors
from computeapi.db.listing import Page
from computeapi.db.network_collection import Document
from computeapi.standalone.face import FaceRequest
from computeapi.standalone.query import number, one_of

MAX_PAGE = 1000
MAX_VALUES = 1000
MAX_SORT_KEYS = 10
RESERVED = ('fields', 'limit', 'marker', 'sort_key', 'sort_dir')


def filters(req: FaceRequest) -> dict[str, list[str]]:
    """Every parameter that says nothing about the page is an attribute with the values that fit."""
    if len(req.GET) > MAX_VALUES:
        raise errors.Invalid(f'A query may have no more than {MAX_VALUES} parameters.')
    return {name: req.GET.getall(name) for name in req.GET if name not in RESERVED}


def fields(req: FaceRequest) -> list[str]:
    return [name for name in req.GET.getall('fields') if name]


def page(req: FaceRequest) -> Page:
    return Page(sort=_sort(req), marker=req.GET.get('marker') or None, limit=_limit(req))


def links(req: FaceRequest, key: str, documents: list[Document], limit: int | None) -> dict[str, Any]:
    """The way to the next page, if this one is full."""
    if not documents or len(documents) != limit:
        return {}
    parameters = [(name, value) for name, value in req.GET.items() if name != 'marker']
    query = urllib.parse.urlencode([*parameters, ('marker', documents[-1]['id'])])
    return {f'{key}_links': [{'rel': 'next', 'href': f'{req.path_url}?{query}'}]}


def _sort(req: FaceRequest) -> list[tuple[str, bool]]:
    keys, directions = req.GET.getall('sort_key'), req.GET.getall('sort_dir')
    if len(keys) > MAX_SORT_KEYS:
        raise errors.Invalid(f'sort_key may be given {MAX_SORT_KEYS} times at most.')
    if directions and len(directions) != len(keys):
        raise errors.Invalid('The number of sort_keys and sort_dirs must be same')
    direction = one_of('asc', 'desc')
    descending = (direction('sort_dir', text) == 'desc' for text in directions or ['asc'] * len(keys))
    return list(zip(keys, descending, strict=True))


def _limit(req: FaceRequest) -> int:
    """As many as asked for, but never more than one answer should hold; 0 is no wish at all."""
    return min(number('limit', req.GET.get('limit', '0')) or MAX_PAGE, MAX_PAGE)
