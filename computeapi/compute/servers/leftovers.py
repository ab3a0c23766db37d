"""What is left of work on a server by a process that was taken for dead, and did not know that others went on."""

from computeapi.compute.platform import Platform
from computeapi.compute.servers import disks, ports
from computeapi.compute.tasks.transition import beside
from computeapi.context import Context
from computeapi.db import servers
from computeapi.db.servers import Server

RESET = beside('reset', patient=True)
"""Makes the server and what it has in other services consistent; see reset.py."""


def settle(platform: Platform, context: Context, server: Server) -> None:
    """Release the ports and volumes of a server that was deleted meanwhile, because nothing else does. Of any other
    server, a worker checks what it has, as other services may have been told something that no longer holds."""
    if platform.store.query(servers.is_gone, server.uuid):
        owner = Context(user_id=server.user_id, project_id=server.project_id).elevated()
        ports.disconnect(platform.networks, owner, server)
        disks.release(platform, owner, server.uuid)
    else:
        with platform.tasks.adding() as connection:
            platform.tasks.add_once(connection, RESET, server.uuid, context.elevated())
