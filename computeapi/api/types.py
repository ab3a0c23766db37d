"""Common schemas and fields."""

import contextlib
import functools
import re
import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from oslo_utils.uuidutils import is_uuid_like

from computeapi.booleans import FALSE, TRUE, is_true
from computeapi.errors import Invalid
from computeapi.versions import changed
from computeapi.web.contract import Asking, Field, Reader, View, attr
from computeapi.web.schemas import array, closed

STRING = {'type': 'string'}
NULLABLE_STRING = {'type': ['string', 'null']}
INTEGER = {'type': 'integer'}
NULLABLE_INTEGER = {'type': ['integer', 'null']}
BOOLEAN = {'type': 'boolean'}
OBJECT = {'type': 'object'}
UUID = {'type': 'string', 'format': 'uuid'}
NOTHING = {'type': 'null'}
ANYTHING: dict[str, Any] = {}
NULLABLE_UUID = {'oneOf': [UUID, NOTHING]}
DATETIME = {'type': 'string', 'format': 'date-time'}
NULLABLE_DATETIME = {'type': ['string', 'null'], 'format': 'date-time'}
TEXTS = {'type': 'object', 'additionalProperties': {'type': 'string'}}
OR_NULL = {'type': ['object', 'null']}
LINKS = array(closed({'rel': STRING, 'href': STRING, 'type': STRING}, ['rel', 'href']))

# Input. Numbers and booleans may be sent as text, as in earlier versions of the API.

MAX_INTEGER = 2**31 - 1
DIGITS = sys.int_info.default_max_str_digits
"""The longest text that Python converts to a number."""
LENIENT_BOOLEAN = {'type': ['boolean', 'string'], 'enum': [True, *TRUE, False, *FALSE]}
UNBOUNDED = {'type': ['integer', 'string'], 'pattern': '^[0-9]*$', 'minLength': 1, 'maxLength': DIGITS, 'minimum': 0}
COUNT = UNBOUNDED | {'minimum': 1, 'maximum': MAX_INTEGER}
# The error for an empty text must be the same as for any other malformed one.
NON_NEGATIVE = {
    'type': ['integer', 'string'],
    'pattern': '^[0-9]+$',
    'maxLength': DIGITS,
    'minimum': 0,
    'maximum': MAX_INTEGER,
}
POSITIVE = NON_NEGATIVE | {'minimum': 1}
TEXT = {'type': 'string', 'maxLength': 255}
NONEMPTY = {'type': 'string', 'minLength': 1, 'maxLength': 255}
HOST = NONEMPTY | {'pattern': '^[a-zA-Z0-9-._]*$'}
SPACED_NAME = {'type': 'string', 'format': 'name_with_leading_trailing_spaces', 'minLength': 1, 'maxLength': 255}
BARE_NAME = NONEMPTY | {'format': 'name'}
# For an empty name, /v2 reports the format before the length.
NAME = changed({'2.0': SPACED_NAME, '2.1': BARE_NAME})

# Values in paths and query strings, which are text.

INTEGER_ID = re.compile('-?[0-9]+', re.ASCII)
LIMIT = {'type': 'string', 'pattern': '^[0-9]*$', 'minLength': 1, 'maxLength': DIGITS}
MARKER = STRING


def check_integer_id(text: str) -> None:
    """Invalid unless the ID in a path is an integer."""
    if not INTEGER_ID.fullmatch(text):
        raise Invalid('Invalid input received: id must be an integer')


def uuid_id(text: str) -> str:
    """The UUID in a path."""
    if not is_uuid_like(text):
        raise Invalid(f'Invalid uuid {text}')
    return text


def check_key(key: str, items: Mapping[str, Any]) -> None:
    """Invalid if a body contains another item than the one in the path."""
    if key not in items:
        raise Invalid('Request body and URI mismatch')


def is_forced(wanted: Mapping[str, Any], *, host_is_checked: bool) -> bool:
    """Whether a server is moved to the host in the request without any check; Invalid if it asks for that but names
    none. host_is_checked: unless the request says otherwise."""
    host = wanted.get('host')
    if 'force' not in wanted:
        return host is not None and not host_is_checked
    force = is_true(wanted['force'])
    if force and not host:
        raise Invalid("Can't force to a non-provided destination")
    return force


def date(name: str) -> Field:
    """A time in the API's usual format: with seconds and a Z."""
    get = attr(name)
    return Field(NULLABLE_DATETIME, lambda model: iso(get(model)))


def exact_date(name: str, schema: Any = NULLABLE_DATETIME) -> Field:
    """A time in the format of some older resources: with microseconds, without a time zone."""
    get = attr(name)
    return Field(schema, lambda model: bare(get(model)))


def parts(view: View, name: str) -> Field:
    """A list of a model's parts, each rendered by *view*."""
    get = attr(name)

    def shown(req: Asking) -> Reader:
        render = view.renderer(req)
        return lambda model: list(map(render, get(model)))

    return Field(array(view), shown, request=True)


MOMENTS = 2048
"""The size of the cache of formatted times, which repeated lists share: formatting takes longer than a look-up."""


@functools.lru_cache(maxsize=MOMENTS)
def iso(moment: datetime | None) -> str | None:
    """2026-01-31T12:00:00Z"""
    return None if moment is None else moment.isoformat('T', 'seconds') + 'Z'


@functools.lru_cache(maxsize=MOMENTS)
def bare(moment: datetime | None) -> str | None:
    """2026-01-31T12:00:00.000000"""
    return None if moment is None else moment.isoformat('T', 'microseconds')


def moment(text: str, forms: Iterable[str]) -> datetime | None:
    """Parses text in one of these formats; None if it matches none of them."""
    for form in forms:
        with contextlib.suppress(ValueError):
            return datetime.strptime(text, form)
    return None
