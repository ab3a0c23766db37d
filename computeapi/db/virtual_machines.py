"""The virtual machines of the simulated hypervisor, one for each server on a host, and the hosts that are off."""

from datetime import datetime

import sqlalchemy as sa

from computeapi.db.records import Rows, make_sure, upsert
from computeapi.db.tables.servers import HostOff, VirtualMachine, domains, fences, hosts_off

__all__ = ['VirtualMachine']

DOMAINS, HOSTS_OFF = Rows(VirtualMachine, domains), Rows(HostOff, hosts_off)

SEEN = sa.update(fences).where(
    fences.c.server_id == sa.bindparam('its_server'), fences.c.token <= sa.bindparam('its_token')
)


def all_places(connection: sa.Connection) -> list[tuple[str, str]]:
    """The server and the host of each virtual machine."""
    found = sa.select(domains.c.server_id, domains.c.host).order_by(domains.c.server_id, domains.c.host)
    return [(server_id, host) for server_id, host in connection.execute(found)]


def lets_pass(connection: sa.Connection, server_id: str, token: int) -> bool:
    """Checks a fencing token: whether no newer claim on the server was seen. From then on, older ones fail."""
    claim = {'server_id': server_id, 'token': token}
    if token == 1 and make_sure(connection, fences, claim):
        return True
    seen = {'its_server': server_id, 'its_token': token, 'token': token}
    if connection.execute(SEEN, seen).rowcount:
        return True
    make_sure(connection, fences, claim)
    return bool(connection.execute(SEEN, seen).rowcount)


def note_off(connection: sa.Connection, host: str, since: datetime) -> None:
    """Record that the host is off."""
    upsert(connection, hosts_off, [{'host': host, 'since': since}])
