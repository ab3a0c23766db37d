"""Servers as rows: the record, and the statements that read and change it.

A `Server` is the row of `servers`, plus data that is loaded only on request (`load`): a constant number of statements
for any number of servers. All changes of rows are made here, because they may affect quota usage.
"""

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from computeapi.db import addresses, quota_usages, records, services
from computeapi.db.block_devices import DEVICES
from computeapi.db.constant_queries import first
from computeapi.db.records import Among, Rows
from computeapi.db.services import ComputeService
from computeapi.db.tables.compute import services as compute_services
from computeapi.db.tables.server_lists import derived
from computeapi.db.tables.servers import (
    BlockDevice,
    BriefServer,
    Server,
    block_devices,
    console_tokens,
    server_shares,
    server_tags,
    servers,
)
from computeapi.states import TaskState, VMState

__all__ = ['BlockDevice', 'Server', 'derived']

# The number of servers in one statement.
RECOUNT_BATCH = 1000
# Loaded in addition to the row if a view or a service names them.
TAGS, VOLUMES, SERVICE, DOMAIN_NAME = 'tags', 'volumes', 'service', 'domain_name'


def is_volume_backed(server: Server, devices: Sequence[BlockDevice]) -> bool:
    """Whether the server's root disk is a volume."""
    return not server.image_id or any(
        device.boot_index == 0 and device.destination_type == 'volume' for device in devices
    )


# The statements of all queries, built once, because building one costs more than running it.
SERVERS, BRIEF = Rows(Server, servers), Rows(BriefServer, servers)
# Long columns that no list shows are NULL in lists.
UNLISTED = ('creator', 'public_key', 'personality', 'password')
LISTED = Rows(Server, servers, **{name: sa.null().label(name) for name in UNLISTED})
EVERYTHING: Mapping[str, Any] = {}
IDS: sa.BindParameter[Any] = sa.bindparam('ids', expanding=True)
SERVED = sa.select(*SERVERS.columns, *services.SERVICES.columns).outerjoin_from(
    servers, compute_services, services.runs(servers.c.host)
)
SERVED_ANY = SERVED.where(servers.c.uuid == sa.bindparam('id'))
SERVED_LIVING = SERVED_ANY.where(servers.c.deleted_at.is_(None))
ALIVE = SERVERS.select.where(servers.c.uuid.in_(IDS), servers.c.deleted_at.is_(None))
COUNTED = sa.select(servers.c.uuid, *quota_usages.OF_A_SERVER).with_for_update()
COUNTED_OF = COUNTED.where(servers.c.uuid == sa.bindparam('id'))
COUNTED_COLUMNS = {column.name for column in quota_usages.OF_A_SERVER}
VM_STATES, TASK_STATES = 'vm_states', 'task_states'
"""The parameters for the states that a server must be in to be changed."""
# A tag's row has the server's tag in place of a disk's, and no disk.
OF_A_TAG = {'server_id': server_tags.c.server_id, 'tag': server_tags.c.tag}
TAGS_AND_VOLUMES_OF = Among(
    DEVICES.select.where(block_devices.c.destination_type == 'volume', block_devices.c.volume_id.is_not(None)),
    block_devices.c.server_id,
    (
        sa.select(*(OF_A_TAG.get(column.name, sa.null()).label(column.name) for column in DEVICES.columns)),
        server_tags.c.server_id,
    ),
    order=('id', 'tag'),
)


def get(
    connection: sa.Connection, server_id: str, *, needs: Collection[str] = (), lock: bool = False, deleted: bool = False
) -> Server | None:
    """The server with that UUID; *deleted*: even if it is deleted."""
    if SERVICE in needs and not lock:
        server = _served(connection, SERVED_ANY if deleted else SERVED_LIVING, server_id)
        needs = set(needs) - {SERVICE}
    else:
        living = {} if deleted else {'deleted_at': None}
        server = SERVERS.find(connection, lock=lock, uuid=server_id, **living)
    if server is not None:
        load(connection, [server], needs)
    return server


def is_gone(connection: sa.Connection, server_id: str) -> bool:
    """Whether the server is deleted, or a worker is deleting it."""
    server = get(connection, server_id)
    return server is None or server.task_state == TaskState.DELETING


def _served(connection: sa.Connection, statement: sa.Select[Any], server_id: str) -> Server | None:
    """The server with its service, in one statement instead of two."""
    row = first(connection, statement, {'id': server_id})
    if row is None:
        return None
    own = len(SERVERS.columns)
    server = Server(*row[:own])
    if row[own] is not None:
        server.service = ComputeService(*row[own:])
    return server


def alive(connection: sa.Connection, server_ids: Collection[str]) -> list[Server]:
    """Those of these servers that are not deleted."""
    return SERVERS.all(connection, ALIVE, {'ids': list(server_ids)})


