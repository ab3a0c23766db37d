"""Whole tables, by their names: all rows read, none left, and many written at once."""

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from computeapi.db import quota_usages
from computeapi.db.tables import metadata

Row = Mapping[str, Any]
Values = tuple[Any, ...]
DOCUMENTS = (list, dict)
CHUNK = 2000
FEW = 100
LONG = 1000
"""What fewer rows have in common, and longer texts, are passed beside the statement."""
CACHE_KIB = 64 * 1024
PART_KIB, SORTERS = 1024, 2
"""As indexes are made: so much at a time is sorted by one of so many threads."""
INDEXES = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
"""Those that are not part of a table's definition."""
FULL_INDEXES = f"{INDEXES} AND sql NOT LIKE '% WHERE %'"
"""Not those of a part of their table: it is cheaper to keep few rows than to look for them among all."""


class Insertion(NamedTuple):
    """Rows for the same columns of a table.

    statement: of SQLite, for which `values` are what its driver takes, column by column: few lists are sent to another
    process in less time than many rows.  None for others, for which they are the rows.
    """

    table: str
    statement: str | None
    values: Sequence[Any]


def insert(connection: sa.Connection, rows: Mapping[str, Sequence[Row]]) -> None:
    """Write rows into several tables, those first that others refer to; what they take of quotas is counted."""
    gathered = Gathered()
    gathered.add(rows)
    write(connection, gathered.insertions(connection.dialect.name))
    quota_usages.count(connection, quota_usages.of_rows(rows))


def write(connection: sa.Connection, insertions: Iterable[Insertion]) -> None:
    for table, statement, values in insertions:
        rows = iter(values) if statement is None else zip(*values, strict=True)
        while some := list(itertools.islice(rows, CHUNK)):
            if statement is None:
                connection.execute(sa.insert(metadata.tables[table]), some)
            else:
                connection.exec_driver_sql(statement, some)


class Gathered:
    """Rows of several tables, those together that have values for the same columns."""

    def __init__(self) -> None:
        self.values: dict[str, dict[tuple[str, ...], list[Values]]] = defaultdict(dict)

    def add(self, rows: Mapping[str, Sequence[Row]]) -> None:
        for table, some in rows.items():
            # Most are like the one before.
            for names, alike in itertools.groupby(some, tuple):
                self.values[table].setdefault(names, []).extend([tuple(row.values()) for row in alike])

    def insertions(self, dialect: str) -> list[Insertion]:
        """What writes them into a database of this kind; needs no connection, and can be pickled."""
        groups = [(table, *group) for table in metadata.sorted_tables for group in self.values[table.name].items()]
        if dialect != 'sqlite':
            return [
                Insertion(table.name, None, [dict(zip(names, each, strict=True)) for each in rows])
                for table, names, rows in groups
            ]
        moments = Moments()
        return [_of_sqlite(*group, moments) for group in groups]


def _of_sqlite(table: sa.Table, names: Sequence[str], rows: Sequence[Values], moments: 'Moments') -> Insertion:
    """Past what SQLAlchemy does for each value, where that takes longer than to write it."""
    missing: dict[str, Any] = {
        each.name: each.default for each in table.columns if each.default is not None and each.name not in names
    }
    usual = [json(default.arg) if default.is_scalar else json(default.arg(None)) for default in missing.values()]
    columns = [_column(table.c[name], each, moments) for name, each in zip(names, zip(*rows, strict=True), strict=True)]
    columns += [[value] * len(rows) for value in usual]
    # What stands in all rows, as half of what servers have, stands in the statement; the first one tells their number.
    literals = [None, *map(_shared, columns[1:])]
    told = ', '.join(f'"{name}"' for name in (*names, *missing))
    wanted = ', '.join(literal or '?' for literal in literals)
    differing = [each for each, literal in zip(columns, literals, strict=True) if literal is None]
    statement = f'INSERT INTO "{table.name}" ({told}) VALUES ({wanted})'
    return Insertion(table.name, statement, differing)


def _shared(values: Sequence[Any]) -> str | None:
    """The value of all rows, as a literal; None if they have several, or it is better passed beside the statement."""
    value = values[0]
    if len(values) < FEW or values[-1] != value or values.count(value) != len(values):
        return None
    match value:
        case None:
            return 'NULL'
        case int():
            return str(int(value))
        case str() if len(value) < LONG and '\0' not in value:
            return "'" + value.replace("'", "''") + "'"
    return None


