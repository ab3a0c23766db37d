"""How much of the volume service a project may use."""

from collections.abc import Mapping

import sqlalchemy as sa

from computeapi.db.tables.volume import volume_projects, volume_quotas


def limits(connection: sa.Connection, project_id: str) -> dict[str, int]:
    """The limits that were set for the project."""
    query = sa.select(volume_quotas.c.name, volume_quotas.c.limit).where(volume_quotas.c.project_id == project_id)
    return {row.name: row.limit for row in connection.execute(query)}


def set_limits(connection: sa.Connection, project_id: str, limits: Mapping[str, int]) -> None:
    """Set the limits that are given; the others stay."""
    mine = volume_quotas.c.project_id == project_id
    connection.execute(sa.delete(volume_quotas).where(mine, volume_quotas.c.name.in_(limits)))
    if limits:
        rows = [{'project_id': project_id, 'name': name, 'limit': limit} for name, limit in limits.items()]
        connection.execute(sa.insert(volume_quotas), rows)


def reset(connection: sa.Connection, project_id: str) -> None:
    connection.execute(sa.delete(volume_quotas).where(volume_quotas.c.project_id == project_id))


def is_enrolled(connection: sa.Connection, project_id: str) -> bool:
    return connection.scalar(sa.select(volume_projects.c.id).where(volume_projects.c.id == project_id)) is not None


def enrol(connection: sa.Connection, project_id: str) -> None:
    connection.execute(sa.insert(volume_projects).values(id=project_id))


def lock(connection: sa.Connection, project_id: str) -> None:
    """Let one transaction at a time take from the quota of the project, which must be enrolled."""
    connection.execute(sa.select(volume_projects.c.id).where(volume_projects.c.id == project_id).with_for_update())
