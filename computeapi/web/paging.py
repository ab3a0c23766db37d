"""The limit, marker and period of a request, and the link to the next page."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from computeapi.clock import parsed
from computeapi.errors import Invalid
from computeapi.web.request import Request

FURTHEST = 2**31 - 1
"""The largest number of items that an offset can skip."""


def limit_of(req: Request, max_limit: int) -> int | None:
    """The size of the page: the limit of the request, at most *max_limit*; Invalid if it is not a number.

    None, for no limit, if the operation takes no limit at the version of the request.
    """
    if not req.takes('limit'):
        return None
    text = req.parameter('limit')
    if text is None:
        return max_limit
    try:
        limit = int(text)
    except ValueError:
        raise Invalid('Invalid input received: limit must be an integer') from None
    if limit < 0:
        raise Invalid('Invalid input received: limit must be >= 0')
    return min(limit, max_limit)


def window_of(req: Request, max_limit: int) -> tuple[int, int]:
    """The limit and offset of a list without markers; Invalid if one is not a number. A limit of 0 means *max_limit*
    here."""
    offset = req.parameter('offset', '0')
    if not offset.isdecimal():
        raise Invalid(f"offset param must be an integer: '{offset[:64]}'")
    return limit_of(req, max_limit) or max_limit, min(int(offset), FURTHEST)


def period_of(req: Request) -> tuple[datetime | None, datetime | None]:
    """changes-since and changes-before; Invalid for a malformed time, or if the period is empty."""
    since, before = (_moment(req, name) for name in ('changes-since', 'changes-before'))
    if since and before and since > before:
        raise Invalid('The value of changes-since must be less than or equal to changes-before.')
    return since, before


def _moment(req: Request, name: str) -> datetime | None:
    text = req.parameter(name)
    try:
        return parsed(text) if text else None
    except ValueError:
        raise Invalid(f'Invalid input for query parameters {name}. Value: {text}. It is not a time.') from None


def next_link(
    req: Request, items: Sequence[Any], limit: int | None, last: str, *, without: str | None = None, **parameters: str
) -> list[dict[str, str]]:
    """[{rel: next, href}] if the page is full, else nothing; *last* is the marker of the last item.

    limit None: the list has no pages.  without: a parameter that sets the beginning of the list in another way.
    parameters: the parameters in the path of the operation.
    """
    if not items or len(items) != limit:
        return []
    return link_after(req, last, without=without, **parameters)


def link_after(
    req: Request, last: str | None, *, without: str | None = None, **parameters: str
) -> list[dict[str, str]]:
    """[{rel: next, href}] for the page after that marker, or for the first; the other arguments are those of
    next_link."""
    path = req.operation.path.format_map({name: quote(value) for name, value in parameters.items()})
    return [{'rel': 'next', 'href': f'{req.endpoint}{path}?{page_query(req, last, without)}'}]


def page_query(req: Request, marker: str | None = None, without: str | None = None) -> str:
    """The query for the same list after *marker*, or from its beginning, and *without* a parameter.

    Parameters are sorted by name; a new marker replaces the old one in its place, or comes last.
    """
    # If a limit is given twice, the last one counts; filters and sort keys can all count.
    kept = {name: values[-1:] if name == 'limit' else values for name, values in sorted(req.query.items())}
    kept.pop(without or '', None)
    if marker is None:
        kept.pop('marker', None)
    else:
        kept['marker'] = [marker]
    return urlencode(kept, doseq=True)