def _column(column: sa.Column[Any], values: Sequence[Any], moments: 'Moments') -> Sequence[Any]:
    """The values as SQLite keeps them: moments and documents as text."""
    if isinstance(column.type, sa.DateTime):
        return [moments[value] for value in values]
    if isinstance(column.type, sa.JSON):
        # Rows share what they have in common, such as flavors.
        places = list(map(id, values))
        texts = {place: json(value) for place, value in dict(zip(places, values, strict=True)).items()}
        return [texts[place] for place in places]
    return values


class Moments(dict[datetime | None, str | None]):
    """Their texts, each made once: most rows are as old as the server that they belong to."""

    def __missing__(self, moment: datetime | None) -> str | None:
        text = self[moment] = None if moment is None else moment.isoformat(' ', 'microseconds')
        return text


def json(value: Any) -> Any:
    """Lists and mappings as text; other values, which are no documents, as they are."""
    return orjson.dumps(value).decode() if isinstance(value, DOCUMENTS) else value


@contextmanager
def many(connection: sa.Connection) -> Iterator[None]:
    """For so many rows that it is faster to sort them afterwards: SQLite gets room, and makes its indexes at the end.

    A transaction that fails has its indexes back, as all else.
    """
    if connection.dialect.name != 'sqlite':
        yield
        return
    indexes = connection.exec_driver_sql(FULL_INDEXES).all()
    _set(connection, cache_size=-CACHE_KIB)
    for name, _ in indexes:
        connection.exec_driver_sql(f'DROP INDEX "{name}"')
    yield
    # Its threads sort what the cache has no room for; all else waits for the one that reads the table.
    _set(connection, cache_size=-PART_KIB, threads=SORTERS)
    for _, statement in indexes:
        connection.exec_driver_sql(statement)
    _set(connection, cache_size=-CACHE_KIB, threads=0)


def _set(connection: sa.Connection, **pragmas: int) -> None:
    """How SQLite goes on with what it does for this connection."""
    for name, value in pragmas.items():
        connection.exec_driver_sql(f'PRAGMA {name}={value}')


def go_on_counting(connection: sa.Connection) -> None:
    """Let no table give a number that a written row brought with it: PostgreSQL counts apart from its rows."""
    if connection.dialect.name != 'postgresql':
        return
    for table in metadata.sorted_tables:
        if (key := table.autoincrement_column) is not None:
            greatest = sa.select(sa.func.max(key)).scalar_subquery()
            sequence = sa.func.pg_get_serial_sequence(table.name, key.name)
            # Others may have been given greater ones that nobody sees yet.
            beyond = sa.func.greatest(greatest, sa.func.nextval(sequence))
            connection.execute(sa.select(sa.func.setval(sequence, beyond)))


def rows_of(connection: sa.Connection, name: str, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """All rows of a table in the order of its key, with these columns (None: all)."""
    table = metadata.tables[name]
    wanted = table.columns if columns is None else [table.c[column] for column in columns]
    for row in connection.execute(sa.select(*wanted).order_by(*table.primary_key)).mappings():
        yield dict(row)


def owner_of(name: str) -> str:
    """The first column of a table's key: in one of tags, it is what they belong to."""
    return str(next(iter(metadata.tables[name].primary_key)).name)


def is_required(name: str, column: str) -> bool:
    """Whether each row of the table has a value there."""
    return not metadata.tables[name].c[column].nullable


def greatest(connection: sa.Connection, name: str) -> int:
    """The greatest number that a row of a table has that counts; 0 if it is empty."""
    [key] = metadata.tables[name].primary_key
    return connection.scalar(sa.select(sa.func.max(key))) or 0


def count(connection: sa.Connection, name: str) -> int:
    return connection.scalar(sa.select(sa.func.count()).select_from(metadata.tables[name])) or 0


def names(prefixes: tuple[str, ...] = ('',)) -> set[str]:
    """Of the tables that are called so, or begin so."""
    return {name for name in metadata.tables if name.startswith(prefixes)}


def empty(connection: sa.Connection, tables: Collection[str]) -> None:
    """Leave no row in these tables, those last that others refer to."""
    for table in reversed(metadata.sorted_tables):
        if table.name in tables:
            connection.execute(sa.delete(table))
