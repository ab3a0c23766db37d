"""The shares of servers, as rows."""

import sqlalchemy as sa

from computeapi.db.records import Rows
from computeapi.db.tables.servers import AttachedShare, server_shares, servers
from computeapi.states import ShareStatus

__all__ = ['AttachedShare']

SHARES = Rows(AttachedShare, server_shares)
OF_SERVER = SHARES.select.where(server_shares.c.server_id == sa.bindparam('its_server')).order_by(server_shares.c.id)


def of_server(connection: sa.Connection, server_id: str) -> list[AttachedShare]:
    """In the order in which they were attached."""
    return SHARES.all(connection, OF_SERVER, {'its_server': server_id})


def is_kept_by_others(connection: sa.Connection, host: str, share: AttachedShare) -> bool:
    """Whether other servers on the host keep the same share."""
    there = sa.select(servers.c.uuid).where(servers.c.host == host, servers.c.uuid != share.server_id)
    kept = (server_shares.c.share_id == share.share_id, server_shares.c.status != ShareStatus.DETACHING)
    return SHARES.first(connection, SHARES.select.where(*kept, server_shares.c.server_id.in_(there))) is not None


def delete(connection: sa.Connection, share: AttachedShare) -> None:
    SHARES.delete(connection, uuid=share.uuid)


def set_status(connection: sa.Connection, share: AttachedShare, status: str) -> None:
    SHARES.update(connection, {'status': status}, uuid=share.uuid)
