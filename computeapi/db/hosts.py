"""Compute hosts, as rows."""

from __future__ import annotations

import sqlalchemy as sa

from computeapi.db.tables.compute import hypervisors


def exists(connection: sa.Connection, host: str | None, node: str | None) -> bool:
    """Whether there is a compute host of that name, or a hypervisor, or the two together."""
    named = [(hypervisors.c.host, host), (hypervisors.c.hypervisor_hostname, node)]
    conditions = [column == name for column, name in named if name is not None]
    return connection.execute(sa.select(hypervisors.c.id).where(*conditions).limit(1)).first() is not None
