"""Parsers for the query parameters of lists: numbers, booleans, times and sorting."""

from collections.abc import Callable, Sequence
from datetime import datetime

import orjson
from oslo_utils import strutils

from computeapi import errors
from computeapi.clock import parsed
from computeapi.db.listing import COMPARISONS
from computeapi.web.request import Request

MAX_INTEGER = 2**31 - 1
MAX_SORT_KEYS = 10
MAX_MAPPING = 4096
MAX_ITEMS = 256
MAX_VALUES = 1000
"""The maximum number of values in a filter: databases limit the parameters of a statement."""


def boolean(name: str, value: str) -> bool:
    if value.lower() not in ('true', 'false'):
        raise errors.Invalid(f'{name} must be true or false.')
    return value.lower() == 'true'


def truth(name: str, value: str) -> bool:
    """A boolean in any spelling that clients use."""
    try:
        return strutils.bool_from_string(value, strict=True)
    except ValueError:
        raise errors.Invalid(f'{name} must be true or false.') from None


def number(name: str, value: str, maximum: int = MAX_INTEGER) -> int:
    if not (value.isascii() and value.isdigit()) or len(value) > 19 or int(value) > maximum:
        raise errors.Invalid(f'{name} must be a whole number from 0 to {maximum}.')
    return int(value)


def comparison(name: str, value: str) -> tuple[str, datetime]:
    """`gte:2030-01-01T00:00:00Z`, or a time without an operator."""
    operator, _, rest = value.partition(':')
    if operator not in COMPARISONS:
        operator, rest = 'eq', value
    try:
        return operator, parsed(rest)
    except ValueError:
        raise errors.Invalid(f'{name}: {rest[:64]!r} is not a time in ISO 8601.') from None


def one_of(*choices: str) -> Callable[[str, str], str]:
    def choose(name: str, value: str) -> str:
        if value not in choices:
            raise errors.Invalid(f'{name} must be one of {", ".join(choices)}.')
        return value

    return choose


def mapping(name: str, value: str) -> dict[str, str]:
    """Parses `{"key": "value"}`; clients use either kind of quotes."""
    try:
        found = orjson.loads(value[:MAX_MAPPING].replace("'", '"'))
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(item, str) for item in found.values()):
        raise errors.Invalid(f'{name} must be a mapping of names to values.')
    # Each item adds to the statement, and SQLite allows a thousand.
    if len(found) > MAX_ITEMS:
        raise errors.Invalid(f'{name} must not have more than {MAX_ITEMS} items.')
    return found


def sort(req: Request) -> list[tuple[str, str]]:
    """`sort=name:asc,size`, or sort_key and sort_dir, each repeated as needed. Raises Invalid for too many keys:
    finding the page after a marker would take too long."""
    keys, directions = req.query.get('sort_key', ()), req.query.get('sort_dir', ())
    if 'sort' not in req.query:
        order = _keys_and_directions(keys or ['created_at'], directions or ['desc'])
    elif keys or directions:
        raise errors.Invalid('sort cannot be given together with sort_key or sort_dir.')
    else:
        pairs = (part.partition(':') for part in req.parameter('sort').split(','))
        order = [(key.strip(), direction.strip() or 'desc') for key, _, direction in pairs]
    if len(order) > MAX_SORT_KEYS:
        raise errors.Invalid(f'A list can be sorted by at most {MAX_SORT_KEYS} keys.')
    return order


def _keys_and_directions(keys: Sequence[str], directions: Sequence[str]) -> list[tuple[str, str]]:
    if len(directions) == 1:
        directions = [*directions] * len(keys)
    if len(directions) != len(keys):
        raise errors.Invalid('sort_dir must be given once, or once for each sort_key.')
    return list(zip(keys, directions, strict=True))
