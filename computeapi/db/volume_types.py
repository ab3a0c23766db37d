"""Volume types in the store, with their extra specs and the projects that may use private ones."""

from typing import Any

import sqlalchemy as sa

from computeapi.context import Context
from computeapi.db import pairs
from computeapi.db.tables.volume import volume_type_projects, volume_type_specs, volume_types, volumes

Facts = dict[str, Any]


def named(name_or_id: str) -> sa.ColumnElement[bool]:
    return sa.or_(volume_types.c.id == name_or_id, volume_types.c.name == name_or_id)


def identified(type_id: str) -> sa.ColumnElement[bool]:
    return volume_types.c.id == type_id


def visible(context: Context) -> sa.ColumnElement[bool]:
    """Public types, and private ones for the projects that were let in."""
    if context.is_admin:
        return sa.true()
    granted = sa.select(volume_type_projects.c.type_id).where(
        volume_type_projects.c.project_id == (context.project_id or '')
    )
    return sa.or_(volume_types.c.is_public, volume_types.c.id.in_(granted))


def is_public(public: bool) -> sa.ColumnElement[bool]:
    return volume_types.c.is_public == public


def select(connection: sa.Connection, *where: sa.ColumnElement[bool], lock: bool = False) -> list[Facts]:
    """Types with their extra specs, by name; `lock` keeps others from changing or deleting them meanwhile."""
    query = sa.select(volume_types).where(*where).order_by(volume_types.c.name)
    rows = connection.execute(query.with_for_update() if lock else query).mappings().all()
    specs = pairs.load(connection, volume_type_specs, [row['id'] for row in rows])
    return [{**row, 'extra_specs': specs[row['id']]} for row in rows]


def keep(connection: sa.Connection, type_id: str) -> bool:
    """Whether the type is there; if so nobody deletes it before this transaction ends."""
    query = sa.select(volume_types.c.id).where(volume_types.c.id == type_id)
    return connection.scalar(query.with_for_update(read=True)) is not None


def insert(connection: sa.Connection, facts: Facts) -> None:
    columns = {name: value for name, value in facts.items() if name != 'extra_specs'}
    connection.execute(sa.insert(volume_types).values(columns))
    pairs.add(connection, volume_type_specs, facts['id'], facts['extra_specs'])


def update(connection: sa.Connection, type_id: str, facts: Facts) -> None:
    """Set what is given; `extra_specs` replace all there are."""
    columns = {name: value for name, value in facts.items() if name != 'extra_specs'}
    connection.execute(sa.update(volume_types).where(volume_types.c.id == type_id).values(columns))
    if 'extra_specs' in facts:
        pairs.replace(connection, volume_type_specs, type_id, facts['extra_specs'])


def delete(connection: sa.Connection, type_id: str) -> None:
    connection.execute(sa.delete(volume_types).where(volume_types.c.id == type_id))


def in_use(connection: sa.Connection, type_id: str) -> bool:
    query = sa.select(volumes.c.id).where(volumes.c.volume_type_id == type_id).limit(1)
    return connection.scalar(query) is not None


def projects(connection: sa.Connection, type_id: str) -> list[str]:
    query = sa.select(volume_type_projects.c.project_id).where(volume_type_projects.c.type_id == type_id)
    return list(connection.scalars(query.order_by(volume_type_projects.c.project_id)))


def grant(connection: sa.Connection, type_id: str, project_id: str) -> None:
    connection.execute(sa.insert(volume_type_projects).values(type_id=type_id, project_id=project_id))


def revoke(connection: sa.Connection, type_id: str, project_id: str) -> int:
    """How many grants were taken back: 1, or 0 if there was none."""
    query = sa.delete(volume_type_projects).where(
        volume_type_projects.c.type_id == type_id, volume_type_projects.c.project_id == project_id
    )
    return connection.execute(query).rowcount
