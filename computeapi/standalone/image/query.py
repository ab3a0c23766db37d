"""The query parameters of image lists."""

import csv
from collections.abc import Callable
from typing import Any

from computeapi import errors
from computeapi.backends.image.local import VISIBILITIES
from computeapi.backends.image.members import STATUSES
from computeapi.db.listing import MAX_PAGE
from computeapi.standalone.query import MAX_VALUES, boolean, comparison, number, one_of
from computeapi.web.request import Request

DEFAULT_PAGE = 25
PAGING = ('limit', 'marker', 'sort', 'sort_key', 'sort_dir')
RENAMED = {'os_hidden': 'hidden', 'os_hash_value': 'hash_value'}
SEVERAL = ('id', 'name', 'status', 'container_format', 'disk_format')
"""Filters that accept `in:` and a list of values."""


def filters(req: Request) -> dict[str, Any]:
    """The filters in the backend's terms; unknown names are treated as those of properties."""
    found: dict[str, Any] = {'tags': req.query['tag']} if 'tag' in req.query else {}
    for name, (*_, value) in req.query.items():
        if name not in PAGING and name != 'tag':
            found[RENAMED.get(name, name)] = PARSERS[name](name, value) if name in PARSERS else value
    return found


def size(name: str, value: str) -> int:
    return number(name, value, 2**63 - 1)


def several(name: str, value: str) -> str | list[str]:
    """Parses `in:one,two,"three, too"`, or a single value."""
    if not value.startswith('in:'):
        return value
    try:
        values = next(csv.reader([value.removeprefix('in:')]), [])
    except csv.Error:
        raise errors.Invalid(f'{name}: the text after in: is not a list of values.') from None
    if len(values) > MAX_VALUES:
        raise errors.Invalid(f'{name}: in: takes no more than {MAX_VALUES} values.')
    return values


PARSERS: dict[str, Callable[[str, str], Any]] = {
    **dict.fromkeys(SEVERAL, several),
    'visibility': one_of(*VISIBILITIES, 'all'),
    'member_status': one_of(*STATUSES, 'all'),
    **dict.fromkeys(('protected', 'hidden', 'os_hidden'), boolean),
    **dict.fromkeys(('size', 'size_min', 'size_max', 'virtual_size'), size),
    **dict.fromkeys(('min_disk', 'min_ram'), number),
    **dict.fromkeys(('created_at', 'updated_at'), comparison),
}


def limit(req: Request) -> int:
    return min(number('limit', req.parameter('limit', str(DEFAULT_PAGE))), MAX_PAGE)
