"""Paged lists: the requested page, and the response with a link to the next page."""

from typing import Any

from computeapi.api.types import LIMIT, LINKS, MARKER
from computeapi.db.listing import Page
from computeapi.versions import added
from computeapi.web.paging import limit_of, link_after, next_link
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed

PARAMETERS = {'limit': LIMIT, 'marker': MARKER}
WINDOW = {'limit': LIMIT, 'offset': LIMIT}
"""The query parameters of a list without markers."""


def parameters(since: str) -> dict[str, Any]:
    """The query parameters of a list that has pages from that version on."""
    return {name: added(since, schema) for name, schema in PARAMETERS.items()}


def schema(name: str, items: Any, links: Any = LINKS) -> dict[str, Any]:
    """The response schema of a list, with a link to the next page if there may be more."""
    return closed({name: array(items), f'{name}_links': links}, [name])


def requested_page(req: Request, max_limit: int) -> Page:
    """The requested page; everything if the operation has no pages at this version."""
    return Page(limit_of(req, max_limit), req.parameter('marker'))


def page_response(
    req: Request,
    name: str,
    shown: list[dict[str, Any]],
    limit: int | None,
    *,
    marker: str = 'id',
    links: str = '',
    last: str | None = None,
    **parameters: str,
) -> dict[str, Any]:
    """{name: the shown items} and, if the page is full, {name}_links.

    marker: the field of an item that is the marker of the next page.  links: another key for the links.
    last: the marker of a page that is not full, but not the last one either.
    parameters: the path parameters of the operation.
    """
    if last is None:
        end = str(shown[-1].get(marker) if shown else None)
        further = next_link(req, shown, limit, end, **parameters)
    else:
        further = link_after(req, last, **parameters)
    return {name: shown} | ({links or f'{name}_links': further} if further else {})
