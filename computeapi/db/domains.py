"""The virtual machines of the simulated hypervisor, one for a server on a host, and which hosts are off."""

from datetime import datetime

import sqlalchemy as sa

from computeapi.db.records import Rows, upsert
from computeapi.db.tables.servers import HostOff, VirtualMachine, domains, hosts_off

__all__ = ['VirtualMachine']

DOMAINS, HOSTS_OFF = Rows(VirtualMachine, domains), Rows(HostOff, hosts_off)


def note_off(connection: sa.Connection, host: str, since: datetime) -> None:
    """Write down that the host is off."""
    upsert(connection, hosts_off, [{'host': host, 'since': since}])
