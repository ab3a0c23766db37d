"""Flavors and the projects that may use them, as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.tables.compute import flavor_projects, flavors


class Flavor(NamedTuple):
    """A flavor; memory and swap in MiB, disks in GiB. Named as the columns are, and in their order."""

    id: int
    flavorid: str
    name: str
    description: str | None
    memory_mb: int
    vcpus: int
    root_gb: int
    ephemeral_gb: int
    swap: int
    rxtx_factor: float
    disabled: bool
    is_public: bool
    extra_specs: dict[str, str]
    created_at: datetime
    updated_at: datetime | None


def snapshot(flavor: Flavor) -> dict[str, Any]:
    """The flavor as a server keeps it, whatever becomes of the original: JSON without the times."""
    return {name: value for name, value in flavor._asdict().items() if name not in ('created_at', 'updated_at')}


def get(connection: sa.Connection, flavorid: str, *, lock: bool = False) -> Flavor | None:
    statement = sa.select(flavors).where(flavors.c.flavorid == flavorid)
    row = connection.execute(statement.with_for_update() if lock else statement).first()
    return Flavor(*row) if row else None


def select(
    connection: sa.Connection,
    conditions: Sequence[sa.ColumnElement[bool]],
    order: Sequence[sa.ColumnElement[Any]],
    limit: int | None,
) -> list[Flavor]:
    statement = sa.select(flavors).where(*conditions).order_by(*order).limit(limit)
    return [Flavor(*row) for row in connection.execute(statement)]


def granted_to(project_id: str | None) -> sa.ColumnElement[bool]:
    """The condition that a flavor is public or was given to the project."""
    granted = sa.select(flavor_projects.c.flavor_id).where(flavor_projects.c.project_id == project_id)
    return sa.or_(flavors.c.is_public, flavors.c.id.in_(granted))


def taken(connection: sa.Connection, flavorid: str, name: str) -> str | None:
    """Which of the two another flavor holds: 'id', 'name' or None."""
    statement = sa.select(flavors.c.flavorid).where(sa.or_(flavors.c.flavorid == flavorid, flavors.c.name == name))
    holders = connection.execute(statement).scalars().all()
    if not holders:
        return None
    return 'id' if flavorid in holders else 'name'


def insert(connection: sa.Connection, values: Mapping[str, Any]) -> None:
    connection.execute(sa.insert(flavors).values(**values))


def update(connection: sa.Connection, flavor_id: int, values: Mapping[str, Any]) -> None:
    connection.execute(sa.update(flavors).where(flavors.c.id == flavor_id).values(**values))


def delete(connection: sa.Connection, flavor_id: int) -> None:
    connection.execute(sa.delete(flavor_projects).where(flavor_projects.c.flavor_id == flavor_id))
    connection.execute(sa.delete(flavors).where(flavors.c.id == flavor_id))


def projects(connection: sa.Connection, flavor_id: int) -> list[str]:
    statement = sa.select(flavor_projects.c.project_id).where(flavor_projects.c.flavor_id == flavor_id)
    return list(connection.execute(statement.order_by(flavor_projects.c.project_id)).scalars())


def grant(connection: sa.Connection, flavor_id: int, project_id: str) -> None:
    connection.execute(sa.insert(flavor_projects).values(flavor_id=flavor_id, project_id=project_id))


def revoke(connection: sa.Connection, flavor_id: int, project_id: str) -> bool:
    """Whether there was something to take back."""
    condition = (flavor_projects.c.flavor_id == flavor_id) & (flavor_projects.c.project_id == project_id)
    return connection.execute(sa.delete(flavor_projects).where(condition)).rowcount > 0
