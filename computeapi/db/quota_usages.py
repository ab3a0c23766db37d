"""Quota usage, counted incrementally, so that no request has to count all servers.

Code that changes something countable calls `count` in the same transaction. The rows are updated by its last statements
(`flush`), in the order of their keys: the holder of one lock then waits only for other usage rows, so there are no
deadlocks; and each row is updated once, however many servers a transaction creates. Triggers would do that in the
middle of transactions, and with a binary log MariaDB lets only administrators create them.

A usage is an amount of a resource that a user holds in a project (instances, cores, ram in MiB, server_groups), in a
server group (server_group_members), or anywhere (key_pairs; the holder is '').
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.records import upsert
from computeapi.db.tables.compute import keypairs, quota_usages, server_groups
from computeapi.db.tables.servers import servers
from computeapi.states import TaskState, VMState


class Counted(NamedTuple):
    """A resource of a user, in a project or a server group."""

    holder_id: str
    user_id: str
    resource: str


OWNERS = {'server_group_members': 'server group', 'key_pairs': 'user'}
"""The kind of holder of a resource, if it is not a project."""
ANYWHERE = ''
"""The holder of key pairs."""
OF_A_SERVER = (
    *(servers.c.project_id, servers.c.user_id, servers.c.vcpus, servers.c.memory_mb),
    *(servers.c.vm_state, servers.c.task_state, servers.c.deleted_at, servers.c.server_group_id),
)
"""The columns of a server that determine its usage."""
COUNTING = (
    servers.c.deleted_at.is_(None),
    sa.or_(servers.c.vm_state != VMState.SOFT_DELETED, servers.c.task_state == TaskState.RESTORING),
)
"""A soft-deleted server uses no quota until it is being restored."""

HOLDER: sa.BindParameter[Any] = sa.bindparam('holder')
OF_HOLDER = (
    sa.select(quota_usages.c.resource, sa.func.sum(quota_usages.c.amount))
    .where(quota_usages.c.holder_id == HOLDER)
    .group_by(quota_usages.c.resource)
)
OF_USER = OF_HOLDER.where(quota_usages.c.user_id == sa.bindparam('user'))
PENDING = 'computeapi_counts'


def new() -> dict[str, Any]:
    """The execution options of a connection for a transaction that may count."""
    return {PENDING: Counter[Counted]()}


# ------------------------------------------------------------------ reading usage


def used(connection: sa.Connection, holder_id: str, user_id: str | None = None) -> Counter[str]:
    """By resource, the usage of one user, or (None) of all, in a project or group; includes uncommitted counts of this
    transaction."""
    statement = OF_HOLDER if user_id is None else OF_USER
    rows = connection.execute(statement, {'holder': holder_id, 'user': user_id})
    found = Counter({resource: int(amount) for resource, amount in rows})
    add_pending(connection, found, holder_id, user_id)
    return found


def add_pending(connection: sa.Connection, found: Counter[str], holder_id: str, user_id: str | None) -> None:
    """Add what this transaction has counted to the stored amounts."""
    for held, amount in connection.get_execution_options().get(PENDING, {}).items():
        if held.holder_id == holder_id and user_id in (None, held.user_id):
            found[held.resource] += amount


# ------------------------------------------------------------------ changing usage


def count(connection: sa.Connection, amounts: Mapping[Counted, int], sign: int = 1) -> None:
    """Add to the usage (or subtract, for a sign of -1) when the transaction ends."""
    pending = connection.get_execution_options()[PENDING]
    for held, amount in amounts.items():
        pending[held] += sign * amount


def flush(connection: sa.Connection) -> None:
    """Store what the transaction has counted; must be its last change."""
    pending = connection.get_execution_options()[PENDING]
    rows = [{**held._asdict(), 'amount': amount} for held, amount in sorted(pending.items()) if amount]
    upsert(connection, quota_usages, rows, added=('amount',))
    # The connection may be kept.
    pending.clear()


def of_server(row: Mapping[str, Any]) -> dict[Counted, int]:
    """The usage of a server, by its columns; a row to be inserted may lack those that are NULL."""
    kept = row['vm_state'] == VMState.SOFT_DELETED and row.get('task_state') != TaskState.RESTORING
    if row.get('deleted_at') is not None or kept:
        return {}
    project_id, user_id, group_id = row['project_id'], row['user_id'], row.get('server_group_id')
    amounts = {
        Counted(project_id, user_id, 'instances'): 1,
        Counted(project_id, user_id, 'cores'): row['vcpus'],
        Counted(project_id, user_id, 'ram'): row['memory_mb'],
    }
    return amounts if group_id is None else amounts | {Counted(group_id, user_id, 'server_group_members'): 1}


def of_server_group(row: Mapping[str, Any]) -> dict[Counted, int]:
    return {Counted(row['project_id'], row['user_id'], 'server_groups'): 1}


def of_key_pair(row: Mapping[str, Any]) -> dict[Counted, int]:
    return {Counted(ANYWHERE, row['user_id'], 'key_pairs'): 1}


OF_ROWS = {servers.name: of_server, server_groups.name: of_server_group, keypairs.name: of_key_pair}


def of_rows(rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> Counter[Counted]:
    """The usage of all these rows, by their tables."""
    amounts: Counter[Counted] = Counter()
    for table, of_row in OF_ROWS.items():
        for row in rows.get(table, ()):
            for held, amount in of_row(row).items():
                amounts[held] += amount
    return amounts


# ------------------------------------------------------------------ checking usage


def differences(connection: sa.Connection, held: Counted | None = None) -> list[tuple[Counted, int]]:
    """The actual usage minus the counted one, where they differ; of one holder or of all.

    It takes one statement, so that nothing changes in between. The difference can be counted at any later time, because
    concurrent changes affect both sides alike.
    """
    both = sa.union_all(*_parts()).subquery()
    missing = sa.func.sum(both.c.amount)
    statement = sa.select(*both.c[:3], missing).group_by(*both.c[:3]).having(missing != 0).order_by(*both.c[:3])
    if held is not None:
        statement = statement.where(*(both.c[name] == value for name, value in held._asdict().items()))
    return [(Counted(*key), int(amount)) for *key, amount in connection.execute(statement)]


def _parts() -> list[sa.Select[Any]]:
    """The actual usage, and the counted one negated."""
    one, owner = sa.func.count(), (servers.c.project_id, servers.c.user_id)
    anywhere = sa.cast(sa.literal(ANYWHERE), quota_usages.c.holder_id.type)
    return [
        *(
            _amounts(servers, *owner, resource, amount).where(*COUNTING)
            for resource, amount in (
                ('instances', one),
                ('cores', sa.func.sum(servers.c.vcpus)),
                ('ram', sa.func.sum(servers.c.memory_mb)),
            )
        ),
        _amounts(servers, servers.c.server_group_id, servers.c.user_id, 'server_group_members', one).where(
            *COUNTING, servers.c.server_group_id.is_not(None)
        ),
        _amounts(server_groups, server_groups.c.project_id, server_groups.c.user_id, 'server_groups', one),
        _amounts(keypairs, anywhere, keypairs.c.user_id, 'key_pairs', one),
        sa.select(*(quota_usages.c[name] for name in Counted._fields), -quota_usages.c.amount),
    ]


def _amounts(
    table: sa.Table,
    holder: sa.ColumnElement[str],
    user: sa.ColumnElement[str],
    resource: str,
    amount: sa.ColumnElement[int],
) -> sa.Select[Any]:
    named = sa.cast(sa.literal(resource), quota_usages.c.resource.type).label('resource')
    columns = (holder.label('holder_id'), user.label('user_id'), named, amount.label('amount'))
    return sa.select(*columns).select_from(table).group_by(holder, user)