def on_hosts(connection: sa.Connection, after: str, most: int) -> list[str]:
    """A batch of servers that are on a host, in the order of their UUIDs, starting after this one."""
    there = (servers.c.deleted_at.is_(None), servers.c.host.is_not(None), servers.c.uuid > after)
    return list(connection.scalars(sa.select(servers.c.uuid).where(*there).order_by(servers.c.uuid).limit(most)))


def hosts_of(connection: sa.Connection, server_ids: Collection[str]) -> dict[str, str]:
    """The hosts of those of these servers that are on one."""
    there = (servers.c.uuid.in_(server_ids), servers.c.deleted_at.is_(None), servers.c.host.is_not(None))
    found = connection.execute(sa.select(servers.c.uuid, servers.c.host).where(*there))
    return dict(found.all())


def members_on(connection: sa.Connection, group_id: str, exclude: str) -> dict[str, int]:
    """By host, how many servers of a group other than *exclude* it has."""
    there = (servers.c.deleted_at.is_(None), servers.c.host.is_not(None), servers.c.uuid != exclude)
    counts = sa.select(servers.c.host, sa.func.count()).where(servers.c.server_group_id == group_id, *there)
    return dict(connection.execute(counts.group_by(servers.c.host)).all())


def on_host(connection: sa.Connection, host: str, vm_states: Collection[str]) -> list[Server]:
    """The servers on a host that are in one of these states."""
    there = (servers.c.host == host, servers.c.deleted_at.is_(None), servers.c.vm_state.in_(vm_states))
    return SERVERS.all(connection, SERVERS.select.where(*there).order_by(servers.c.id))


def change_on(
    connection: sa.Connection, host: str, values: Mapping[str, Any], vm_states: Collection[str] | None = None
) -> None:
    """Update the servers on a host that are in one of these states (None: any), except those with a task_state."""
    idle = [servers.c.host == host, servers.c.deleted_at.is_(None), servers.c.task_state.is_(None)]
    if vm_states is not None:
        idle.append(servers.c.vm_state.in_(vm_states))
    _change_all(connection, values, *idle)


def leave_group(connection: sa.Connection, group_id: str) -> None:
    """Remove all servers, including deleted ones, from a server group."""
    _change_all(connection, {'server_group_id': None}, servers.c.server_group_id == group_id)


def of_reservation(connection: sa.Connection, reservation_id: str) -> list[Server]:
    """The servers that one request created, in order."""
    made = SERVERS.select.where(servers.c.reservation_id == reservation_id)
    return SERVERS.all(connection, made.order_by(servers.c.launch_index))


def load(connection: sa.Connection, found: Sequence[Server], needs: Collection[str]) -> None:
    """Load the service, tags and volumes, the latter two together."""
    by_id = {server.uuid: server for server in found}
    if not by_id:
        return
    if TAGS in needs or VOLUMES in needs:
        for each in DEVICES.of(TAGS_AND_VOLUMES_OF.rows(connection, by_id)):
            if each.id is None:
                by_id[each.server_id].tags.append(each.tag)
            else:
                by_id[each.server_id].volumes.append(each)
    if SERVICE in needs:
        hosts = {server.host for server in found if server.host}
        by_host = {service.host: service for service in services.of_compute_hosts(connection, hosts)}
        for server in found:
            server.service = by_host.get(server.host or '')


