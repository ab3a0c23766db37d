"""The cells of the cloud, as rows."""

from collections.abc import Collection

import sqlalchemy as sa

from computeapi import randomness
from computeapi.db.records import Rows, grouped
from computeapi.db.tables.compute import Cell, cells, hypervisors

__all__ = ['Cell']

CELLS = Rows(Cell, cells)
OUT_OF_REACH = (
    sa.select(hypervisors.c.host, cells.c.name)
    .join(cells, cells.c.name == hypervisors.c.cell)
    .where(cells.c.down.is_(True))
)


def every(connection: sa.Connection) -> list[Cell]:
    """All cells with their hosts, by name, in two queries."""
    rows = connection.execute(sa.select(hypervisors.c.cell, hypervisors.c.host).order_by(hypervisors.c.id))
    hosts = grouped((cell, host) for cell, host in rows)
    found = CELLS.all(connection, CELLS.select.order_by(cells.c.name))
    return [cell._replace(hosts=hosts.get(cell.name, [])) for cell in found]


def out_of_reach(connection: sa.Connection) -> dict[str, str]:
    """By compute host in a cell that is down, the name of the cell."""
    return {row.host: row.name for row in connection.execute(OUT_OF_REACH)}


def register(connection: sa.Connection, names: Collection[str]) -> None:
    """Create the cells of these names that do not exist."""
    for name in sorted(set(names) - set(connection.scalars(sa.select(cells.c.name)))):
        CELLS.insert(connection, uuid=randomness.new_id(), name=name, down=False)


def mark(connection: sa.Connection, name: str, *, down: bool) -> bool:
    """Record whether a cell is down; returns whether it exists."""
    return connection.execute(sa.update(cells).where(cells.c.name == name).values(down=down)).rowcount == 1
