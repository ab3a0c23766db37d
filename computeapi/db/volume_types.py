"""Volume types in the store, with their QoS specs and encryption."""

from collections.abc import Sequence

import sqlalchemy as sa

from computeapi import errors
from computeapi.context import Context
from computeapi.db.listing import Clause
from computeapi.db.ownership import caller
from computeapi.db.records import upsert
from computeapi.db.resource_table import Facts, ResourceTable
from computeapi.db.tables.volume import (
    volume_default_types,
    volume_qos,
    volume_qos_specs,
    volume_type_encryptions,
    volume_type_projects,
    volume_type_specs,
    volume_types,
    volumes,
)


def _encryptions(connection: sa.Connection, type_ids: Sequence[str]) -> dict[str, Facts | None]:
    """The encryption of each type; None: not encrypted."""
    found: dict[str, Facts | None] = dict.fromkeys(type_ids)
    query = sa.select(volume_type_encryptions).where(volume_type_encryptions.c.volume_type_id.in_(type_ids))
    for row in connection.execute(query).mappings() if type_ids else ():
        found[row['volume_type_id']] = dict(row)
    return found


def _usable_types(context: Context) -> Clause:
    """Public types, and private ones that the project was granted access to."""
    if context.is_admin:
        return sa.true()
    grants = volume_type_projects.c
    granted = sa.select(grants.type_id).where(grants.project_id == caller(context))
    return sa.or_(volume_types.c.is_public, volume_types.c.id.in_(granted))


TYPES = ResourceTable(
    volume_types,
    errors.VolumeTypeNotFound,
    _usable_types,
    pairs={'extra_specs': volume_type_specs},
    found={'encryption': _encryptions},
    order=[volume_types.c.name],
    sorts={name: volume_types.c[name] for name in ('id', 'name', 'created_at', 'updated_at')},
)
QOS = ResourceTable(
    volume_qos,
    errors.QosSpecsNotFound,
    lambda context: sa.true(),
    pairs={'specs': volume_qos_specs},
    sorts={name: volume_qos.c[name] for name in ('id', 'name', 'created_at')},
)


def types_named(name_or_id: str) -> Clause:
    return sa.or_(volume_types.c.id == name_or_id, volume_types.c.name == name_or_id)


def type_names(connection: sa.Connection) -> dict[str, str]:
    """The names of all types, by ID."""
    query = sa.select(volume_types.c.id, volume_types.c.name).order_by(volume_types.c.name)
    return {row.id: row.name for row in connection.execute(query)}


def keep_type(connection: sa.Connection, type_id: str) -> bool:
    """Whether the type exists; if so, it cannot be deleted before this transaction ends."""
    query = sa.select(volume_types.c.id).where(volume_types.c.id == type_id)
    return connection.scalar(query.with_for_update(read=True)) is not None


def type_is_used(connection: sa.Connection, type_id: str) -> bool:
    query = sa.select(volumes.c.id).where(volumes.c.volume_type_id == type_id).limit(1)
    return connection.scalar(query) is not None


def type_projects(connection: sa.Connection, type_id: str) -> list[str]:
    """The projects with access to a private type."""
    query = sa.select(volume_type_projects.c.project_id).where(volume_type_projects.c.type_id == type_id)
    return list(connection.scalars(query.order_by(volume_type_projects.c.project_id)))


def grant_type(connection: sa.Connection, type_id: str, project_id: str) -> None:
    connection.execute(sa.insert(volume_type_projects).values(type_id=type_id, project_id=project_id))


def revoke_type(connection: sa.Connection, type_id: str, project_id: str) -> bool:
    """Whether the project had access."""
    query = sa.delete(volume_type_projects).filter_by(type_id=type_id, project_id=project_id)
    return connection.execute(query).rowcount > 0


def default_types(connection: sa.Connection, **where: str) -> dict[str, str]:
    """The default types of projects that have their own."""
    query = sa.select(volume_default_types).filter_by(**where).order_by(volume_default_types.c.project_id)
    return {row.project_id: row.type_id for row in connection.execute(query)}


def set_default_type(connection: sa.Connection, project_id: str, type_id: str | None) -> None:
    """None: the project has the default type of all."""
    if type_id is None:
        connection.execute(sa.delete(volume_default_types).filter_by(project_id=project_id))
    else:
        upsert(connection, volume_default_types, [{'project_id': project_id, 'type_id': type_id}])


def set_encryption(connection: sa.Connection, type_id: str, facts: Facts | None) -> None:
    """Set the encryption of the type; None: not encrypted."""
    connection.execute(sa.delete(volume_type_encryptions).filter_by(volume_type_id=type_id))
    if facts is not None:
        connection.execute(sa.insert(volume_type_encryptions).values(**facts, volume_type_id=type_id))


def types_with_qos(qos_id: str) -> Clause:
    return volume_types.c.qos_specs_id == qos_id


def set_qos(connection: sa.Connection, where: Clause, qos_id: str | None) -> None:
    """Associate these types with QoS specs; None: with none."""
    # By their own IDs: by another index InnoDB would lock its entries before the rows, whereas the deletion of a type
    # locks the row first.
    ids = list(connection.scalars(sa.select(volume_types.c.id).where(where)))
    connection.execute(sa.update(volume_types).where(volume_types.c.id.in_(ids)).values(qos_specs_id=qos_id))
