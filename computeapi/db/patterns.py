"""Regular expressions that clients search with, bounded before a database sees them.

What can be found with LIKE is found with it. The rest must be in the part of the syntax that every
database reads alike, which has neither look-around nor references back, and small by RE2's measure.
PostgreSQL and SQLite (by RE2) then match in linear time; MariaDB backtracks, and is told when to give up.
Case does not count.
"""

import functools
import re
from typing import Any

import sqlalchemy as sa

LONGEST = 255
MOST_MEMORY = 128 * 1024

PLAIN = re.compile(r'(\^?)((?:[^\\\[\](){}^$|*+?.]|\\[^\w\s])*)(\$?)')
PORTABLE = re.compile(
    r"""(?x)
    (?: [\^$|] | \((?!\?)                                      # an anchor, a choice, the start of a group
      | (?: \) | [^\\\[\](){}^$|*+?] | \\[dswDSW] | \\[^\w\s]   # something that may be repeated
          | \[\^?(?: [^\\\[\]] | \\[dsw] | \\[^\w\s] )+\] )
        (?: [*+?]\?? | \{\d{1,3}(?:,\d{0,3})?\} )?
    )*"""
)

# What stands before a pattern that a database is given.
PREFIXES = {'mysql': '(*LIMIT_MATCH=20000)(?i)', 'mariadb': '(*LIMIT_MATCH=20000)(?i)'}


def is_bounded(pattern: str) -> bool:
    """Whether the pattern is a regular expression that can be matched in bounded time."""
    if len(pattern) > LONGEST:
        return False
    return bool(PLAIN.fullmatch(pattern)) or (bool(PORTABLE.fullmatch(pattern)) and _compiled(pattern) is not None)


def matches(column: sa.ColumnElement[Any], pattern: str, dialect: str) -> sa.ColumnElement[bool]:
    """Whether the column holds something that the pattern matches, which is_bounded."""
    if plain := PLAIN.fullmatch(pattern):
        start, text, end = plain.groups()
        return _like(column, re.sub(r'\\(.)', r'\1', text), bool(start), bool(end))
    return column.regexp_match(PREFIXES.get(dialect, '(?i)') + pattern)


def _like(column: sa.ColumnElement[Any], text: str, start: bool, end: bool) -> sa.ColumnElement[bool]:
    if start and end:
        return sa.func.lower(column) == sa.func.lower(sa.literal(text))
    if start:
        return column.istartswith(text, autoescape=True)
    return column.iendswith(text, autoescape=True) if end else column.icontains(text, autoescape=True)


def search(pattern: str, value: str | None) -> bool | None:
    """SQLite's REGEXP, which has no function of its own behind it."""
    compiled = _compiled(pattern)
    return None if value is None or compiled is None else compiled.search(str(value)) is not None


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    """The pattern for RE2, or None if it is wrong or too large."""
    import re2

    options = re2.Options()
    options.max_mem, options.log_errors = MOST_MEMORY, False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None
