"""Regular expressions that clients search with, bounded before a database sees them.

What can be found with LIKE, letters and dots, is found with it. The rest must be in the part of the syntax that every
database reads alike, which has neither look-around nor references back, and small by RE2's measure.
PostgreSQL and SQLite (by RE2) then match in linear time; MariaDB backtracks, and is told when to give up.
Case does not count.
"""

import functools
import itertools
import re
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

LONGEST = 255
MOST_MEMORY = 128 * 1024

PLAIN = re.compile(r'(\^?)((?:[^\\\[\](){}^$|*+?]|\\[^\w\s])*)(\$?)')
SYMBOL = re.compile(r'\\?(.)', re.DOTALL)
LIKE = {'.': '_', '%': '/%', '_': '/_', '/': '//'}
"""What symbols of a plain pattern are for LIKE, where they are not the same."""
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

# What stands before a pattern that a database is given.
PREFIXES = {'mysql': '(*LIMIT_MATCH=20000)(?i)', 'mariadb': '(*LIMIT_MATCH=20000)(?i)'}


def is_bounded(pattern: str) -> bool:
    """Whether the pattern is a regular expression that can be matched in bounded time."""
    if len(pattern) > LONGEST:
        return False
    return bool(PLAIN.fullmatch(pattern)) or (bool(PORTABLE.fullmatch(pattern)) and _compiled(pattern) is not None)


def prefix(pattern: str) -> str:
    """What everything begins with that the pattern matches, which is_bounded; in lower case, and as far as that means
    the same to every database."""
    found = BEGIN.match(pattern)
    if found is None or '|' in pattern:
        return ''
    letters = [letter[-1] for letter in LITERAL.findall(found[1])]
    known = ''.join(letters[:-1] if found[2] in OPTIONAL else letters).lower()
    return ''.join(itertools.takewhile(str.isascii, known))


def matches(column: sa.ColumnElement[Any], pattern: str, dialect: str) -> sa.ColumnElement[bool]:
    """Whether the column holds something that the pattern matches, which is_bounded."""
    if plain := PLAIN.fullmatch(pattern):
        start, text, end = plain.groups()
        words = f'{"" if start else "%"}{SYMBOL.sub(_symbol, text)}{"" if end else "%"}'
        return sa.func.lower(column).like(sa.func.lower(sa.literal(words)), escape='/')
    return column.regexp_match(PREFIXES.get(dialect, '(?i)') + pattern)


def _symbol(found: re.Match[str]) -> str:
    """A symbol of a plain pattern, in the words of LIKE: a dot is any letter, unless it is escaped."""
    symbol = found[1]
    return symbol if found[0] == '\\.' else LIKE.get(symbol, symbol)


def matcher(pattern: str) -> Callable[[str], Any]:
    """What finds something in a value, if the pattern, which is_bounded, matches it."""
    if PLAIN.fullmatch(pattern):
        return re.compile(pattern, re.IGNORECASE).search
    return functools.partial(search, f'(?i){pattern}')


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
