"""Reports the changes of each transaction on an SQLite database to captured tables, before it is committed.

A connection has a temporary table, filled by temporary triggers: a rollback, to a savepoint or of everything, applies
to it like to any table, and no other connection sees it.
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
"""The placeholder for OLD or NEW in expressions."""


class Derived(NamedTuple):
    """A value derived from columns: an expression on a row."""

    name: str
    expression: str
    columns: tuple[str, ...]


class CapturedResource(NamedTuple):
    """A kind of things whose creation, deletion, and changes in one of these columns are reported.

    noun: the name of the kind for clients.  key: its ID.  name, project, server: expressions for its name, its project
    and the ID of its server.  gone: a column that is set when it is deleted although its row remains.  derived: further
    values to report.
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
        """The values that are reported: expressions, by name."""
        kinds = metadata.tables[self.table].c
        of_columns = {column: _value(kinds[column], row) for column in self.columns}
        return of_columns | {each.name: each.expression.format(row=row) for each in self.derived}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all values that are reported."""
        return (*self.columns, *(each.name for each in self.derived))

    @property
    def sources(self) -> list[str]:
        """The columns whose changes can matter."""
        more = [column for each in self.derived for column in each.columns]
        return list(dict.fromkeys([*self.columns, *more, *([self.gone] if self.gone else [])]))


STEP = 'task_state'
SERVICE_STATE = ('seen_at', 'forced_down')

CAPTURED = (
    CapturedResource(
        'server',
        'servers',
        ('name', 'vm_state', 'task_state', 'power_state', 'progress', 'host', 'locked_by'),
        key='uuid',
        server='{row}.uuid',
        gone='deleted_at',
    ),
    CapturedResource(
        'migration',
        'migrations',
        ('status', 'migration_type', 'source_host', 'dest_host'),
        key='uuid',
        name='NULL',
        server='{row}.server_id',
    ),
    CapturedResource('volume', 'volumes', ('name', 'status', 'size', 'migration_status')),
    CapturedResource(
        'volume_attachment',
        'volume_attachments',
        ('status', 'volume_id', 'device'),
        name='NULL',
        project='(SELECT project_id FROM volumes WHERE id = {row}.volume_id)',
        server='{row}.server_id',
    ),
    CapturedResource('volume_snapshot', 'volume_snapshots', ('name', 'status', 'volume_id')),
    CapturedResource('volume_backup', 'volume_backups', ('name', 'status', 'volume_id')),
    CapturedResource('image', 'images', ('name', 'status', 'visibility', 'size'), project='{row}.owner'),
    CapturedResource('share', 'shares', ('name', 'status', 'size')),
    CapturedResource('network', 'networks', ('name', 'admin_state_up')),
    CapturedResource(
        'port',
        'ports',
        ('name', 'admin_state_up', 'network_id', 'device_id', 'device_owner', 'host'),
        server="CASE WHEN {row}.device_owner LIKE 'compute:%' THEN {row}.device_id END",
    ),
    CapturedResource(
        'floating_ip',
        'floating_ips',
        ('floating_ip_address', 'port_id', 'fixed_ip_address'),
        name='{row}.floating_ip_address',
    ),
    CapturedResource(
        'service',
        'services',
        ('binary', 'disabled', 'forced_down'),
        key='uuid',
        name='{row}.host',
        project='NULL',
        # In a cloud for tests, the passing of time takes no service down.
        derived=(Derived('state', "iif({row}.seen_at IS NULL OR {row}.forced_down, 'down', 'up')", SERVICE_STATE),),
    ),
    CapturedResource('cell', 'cells', ('down',), 'uuid', project='NULL'),
)


class RowChange(NamedTuple):
    """The change of one thing by one transaction: its values before and after; None if it does not exist then."""

    noun: str
    id: str
    name: str | None
    project_id: str | None
    server_id: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


def install(connection: sa.Connection) -> None:
    """Install the triggers, if necessary; call it between transactions. NotSupported if it is not SQLite."""
    info = connection.info
    if INSTALLED not in info:
        driver_of(connection).executescript('PRAGMA temp_store=MEMORY;' + ';\n'.join([TABLE, *_triggers()]))
        info[INSTALLED] = True


def taken(connection: sa.Connection) -> list[RowChange]:
    """The changes of the transaction so far, in the order in which things first changed; each is returned once.

    Intermediate values are left out, and so are changes without a net effect. The steps of a server are reported
    individually, though, even within one transaction.
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
    """Whether a server moves on to another task_state."""
    before, after = change.before or {}, change.after or {}
    return None not in (before.get(STEP), after.get(STEP)) and before[STEP] != after[STEP]


FACTS = ('noun', 'id', 'name', 'project_id', 'server_id', 'before', 'after')
TABLE = f'CREATE TEMP TABLE {CHANGES} ({", ".join(FACTS)})'
TAKE = f'SELECT {", ".join(FACTS)} FROM temp.{CHANGES} ORDER BY rowid'
EMPTY = f'DELETE FROM temp.{CHANGES}'


def _triggers() -> Iterator[str]:
    """The CREATE TRIGGER statements."""
    for captured in CAPTURED:
        old_values, new_values = captured.values('OLD'), captured.values('NEW')
        old, new = _document(old_values), _document(new_values)
        is_there = f'{{row}}.{captured.gone} IS NULL' if captured.gone else '1'
        was, is_now = is_there.format(row='OLD'), is_there.format(row='NEW')
        differs = ' OR '.join(f'{value} IS NOT {new_values[name]}' for name, value in old_values.items())
        differs += '' if captured.gone is None else f' OR NOT {is_now}'
        still = f'CASE WHEN {is_now} THEN {new} END'
        of = ', '.join(f'"{column}"' for column in captured.sources)
        yield _trigger(captured, 'INSERT', 'NEW', is_now, 'NULL', new)
        yield _trigger(captured, f'UPDATE OF {of}', 'NEW', f'{was} AND ({differs})', old, still)
        yield _trigger(captured, 'DELETE', 'OLD', was, old, 'NULL')


def _trigger(captured: CapturedResource, event: str, row: str, when: str, before: str, after: str) -> str:
    facts = [
        part.format(row=row) for part in (f'{ROW}.{captured.key}', captured.name, captured.project, captured.server)
    ]
    values = ', '.join([f"'{captured.noun}'", *facts, before, after])
    name = f'watched_{captured.table}_{event.partition(" ")[0].lower()}'
    # An unqualified name in a temporary trigger refers to the temporary table.
    return (
        f'CREATE TEMP TRIGGER {name} AFTER {event} ON main.{captured.table} WHEN {when} '
        f'BEGIN INSERT INTO {CHANGES} VALUES ({values}); END'
    )


def _document(values: Mapping[str, str]) -> str:
    """A SQL expression that builds a JSON object."""
    return f'json_object({", ".join(f"{name!r}, {value}" for name, value in values.items())})'


def _value(column: sa.Column[Any], row: str) -> str:
    value = f'{row}."{column.name}"'
    return f"json(iif({value}, 'true', 'false'))" if isinstance(column.type, sa.Boolean) else value
