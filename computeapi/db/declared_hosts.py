"""Hosts of the simulated hypervisor that were declared individually."""

import sqlalchemy as sa

from computeapi.db.records import Rows
from computeapi.db.tables.servers import DeclaredHost, declared_hosts

__all__ = ['DeclaredHost']


class DeclaredHosts(Rows[DeclaredHost]):
    """If any hosts are declared, there are no others."""

    def every(self, connection: sa.Connection) -> list[DeclaredHost]:
        """In the order in which they were declared."""
        return self.all(connection, self.select.order_by(declared_hosts.c.id))


DECLARED = DeclaredHosts(DeclaredHost, declared_hosts)
