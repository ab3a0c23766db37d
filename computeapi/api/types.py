"""Schema leaves that several resources share."""

import contextlib
import re
from collections.abc import Iterable
from datetime import datetime

from computeapi.db.listing import MOST_DIGITS
from computeapi.errors import Invalid
from computeapi.versions import changed
from computeapi.web.contract import Field, attr

STRING = {'type': 'string'}
NULLABLE_STRING = {'type': ['string', 'null']}
INTEGER = {'type': 'integer'}
BOOLEAN = {'type': 'boolean'}
OBJECT = {'type': 'object'}
UUID = {'type': 'string', 'format': 'uuid'}
NULLABLE_UUID = {'oneOf': [{'type': 'string', 'format': 'uuid'}, {'type': 'null'}]}
DATETIME = {'type': 'string', 'format': 'date-time'}
NULLABLE_DATETIME = {'type': ['string', 'null'], 'format': 'date-time'}
TEXTS = {'type': 'object', 'additionalProperties': {'type': 'string'}}
LINKS = {
    'type': 'array',
    'items': {
        'type': 'object',
        'properties': {'rel': STRING, 'href': STRING, 'type': STRING},
        'required': ['rel', 'href'],
        'additionalProperties': False,
    },
}

# What clients send. Numbers and booleans may come as text, as they always could.

MOST = 2**31 - 1
TRUE = ('True', 'TRUE', 'true', '1', 'ON', 'On', 'on', 'YES', 'Yes', 'yes')
FALSE = ('False', 'FALSE', 'false', '0', 'OFF', 'Off', 'off', 'NO', 'No', 'no')
SPOKEN_BOOLEAN = {'type': ['boolean', 'string'], 'enum': [True, *TRUE, False, *FALSE]}
NON_NEGATIVE = {'type': ['integer', 'string'], 'pattern': '^[0-9]+$', 'minimum': 0, 'maximum': MOST}
POSITIVE = {'type': ['integer', 'string'], 'pattern': '^[0-9]+$', 'minimum': 1, 'maximum': MOST}
NAME = changed(
    {
        # /v2 says what a name is before it says that the name is empty.
        '2.0': {'type': 'string', 'format': 'name_with_leading_trailing_spaces', 'minLength': 1, 'maxLength': 255},
        '2.1': {'type': 'string', 'minLength': 1, 'maxLength': 255, 'format': 'name'},
    }
)
NOTHING = {'type': 'null'}

# What a path and a query string hold: text.

INTEGER_ID = re.compile('-?[0-9]+', re.ASCII)
LIMIT = {'type': 'string', 'pattern': '^[0-9]*$', 'maxLength': 64}
MARKER = {'type': 'string'}
PAGING = {'limit': LIMIT, 'marker': MARKER}


def spoken(value: object) -> bool:
    """What a spoken boolean means."""
    return value is True or value in TRUE


def integer_id(text: str) -> int:
    """The number that is an id in a path; one that a database cannot hold becomes -1, which is nobody's either."""
    if not INTEGER_ID.fullmatch(text):
        raise Invalid('Invalid input received: id must be an integer')
    return int(text) if len(text) <= MOST_DIGITS else -1


def date(name: str) -> Field:
    """A moment as the API writes it: to the second, with Z."""
    get = attr(name)
    return Field(NULLABLE_DATETIME, lambda model: iso(get(model)))


def iso(moment) -> str | None:
    """2026-01-31T12:00:00Z"""
    return None if moment is None else moment.isoformat(timespec='seconds') + 'Z'


def bare(moment) -> str | None:
    """2026-01-31T12:00:00.000000: how some older resources write a moment."""
    return None if moment is None else moment.isoformat(timespec='microseconds')


def moment(text: str, forms: Iterable[str]) -> datetime | None:
    """What text in one of these forms names; None when it is in none."""
    for form in forms:
        with contextlib.suppress(ValueError):
            return datetime.strptime(text, form)
    return None
