"""Regular expressions in clients' search filters, restricted before a database gets them.

Patterns of only literals and dots are matched with LIKE. All others must use the part of the syntax that every database
reads alike, without look-around and backreferences, and must be small by RE2's measure. PostgreSQL and SQLite (with
RE2) then match in linear time; MariaDB backtracks, and is given a match limit. Matching is case-insensitive.
"""

import functools
import itertools
import re
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from computeapi.errors import Invalid

MAX_LENGTH = 255
MAX_MEMORY = 128 * 1024

PLAIN = re.compile(r'(\^?)((?:[^\\\[\](){}^$|*+?]|\\[^\w\s])*)(\$?)')
SYMBOL = re.compile(r'\\?(.)', re.DOTALL)
LIKE = {'.': '_', '%': '/%', '_': '/_', '/': '//'}
"""The symbols of a plain pattern that differ in LIKE."""
LITERAL = re.compile(r'[^\\\[\](){}^$|*+?.]|\\[^\w\s]')
BEGIN = re.compile(rf'\^((?:{LITERAL.pattern})*)(.?)', re.DOTALL)
OPTIONAL = ('*', '?', '{')
PORTABLE = re.compile(
    r"""(?x)
    (?: [\^$|] | \((?!\?)                                      # an anchor, a choice, the start of a group
      | (?: \) | [^\\\[\](){}^$|*+?] | \\[dswDSW] | \\[^\w\s]   # something that may be repeated
          | \[\^?(?: [^\\\[\]] | \\[dsw] | \\[^\w\s] )+\] )
        (?: [*+?]\?? | \{\d{1,3}(?:,\d{0,3})?\} )?
    )*"""
)

# The prefix of a pattern for a database.
PREFIXES = {'mysql': '(*LIMIT_MATCH=20000)(?i)', 'mariadb': '(*LIMIT_MATCH=20000)(?i)'}


def is_bounded(pattern: str) -> bool:
    """Whether the pattern is a regular expression that can be matched in bounded time."""
    if len(pattern) > MAX_LENGTH:
        return False
    return bool(PLAIN.fullmatch(pattern)) or (bool(PORTABLE.fullmatch(pattern)) and _compiled(pattern) is not None)


def check(name: str, pattern: str) -> None:
    """Invalid, with the filter's name, for a pattern that is_bounded does not accept."""
    if not is_bounded(pattern):
        raise Invalid(
            f'Invalid filter field: {name}. It is not a valid regular expression, or takes too long to evaluate.'
        )


def prefix(pattern: str) -> str:
    """The literal prefix, in lower case, of everything that the pattern matches, which is_bounded must accept; as far
    as it means the same to every database."""
    found = BEGIN.match(pattern)
    if found is None or '|' in pattern:
        return ''
    letters = [letter[-1] for letter in LITERAL.findall(found[1])]
    known = ''.join(letters[:-1] if found[2] in OPTIONAL else letters).lower()
    return ''.join(itertools.takewhile(str.isascii, known))


def matches(
    column: sa.ColumnElement[Any], pattern: str, dialect: str, *, folded: bool = False
) -> sa.ColumnElement[bool]:
    """Whether the column matches the pattern, which must be accepted by is_bounded.

    folded: the column is in lower case, in which SQLite, and PostgreSQL in some locales, put ASCII letters only.
    """
    if plain := PLAIN.fullmatch(pattern):
        start, text, end = plain.groups()
        words = f'{"" if start else "%"}{SYMBOL.sub(_symbol, text)}{"" if end else "%"}'
        if folded:
            return column.like(words.lower(), escape='/')
        return sa.func.lower(column).like(sa.func.lower(sa.literal(words)), escape='/')
    return column.regexp_match(PREFIXES.get(dialect, '(?i)') + (_folded(pattern) if folded else pattern))


def _folded(pattern: str) -> str:
    """The pattern with letters besides those of ASCII in lower case, unless a range then ends before it begins."""
    lowered = ''.join(symbol if symbol.isascii() else symbol.lower() for symbol in pattern)
    return lowered if is_bounded(lowered) else pattern


def _symbol(found: re.Match[str]) -> str:
    """A symbol of a plain pattern in LIKE syntax: an unescaped dot matches any character."""
    symbol = found[1]
    return symbol if found[0] == '\\.' else LIKE.get(symbol, symbol)


def matcher(pattern: str) -> Callable[[str], Any]:
    """A search function for the pattern, which must be accepted by is_bounded."""
    if PLAIN.fullmatch(pattern):
        return re.compile(pattern, re.IGNORECASE).search
    return functools.partial(search, f'(?i){pattern}')


def search(pattern: str, value: str | None) -> bool | None:
    """Implements SQLite's REGEXP operator."""
    compiled = _compiled(pattern)
    return None if value is None or compiled is None else compiled.search(str(value)) is not None


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    """The pattern compiled by RE2, or None if it is invalid or too large."""
    import re2

    options = re2.Options()
    options.max_mem, options.log_errors = MAX_MEMORY, False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None