def insert_all(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert servers, with values for the same columns."""
    connection.execute(records.insertion(servers), [derived(values) for values in rows])
    for values in rows:
        if values['network_info']:
            addresses.update(connection, values['uuid'], values['network_info'])
        quota_usages.count(connection, quota_usages.of_server(values))


def update(connection: sa.Connection, server_id: str, values: Mapping[str, Any]) -> None:
    before = _counted(connection, server_id, values)
    SERVERS.update(connection, derived(values), uuid=server_id)
    _follow(connection, server_id, before, values)


def change(
    connection: sa.Connection,
    server_id: str,
    values: Mapping[str, Any],
    *,
    vm_states: Collection[str] | None = None,
    task_states: Collection[str | None] | None = (None,),
    unlocked: bool = False,
) -> bool:
    """Update the server if it is in one of these states (None: any) and, if *unlocked* is set, nobody locked it;
    returns whether it was. Concurrent changes of a server have no other lock."""
    idle = task_states is not None and None in task_states
    named = [state for state in task_states or () if state]
    wanted = {VM_STATES: vm_states, TASK_STATES: None if task_states is None or (idle and not named) else named}
    asked = {name: list(states) for name, states in wanted.items() if states is not None}
    lone = {name: states[0] for name, states in asked.items() if len(states) == 1}
    statement = _changing(frozenset(asked), frozenset(lone), idle, unlocked)
    return _change(connection, server_id, values, statement, {**asked, **lone}, vm_states, task_states)


@functools.cache
def _changing(
    asked: frozenset[str] = frozenset(), lone: frozenset[str] = frozenset(), idle: bool = False, unlocked: bool = False
) -> sa.Update:
    """The update of a server that must be in one of some vm_states, and in one of some task_states or (idle) in none,
    and possibly unlocked.

    asked: which of the two conditions apply.  lone: which of them are a single state, because a list is expanded into
    the text of the statement each time.  Cached, because building it costs more than executing it."""
    statement = sa.update(servers).where(servers.c.uuid == sa.bindparam('its_id'), servers.c.deleted_at.is_(None))
    conditions = {
        name: column == sa.bindparam(name) if name in lone else column.in_(sa.bindparam(name, expanding=True))
        for name, column in ((VM_STATES, servers.c.vm_state), (TASK_STATES, servers.c.task_state))
        if name in asked
    }
    if idle:
        idling = servers.c.task_state.is_(None)
        conditions[TASK_STATES] = idling | conditions[TASK_STATES] if TASK_STATES in asked else idling
    if unlocked:
        statement = statement.where(servers.c.locked_by.is_(None))
    return statement.where(*conditions.values())


def change_unless_newer(connection: sa.Connection, server: Server, values: Mapping[str, Any]) -> bool:
    """Update the server if it was not changed since it was read, and return whether. *values* need `updated_at`."""
    same = servers.c.updated_at.is_(None) if server.updated_at is None else servers.c.updated_at == server.updated_at
    return _change(connection, server.uuid, values, _changing().where(same))


def set_first_password(connection: sa.Connection, server_id: str, password: str | None) -> bool:
    """Set the server's password if it has none; returns whether it was set."""
    lacking = _changing().where(servers.c.password.is_(None))
    return _change(connection, server_id, {'password': password}, lacking)


def _change(
    connection: sa.Connection,
    server_id: str,
    values: Mapping[str, Any],
    statement: sa.Update,
    asked: Mapping[str, Any] = EVERYTHING,
    vm_states: Collection[str] | None = None,
    task_states: Collection[str | None] | None = None,
) -> bool:
    """Update the server if it meets the statement's conditions, with these parameters; returns whether it did.
    vm_states, task_states: the states in the conditions."""
    before = [] if _counts_alike(values, vm_states, task_states) else _counted(connection, server_id, values)
    changed = records.change(connection, statement, derived(values), {'its_id': server_id, **asked}) == 1
    if changed:
        _follow(connection, server_id, before, values)
    return changed


def _follow(
    connection: sa.Connection, server_id: str, before: Iterable[Mapping[str, Any]], values: Mapping[str, Any]
) -> None:
    """Update what depends on a server's values in other tables."""
    _recount(connection, before, values)
    if 'network_info' in values:
        addresses.update(connection, server_id, values['network_info'])


def _change_all(connection: sa.Connection, values: Mapping[str, Any], *conditions: sa.ColumnElement[bool]) -> None:
    """Update all servers that meet the conditions."""
    statement = sa.update(servers).values(**values)
    if COUNTED_COLUMNS.isdisjoint(values):
        connection.execute(statement.where(*conditions))
        return
    before = [row._asdict() for row in connection.execute(COUNTED.where(*conditions))]
    for begin in range(0, len(before), RECOUNT_BATCH):
        some = before[begin : begin + RECOUNT_BATCH]
        _recount(connection, some, values)
        # Only these, not those that meet the conditions by now.
        connection.execute(statement.where(servers.c.uuid.in_([row['uuid'] for row in some])))


def _counted(connection: sa.Connection, server_id: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The countable columns of the server before it gets these values; empty if they are not affected."""
    if COUNTED_COLUMNS.isdisjoint(values):
        return []
    return [row._asdict() for row in connection.execute(COUNTED_OF, {'id': server_id})]


def _counts_alike(
    values: Mapping[str, Any], vm_states: Collection[str] | None, task_states: Collection[str | None] | None
) -> bool:
    """Whether a server that is not deleted, in one of these states, has the same quota usage with these values."""
    changing = COUNTED_COLUMNS & values.keys()
    if vm_states is not None and changing <= {'vm_state', 'task_state'}:
        return VMState.SOFT_DELETED not in (values.get('vm_state'), *vm_states)
    if task_states is not None and changing == {'task_state'}:
        return TaskState.RESTORING not in (values['task_state'], *task_states)
    return False


def _recount(connection: sa.Connection, before: Iterable[Mapping[str, Any]], values: Mapping[str, Any]) -> None:
    """Update the quota usage for servers that had these columns and get these values."""
    for row in before:
        quota_usages.count(connection, quota_usages.of_server(row), -1)
        quota_usages.count(connection, quota_usages.of_server({**row, **values}))


def delete_belongings(connection: sa.Connection, server_id: str) -> None:
    """Delete what belongs to a deleted server; its row and its actions are kept."""
    for table in (server_tags, block_devices, server_shares, console_tokens):
        connection.execute(sa.delete(table).where(table.c.server_id == server_id))
