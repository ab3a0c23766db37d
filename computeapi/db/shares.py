"""Shares in the store: network file systems, and the access to them."""

import sqlalchemy as sa

from computeapi import errors
from computeapi.context import Context
from computeapi.db.listing import Clause
from computeapi.db.ownership import own_rows, owned
from computeapi.db.records import lock_row
from computeapi.db.resource_table import ResourceTable
from computeapi.db.tables.share import share_access_metadata, share_access_rules, share_metadata, share_projects, shares


def listed(context: Context, *, public: bool, all_projects: bool) -> Clause:
    """The project's own shares; with public ones, or all shares, if an administrator asks for them."""
    if all_projects and context.is_admin:
        return sa.true()
    return sa.or_(owned(shares, context), shares.c.is_public) if public else owned(shares, context)


def _usable(context: Context) -> Clause:
    """The project's own shares and public ones."""
    return listed(context, public=True, all_projects=True)


SHARES = ResourceTable(
    shares,
    errors.ShareNotFound,
    _usable,
    pairs={'metadata': share_metadata},
    sorts={name: shares.c[name] for name in ('id', 'name', 'status', 'size', 'created_at', 'updated_at')},
)
ACCESS_RULES = ResourceTable(
    share_access_rules,
    errors.ShareAccessNotFound,
    lambda context: own_rows(shares, context),
    source=share_access_rules.join(shares, shares.c.id == share_access_rules.c.share_id),
    joined={'project_id': shares.c.project_id},
    pairs={'metadata': share_access_metadata},
    order=[share_access_rules.c.created_at, share_access_rules.c.id],
)


def rules_of(share_id: str) -> Clause:
    return share_access_rules.c.share_id == share_id


def lock_project(connection: sa.Connection, project_id: str) -> None:
    """Serialize transactions that use the project's quota."""
    lock_row(connection, share_projects, {'id': project_id})
