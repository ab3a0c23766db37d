"""POST /servers/{id}/action {os-resetState}: sets the state of a server manually."""

from typing import Any

from computeapi.api.servers.controller import ServerController, action
from computeapi.db.servers import Server
from computeapi.states import VMState
from computeapi.web.contract import ADMIN, Policy
from computeapi.web.request import Request
from computeapi.web.schemas import lone, one_of

RESET_STATE = Policy('os_compute_api:os-admin-actions:reset_state', ADMIN, 'Reset the state of a server')

STATE = one_of(VMState.ACTIVE.value, VMState.ERROR.value)


class ServerReset(ServerController):
    """Resetting the state of servers."""

    @action('os-resetState', policy=RESET_STATE, takes=lone('state', STATE))
    def reset_state(self, req: Request, server: Server, body: Any) -> None:
        """Reset the state of a server."""
        self.cloud.resets.reset(req.context, server, VMState(body['os-resetState']['state']))
