"""Operations on whole tables by name: reading all rows, emptying, and bulk insertion."""

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
"""Values that fewer rows share, and longer texts, are passed as parameters, not as literals."""
CACHE_KIB = 64 * 1024
PART_KIB, SORTERS = 1024, 2
"""While indexes are created: the size of the part that is sorted at a time, and the number of sorting threads."""
INDEXES = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
"""Indexes that are not part of a table's definition."""
FULL_INDEXES = f"{INDEXES} AND sql NOT LIKE '% WHERE %'"
"""Without partial indexes: it is cheaper to maintain them for few rows than to search all rows for those."""


class Insertion(NamedTuple):
    """Rows with values for the same columns of a table.

    statement: for SQLite; `values` are then its parameters, column by column, because a few lists are sent to another
    process faster than many rows.  None for other databases; `values` are then the rows.
    """

    table: str
    statement: str | None
    values: Sequence[Any]


def insert(connection: sa.Connection, rows: Mapping[str, Sequence[Row]]) -> None:
    """Insert rows into several tables, referenced tables first; their use of quotas is counted."""
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
    """Rows of several tables, grouped by the columns that they have values for."""

    def __init__(self) -> None:
        self.values: dict[str, dict[tuple[str, ...], list[Values]]] = defaultdict(dict)

    def add(self, rows: Mapping[str, Sequence[Row]]) -> None:
        for table, some in rows.items():
            # Most rows have the same columns as the one before.
            for names, alike in itertools.groupby(some, tuple):
                self.values[table].setdefault(names, []).extend([tuple(row.values()) for row in alike])

    def insertions(self, dialect: str) -> list[Insertion]:
        """The insertions for a database of this kind; needs no connection, and the result can be pickled."""
        groups = [(table, *group) for table in metadata.sorted_tables for group in self.values[table.name].items()]
        if dialect != 'sqlite':
            return [
                Insertion(table.name, None, [dict(zip(names, each, strict=True)) for each in rows])
                for table, names, rows in groups
            ]
        moments = Moments()
        return [_of_sqlite(*group, moments) for group in groups]


def _of_sqlite(table: sa.Table, names: Sequence[str], rows: Sequence[Values], moments: 'Moments') -> Insertion:
    """Bypasses SQLAlchemy's processing of each value, which takes longer than the insertion itself."""
    missing: dict[str, Any] = {
        each.name: each.default for each in table.columns if each.default is not None and each.name not in names
    }
    usual = [json(default.arg) if default.is_scalar else json(default.arg(None)) for default in missing.values()]
    columns = [_column(table.c[name], each, moments) for name, each in zip(names, zip(*rows, strict=True), strict=True)]
    columns += [[value] * len(rows) for value in usual]
    # Values that all rows share, half of a server's, become literals; the first column gives the number of rows.
    literals = [None, *map(_shared, columns[1:])]
    told = ', '.join(f'"{name}"' for name in (*names, *missing))
    wanted = ', '.join(literal or '?' for literal in literals)
    differing = [each for each, literal in zip(columns, literals, strict=True) if literal is None]
    statement = f'INSERT INTO "{table.name}" ({told}) VALUES ({wanted})'
    return Insertion(table.name, statement, differing)


def _shared(values: Sequence[Any]) -> str | None:
    """The value that all rows share, as a literal; None if they differ, or it is better passed as a parameter."""
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
    """The values as SQLite stores them: times and documents as text."""
    if isinstance(column.type, sa.DateTime):
        return [moments[value] for value in values]
    if isinstance(column.type, sa.JSON):
        # Rows share objects such as flavors; each is encoded once.
        places = list(map(id, values))
        texts = {place: json(value) for place, value in dict(zip(places, values, strict=True)).items()}
        return [texts[place] for place in places]
    return values


class Moments(dict[datetime | None, str | None]):
    """Caches the texts of times: most rows are as old as the server that they belong to."""

    def __missing__(self, moment: datetime | None) -> str | None:
        text = self[moment] = None if moment is None else moment.isoformat(' ', 'microseconds')
        return text


def json(value: Any) -> Any:
    """Lists and mappings as text; other values unchanged."""
    return orjson.dumps(value).decode() if isinstance(value, DOCUMENTS) else value


@contextmanager
def many(connection: sa.Connection) -> Iterator[None]:
    """For so many rows that sorting afterwards is faster: SQLite gets a larger cache, and creates its indexes at the
    end.

    A failed transaction restores the indexes with everything else.
    """
    if connection.dialect.name != 'sqlite':
        yield
        return
    indexes = connection.exec_driver_sql(FULL_INDEXES).all()
    _set(connection, cache_size=-CACHE_KIB)
    for name, _ in indexes:
        connection.exec_driver_sql(f'DROP INDEX "{name}"')
    yield
    # The threads sort what exceeds the cache; everything else is done by the one that reads the table.
    _set(connection, cache_size=-PART_KIB, threads=SORTERS)
    for _, statement in indexes:
        connection.exec_driver_sql(statement)
    _set(connection, cache_size=-CACHE_KIB, threads=0)


def _set(connection: sa.Connection, **pragmas: int) -> None:
    """Set pragmas of SQLite for this connection."""
    for name, value in pragmas.items():
        connection.exec_driver_sql(f'PRAGMA {name}={value}')


def advance_sequences(connection: sa.Connection) -> None:
    """Advance PostgreSQL's sequences beyond the IDs of inserted rows: they are independent of the rows."""
    if connection.dialect.name != 'postgresql':
        return
    for table in metadata.sorted_tables:
        if (key := table.autoincrement_column) is not None:
            greatest = sa.select(sa.func.max(key)).scalar_subquery()
            sequence = sa.func.pg_get_serial_sequence(table.name, key.name)
            # Uncommitted transactions may have been given greater IDs.
            beyond = sa.func.greatest(greatest, sa.func.nextval(sequence))
            connection.execute(sa.select(sa.func.setval(sequence, beyond)))


def rows_of(connection: sa.Connection, name: str, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """All rows of a table in the order of its key, with these columns (None: all)."""
    table = metadata.tables[name]
    wanted = table.columns if columns is None else [table.c[column] for column in columns]
    for row in connection.execute(sa.select(*wanted).order_by(*table.primary_key)).mappings():
        yield dict(row)


def owner_of(name: str) -> str:
    """The first column of a table's key: in a table of tags, the owner."""
    return str(next(iter(metadata.tables[name].primary_key)).name)


def is_required(name: str, column: str) -> bool:
    """Whether the column is NOT NULL."""
    return not metadata.tables[name].c[column].nullable


def greatest(connection: sa.Connection, name: str) -> int:
    """The greatest ID in a table with integer keys; 0 if it is empty."""
    [key] = metadata.tables[name].primary_key
    return connection.scalar(sa.select(sa.func.max(key))) or 0


def count(connection: sa.Connection, name: str) -> int:
    return connection.scalar(sa.select(sa.func.count()).select_from(metadata.tables[name])) or 0


def names(prefixes: tuple[str, ...] = ('',)) -> set[str]:
    """The names of tables that start with one of these prefixes."""
    return {name for name in metadata.tables if name.startswith(prefixes)}


def empty(connection: sa.Connection, tables: Collection[str]) -> None:
    """Delete all rows of these tables, referenced tables last."""
    for table in reversed(metadata.sorted_tables):
        if table.name in tables:
            connection.execute(sa.delete(table))
