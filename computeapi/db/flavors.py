"""Flavors and the projects that may use them, as rows."""

import functools
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from computeapi.db import listing
from computeapi.db.listing import Page
from computeapi.db.records import Rows
from computeapi.db.tables.compute import Flavor, flavor_projects, flavors

__all__ = ['Flavor']


def snapshot(flavor: Flavor) -> dict[str, Any]:
    """The copy of the flavor that a server keeps, whatever happens to the original: JSON without the timestamps."""
    return {name: value for name, value in flavor._asdict().items() if name not in ('created_at', 'updated_at')}


FLAVORS = Rows(Flavor, flavors)
GRANTED = sa.or_(
    flavors.c.is_public,
    flavors.c.id.in_(
        sa.select(flavor_projects.c.flavor_id).where(flavor_projects.c.project_id == sa.bindparam('project_id'))
    ),
)
"""The condition that a flavor is public or was granted to the project."""
USABLE = {False: FLAVORS.select, True: FLAVORS.select.where(GRANTED)}
"""The statement for flavors, or only for those that the project can use."""
LARGE_ENOUGH = (
    ~flavors.c.disabled,
    flavors.c.memory_mb >= sa.bindparam('memory_mb'),
    flavors.c.root_gb >= sa.bindparam('root_gb'),
)
WANTED = {False: LARGE_ENOUGH, True: (*LARGE_ENOUGH, flavors.c.is_public == sa.bindparam('is_public'))}
"""The conditions that flavors are large enough, or also public or not, as requested."""
BY_ID = FLAVORS.select.where(flavors.c.flavorid == sa.bindparam('flavorid'))
LOCKED = BY_ID.with_for_update()
GRANTED_BY_ID = BY_ID.where(GRANTED)
GRANTED_LOCKED = GRANTED_BY_ID.with_for_update()


def get(
    connection: sa.Connection, flavorid: str, *, granted_to: str | None = None, lock: bool = False
) -> Flavor | None:
    """granted_to: a project that must be able to use the flavor."""
    statement = LOCKED if lock else BY_ID
    if granted_to is not None:
        statement = GRANTED_LOCKED if lock else GRANTED_BY_ID
    return FLAVORS.first(connection, statement, {'flavorid': flavorid, 'project_id': granted_to})


def page(
    connection: sa.Connection,
    page: Page,
    *,
    granted_to: str | None = None,
    is_public: bool | None = None,
    name: str | None = None,
    min_memory_mb: int = 0,
    min_root_gb: int = 0,
) -> list[Flavor]:
    """One page of the flavors; Invalid for an unknown marker.

    granted_to: only flavors that this project can use.  name: a substring of their names.
    """
    parameters = {'memory_mb': min_memory_mb, 'root_gb': min_root_gb, 'is_public': is_public, 'project_id': granted_to}
    granted, by_access = granted_to is not None, is_public is not None
    order = listing.ordered(flavors, page, 'id')
    if name is None and page.marker is None:
        chosen = _chosen(granted, by_access)
        return FLAVORS.all(connection, *listing.beginning(chosen, order, page.limit, parameters))
    where = [*WANTED[by_access], *([] if name is None else [flavors.c.name.contains(name, autoescape=True)])]
    usable, marked = USABLE[granted].params(parameters), [flavors.c.flavorid == page.marker]
    return FLAVORS.all(
        connection, listing.paged(connection, usable, order, page, marked=marked, where=where), parameters
    )


@functools.cache
def _chosen(granted: bool, by_access: bool) -> sa.Select[Any]:
    return USABLE[granted].where(*WANTED[by_access])


def taken(connection: sa.Connection, flavorid: str, name: str) -> str | None:
    """Which of the two another flavor already has: 'id', 'name' or None."""
    statement = sa.select(flavors.c.flavorid).where(sa.or_(flavors.c.flavorid == flavorid, flavors.c.name == name))
    holders = connection.execute(statement).scalars().all()
    if not holders:
        return None
    return 'id' if flavorid in holders else 'name'


def insert(connection: sa.Connection, values: Mapping[str, Any]) -> None:
    FLAVORS.insert(connection, **values)


def update(connection: sa.Connection, flavor_id: int, values: Mapping[str, Any]) -> None:
    FLAVORS.update(connection, values, id=flavor_id)


def delete(connection: sa.Connection, flavor_id: int) -> None:
    connection.execute(sa.delete(flavor_projects).where(flavor_projects.c.flavor_id == flavor_id))
    FLAVORS.delete(connection, id=flavor_id)


def projects(connection: sa.Connection, flavor_id: int) -> list[str]:
    statement = sa.select(flavor_projects.c.project_id).where(flavor_projects.c.flavor_id == flavor_id)
    return list(connection.execute(statement.order_by(flavor_projects.c.project_id)).scalars())


def grant(connection: sa.Connection, flavor_id: int, project_id: str) -> None:
    connection.execute(sa.insert(flavor_projects).values(flavor_id=flavor_id, project_id=project_id))


def revoke(connection: sa.Connection, flavor_id: int, project_id: str) -> bool:
    """Whether the project had access."""
    condition = (flavor_projects.c.flavor_id == flavor_id) & (flavor_projects.c.project_id == project_id)
    return connection.execute(sa.delete(flavor_projects).where(condition)).rowcount > 0
