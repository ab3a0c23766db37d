"""The formats that schemas name, beside those of JSON Schema itself."""

import base64
import binascii
import re
import unicodedata

import jsonschema
from oslo_utils.uuidutils import is_uuid_like

from computeapi.clock import parsed

LAST = '\ufffe'
FORMATS = jsonschema.FormatChecker(formats=('ipv4', 'ipv6', 'email'))


class BadFormat(ValueError):
    """Raised by a format that says in its own words what is wrong."""


@FORMATS.checks('uuid')
def is_uuid(value: object) -> bool:
    """A UUID with or without hyphens, in either case, in braces or as a URN."""
    return not isinstance(value, str) or bool(is_uuid_like(value))


@FORMATS.checks('base64', raises=binascii.Error)
def is_base64(value: object) -> bool:
    if isinstance(value, str):
        base64.b64decode(value.encode())
    return True


@FORMATS.checks('date-time', raises=ValueError)
def is_datetime(value: object) -> bool:
    if isinstance(value, str):
        parsed(value)
    return True


@FORMATS.checks('regex', raises=(re.error, OverflowError, RecursionError))
def is_regex(value: object) -> bool:
    """A regular expression; not the empty one, which would match everything."""
    return not isinstance(value, str) or (bool(value) and bool(re.compile(value)))


@FORMATS.checks('printable')
def is_printable(value: object) -> bool:
    """Printable characters, spaces wherever they like; a line may have its end."""
    return not isinstance(value, str) or _printable(value.removesuffix('\n'))


@FORMATS.checks('name', raises=BadFormat)
def is_name(value: object) -> bool:
    """Printable characters, no space at either end; a line may have its end."""
    if isinstance(value, str) and (not _printable(line := value.removesuffix('\n') or value) or line != line.strip()):
        raise BadFormat(
            "An invalid 'name' value was provided. The name must be: printable characters. "
            'Can not start or end with whitespace.'
        )
    return True


@FORMATS.checks('name_with_leading_trailing_spaces', raises=BadFormat)
def is_spaced_name(value: object) -> bool:
    """The same for /v2, which strips the spaces."""
    if isinstance(value, str) and (not _printable(value.removesuffix('\n')) or not value.strip()):
        raise BadFormat(
            "An invalid 'name' value was provided. The name must be: printable characters with at least one "
            'non space character'
        )
    return True


def _printable(text: str) -> bool:
    """Whether there are only letters, signs and spaces of Unicode's first plane: emoji are further out."""
    return all(c <= LAST and (c.isprintable() or unicodedata.category(c) == 'Zs') for c in text)
