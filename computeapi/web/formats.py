"""The formats that schemas use in addition to those of JSON Schema itself."""

import base64
import re
import unicodedata

import jsonschema
from oslo_utils.uuidutils import is_uuid_like

from computeapi.clock import parsed

LAST = '\ufffe'
FORMATS = jsonschema.FormatChecker(formats=('ipv4', 'ipv6', 'email'))


class BadFormat(ValueError):
    """Raised by a format that provides its own error message."""


@FORMATS.checks('uuid')
def is_uuid(value: object) -> bool:
    """A UUID with or without hyphens, in either case, in braces or as a URN."""
    return not isinstance(value, str) or bool(is_uuid_like(value))


@FORMATS.checks('base64', raises=ValueError)
def is_base64(value: object) -> bool:
    """Base64, as the guest decodes it; other ASCII characters between are allowed."""
    if isinstance(value, str):
        base64.b64decode(value)
    return True


@FORMATS.checks('date-time', raises=ValueError)
def is_datetime(value: object) -> bool:
    if isinstance(value, str):
        parsed(value)
    return True


@FORMATS.checks('regex', raises=(re.error, OverflowError, RecursionError))
def is_regex(value: object) -> bool:
    """A regular expression; the empty one is refused because it would match everything."""
    try:
        return not isinstance(value, str) or (bool(value) and bool(re.compile(value)))
    except FutureWarning:
        # `[[` may mean something else one day, and this process treats warnings as errors.
        return True


@FORMATS.checks('printable')
def is_printable(value: object) -> bool:
    """Printable characters, with spaces anywhere; a trailing newline is allowed."""
    return not isinstance(value, str) or _printable(value.removesuffix('\n'))


@FORMATS.checks('name', raises=BadFormat)
def is_name(value: object) -> bool:
    """Printable characters, without a space at either end; a trailing newline is allowed."""
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
    """Whether there are only printable characters and spaces of Unicode's basic plane, which excludes emoji."""
    return all(c <= LAST and (c.isprintable() or unicodedata.category(c) == 'Zs') for c in text)
