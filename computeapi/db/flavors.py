"""Flavors and the projects that may use them, as rows."""

import functools
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from computeapi.db import listing, patterns
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
    usable_by: str | None = None,
    private: bool = False,
    name: str | None = None,
    min_memory_mb: int = 0,
    min_root_gb: int = 0,
) -> list[Flavor]:
    """One page of the flavors; Invalid for an unknown marker, or an unusable regular expression.

    granted_to: a project that sees only the flavors that it can use.  usable_by: only flavors that this project can
    use, after any marker.  private: only those that are not public.  name: a regular expression.
    """
    project_id = granted_to if usable_by is None else usable_by
    parameters = {'memory_mb': min_memory_mb, 'root_gb': min_root_gb, 'project_id': project_id}
    granted, usable = granted_to is not None, usable_by is not None
    order = listing.ordered(flavors, page, 'id')
    if name is None and page.marker is None:
        chosen = _chosen(granted, usable, private)
        return FLAVORS.all(connection, *listing.beginning(chosen, order, page.limit, parameters))
    where = _wanted(usable, private)
    if name is not None:
        patterns.check('name', name)
        where.append(patterns.matches(flavors.c.name, name, connection.dialect.name))
    seen, marked = USABLE[granted].params(parameters), [flavors.c.flavorid == page.marker]
    return FLAVORS.all(connection, listing.paged(connection, seen, order, page, marked=marked, where=where), parameters)


@functools.cache
def _chosen(granted: bool, usable: bool, private: bool) -> sa.Select[Any]:
    return USABLE[granted].where(*_wanted(usable, private))


def _wanted(usable: bool, private: bool) -> list[sa.ColumnElement[bool]]:
    return [*LARGE_ENOUGH, *([GRANTED] if usable else []), *([~flavors.c.is_public] if private else [])]


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
