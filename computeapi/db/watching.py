"""What each transaction on an SQLite database changes of the things that are watched, told before it is committed.

A connection has a temporary table, which triggers of its own fill: what is rolled back, to a savepoint or as a whole,
is gone from there as from everywhere, and no other connection sees any of it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa

from computeapi.db.copies import driver_of
from computeapi.db.tables import metadata

INSTALLED = 'computeapi_watching'
CHANGES = 'watched_changes'
ROW = '{row}'
"""Where an expression names the row, as it was or as it is."""


class Derived(NamedTuple):
    """What follows from columns: an expression of a row."""

    name: str
    expression: str
    columns: tuple[str, ...]


class Watched(NamedTuple):
    """Things of which it is told when they appear, disappear, or have another value in one of these columns.

    noun: what clients call one.  key: its id.  name, project, server: expressions for what it is called, whose it is
    and the id of the server that it belongs to.  gone: a column that has a value when it is deleted although its row
    is there.  derived: what else is told.
    """

    noun: str
    table: str
    columns: tuple[str, ...]
    key: str = 'id'
    name: str = '{row}.name'
    project: str = '{row}.project_id'
    server: str = 'NULL'
    gone: str | None = None
    derived: tuple[Derived, ...] = ()

    def values(self, row: str) -> dict[str, str]:
        """What is told of a row: expressions, by name."""
        kinds = metadata.tables[self.table].c
        of_columns = {column: _value(kinds[column], row) for column in self.columns}
        return of_columns | {each.name: each.expression.format(row=row) for each in self.derived}

    @property
    def names(self) -> tuple[str, ...]:
        """Of all that is told."""
        return (*self.columns, *(each.name for each in self.derived))

    @property
    def sources(self) -> list[str]:
        """The columns that must change when something is to be told."""
        more = [column for each in self.derived for column in each.columns]
        return list(dict.fromkeys([*self.columns, *more, *([self.gone] if self.gone else [])]))


STEP = 'task_state'
SERVICE_STATE = ('seen_at', 'forced_down')

WATCHED = (
    Watched(
        'server',
        'servers',
        ('name', 'vm_state', 'task_state', 'power_state', 'progress', 'host', 'locked_by'),
        key='uuid',
        server='{row}.uuid',
        gone='deleted_at',
    ),
    Watched(
        'migration',
        'migrations',
        ('status', 'migration_type', 'source_host', 'dest_host'),
        key='uuid',
        name='NULL',
        server='{row}.server_id',
    ),
    Watched('volume', 'volumes', ('name', 'status', 'size', 'migration_status')),
    Watched(
        'volume_attachment',
        'volume_attachments',
        ('status', 'volume_id', 'device'),
        name='NULL',
        project='(SELECT project_id FROM volumes WHERE id = {row}.volume_id)',
        server='{row}.server_id',
    ),
    Watched('volume_snapshot', 'volume_snapshots', ('name', 'status', 'volume_id')),
    Watched('volume_backup', 'volume_backups', ('name', 'status', 'volume_id')),
    Watched('image', 'images', ('name', 'status', 'visibility', 'size'), project='{row}.owner'),
    Watched('share', 'shares', ('name', 'status', 'size')),
    Watched('network', 'networks', ('name', 'admin_state_up')),
    Watched(
        'port',
        'ports',
        ('name', 'admin_state_up', 'network_id', 'device_id', 'device_owner', 'host'),
        server="CASE WHEN {row}.device_owner LIKE 'compute:%' THEN {row}.device_id END",
    ),
    Watched(
        'floating_ip',
        'floating_ips',
        ('floating_ip_address', 'port_id', 'fixed_ip_address'),
        name='{row}.floating_ip_address',
    ),
    Watched(
        'service',
        'services',
        ('binary', 'disabled', 'forced_down'),
        key='uuid',
        name='{row}.host',
        project='NULL',
        # In a cloud that tests use, time that passes takes no service down.
        derived=(Derived('state', "iif({row}.seen_at IS NULL OR {row}.forced_down, 'down', 'up')", SERVICE_STATE),),
    ),
    Watched('cell', 'cells', ('down',), 'uuid', project='NULL'),
)


class RowChange(NamedTuple):
    """What one transaction did to one thing: its columns as they were and as they are, None where it is not there."""

    noun: str
    id: str
    name: str | None
    project_id: str | None
    server_id: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


def install(connection: sa.Connection) -> None:
    """Have the connection watch, if it does not yet; between two transactions. NotSupported where it is not SQLite."""
    info = connection.info
    if INSTALLED not in info:
        driver_of(connection).executescript('PRAGMA temp_store=MEMORY;' + ';\n'.join([TABLE, *_triggers()]))
        info[INSTALLED] = True


def taken(connection: sa.Connection) -> list[RowChange]:
    """What the transaction has changed so far, in the order in which it first did; it is told once.

    Things are as they will be when it is committed, whatever they were in between; what came to nothing is left out.
    But the steps of a server are told one by one, also those that it takes in one transaction.
    """
    driver = driver_of(connection)
    rows = driver.execute(TAKE).fetchall()
    if not rows:
        return []
    driver.execute(EMPTY)
    found: list[RowChange] = []
    places: dict[tuple[str, str], int] = {}
    for row in rows:
        change = RowChange(*row[:-2], *(state and orjson.loads(state) for state in row[-2:]))
        key = change.noun, change.id
        if key not in places or is_step(change):
            places[key] = len(found)
            found.append(change)
        else:
            found[places[key]] = change._replace(before=found[places[key]].before)
    return [change for change in found if change.before != change.after]


def is_step(change: RowChange) -> bool:
    """Whether a server goes on to another task_state."""
    before, after = change.before or {}, change.after or {}
    return None not in (before.get(STEP), after.get(STEP)) and before[STEP] != after[STEP]


FACTS = ('noun', 'id', 'name', 'project_id', 'server_id', 'before', 'after')
TABLE = f'CREATE TEMP TABLE {CHANGES} ({", ".join(FACTS)})'
TAKE = f'SELECT {", ".join(FACTS)} FROM temp.{CHANGES} ORDER BY rowid'
EMPTY = f'DELETE FROM temp.{CHANGES}'


def _triggers() -> Iterator[str]:
    """Statements that make them."""
    for watched in WATCHED:
        old_values, new_values = watched.values('OLD'), watched.values('NEW')
        old, new = _document(old_values), _document(new_values)
        is_there = f'{{row}}.{watched.gone} IS NULL' if watched.gone else '1'
        was, is_now = is_there.format(row='OLD'), is_there.format(row='NEW')
        differs = ' OR '.join(f'{value} IS NOT {new_values[name]}' for name, value in old_values.items())
        differs += '' if watched.gone is None else f' OR NOT {is_now}'
        still = f'CASE WHEN {is_now} THEN {new} END'
        of = ', '.join(f'"{column}"' for column in watched.sources)
        yield _trigger(watched, 'INSERT', 'NEW', is_now, 'NULL', new)
        yield _trigger(watched, f'UPDATE OF {of}', 'NEW', f'{was} AND ({differs})', old, still)
        yield _trigger(watched, 'DELETE', 'OLD', was, old, 'NULL')


def _trigger(watched: Watched, event: str, row: str, when: str, before: str, after: str) -> str:
    facts = [part.format(row=row) for part in (f'{ROW}.{watched.key}', watched.name, watched.project, watched.server)]
    values = ', '.join([f"'{watched.noun}'", *facts, before, after])
    name = f'watched_{watched.table}_{event.partition(" ")[0].lower()}'
    # An unqualified name in a trigger that is temporary is that of the temporary table.
    return (
        f'CREATE TEMP TRIGGER {name} AFTER {event} ON main.{watched.table} WHEN {when} '
        f'BEGIN INSERT INTO {CHANGES} VALUES ({values}); END'
    )


def _document(values: Mapping[str, str]) -> str:
    """An expression that makes JSON of these."""
    return f'json_object({", ".join(f"{name!r}, {value}" for name, value in values.items())})'


def _value(column: sa.Column[Any], row: str) -> str:
    value = f'{row}."{column.name}"'
    return f"json(iif({value}, 'true', 'false'))" if isinstance(column.type, sa.Boolean) else value
