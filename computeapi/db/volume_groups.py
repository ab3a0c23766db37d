"""Volume groups and group types in the store."""

from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from computeapi import errors
from computeapi.context import Context
from computeapi.db.listing import Clause
from computeapi.db.resource_table import ResourceTable
from computeapi.db.tables.volume import (
    volume_group_type_specs,
    volume_group_types,
    volume_group_volume_types,
    volume_groups,
    volumes,
)


def _types(connection: sa.Connection, group_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The volume types that a group allows, by group."""
    return _listed(connection, volume_group_volume_types.c.group_id, volume_group_volume_types.c.type_id, group_ids)


def _members(connection: sa.Connection, group_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The volumes of each group."""
    return _listed(connection, volumes.c.group_id, volumes.c.id, group_ids)


def _listed(
    connection: sa.Connection, owner: sa.Column[str], item: sa.Column[str], owner_ids: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = dict.fromkeys(owner_ids, ())
    query = sa.select(owner, item).where(owner.in_(owner_ids)).order_by(item)
    for owner_id, item_id in connection.execute(query) if owner_ids else ():
        found[owner_id] += (item_id,)
    return found


def _usable_group_types(context: Context) -> Clause:
    return sa.true() if context.is_admin else volume_group_types.c.is_public


GROUPS = ResourceTable(
    volume_groups,
    errors.GroupNotFound,
    found={'volume_types': _types, 'volumes': _members},
    sorts={name: volume_groups.c[name] for name in ('id', 'name', 'status', 'group_type', 'created_at')},
)
GROUP_TYPES = ResourceTable(
    volume_group_types,
    errors.GroupTypeNotFound,
    _usable_group_types,
    pairs={'group_specs': volume_group_type_specs},
    sorts={name: volume_group_types.c[name] for name in ('id', 'name', 'created_at')},
)


def allow_types(connection: sa.Connection, group_id: str, type_ids: Iterable[str]) -> None:
    """Allow these volume types in the group."""
    rows = [{'group_id': group_id, 'type_id': type_id} for type_id in sorted(type_ids)]
    connection.execute(sa.insert(volume_group_volume_types), rows)


def set_members(connection: sa.Connection, volume_ids: Iterable[str], group_id: str | None) -> None:
    """Put the volumes into this group; None: into none."""
    connection.execute(sa.update(volumes).where(volumes.c.id.in_(set(volume_ids))).values(group_id=group_id))


def type_is_used(connection: sa.Connection, group_type_id: str) -> bool:
    query = sa.select(volume_groups.c.id).where(volume_groups.c.group_type == group_type_id).limit(1)
    return connection.scalar(query) is not None


def count_groups(connection: sa.Connection, project_id: str) -> int:
    query = sa.select(sa.func.count()).select_from(volume_groups).where(volume_groups.c.project_id == project_id)
    return connection.scalar(query) or 0
