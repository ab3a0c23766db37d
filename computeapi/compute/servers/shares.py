"""File systems that servers share. This cloud has no service that keeps any, so no server has one."""

from computeapi.compute.servers.changes import check
from computeapi.compute.tasks.transition import Requirement
from computeapi.context import Context
from computeapi.db.servers import Server
from computeapi.errors import ShareNotFound
from computeapi.states import VMState

CREATE = Requirement('create share', allowed={VMState.STOPPED})
DELETE = Requirement('delete share', allowed={VMState.STOPPED})


def attach(context: Context, server: Server, share_id: str) -> None:
    """Conflict unless the server is stopped; ShareNotFound."""
    check(context, server, CREATE)
    raise ShareNotFound(id=share_id)


def detach(context: Context, server: Server, share_id: str) -> None:
    """Conflict unless the server is stopped; ShareNotFound."""
    check(context, server, DELETE)
    raise ShareNotFound(id=share_id)
