"""POST /servers/{id}/action: what the machine of a server answers at once."""

from __future__ import annotations

from typing import Any

from computeapi.api.servers.subject import ServerController, action
from computeapi.api.types import STRING
from computeapi.db.servers import Server
from computeapi.web.contract import MEMBER_OR_ADMIN, Policy, closed, lone
from computeapi.web.request import Request

CONSOLE_OUTPUT = Policy('os_compute_api:os-console-output', MEMBER_OR_ADMIN, "Read a server's serial console")
PASSWORD = Policy('os_compute_api:os-admin-password', MEMBER_OR_ADMIN, "Change a server's administrator password")

LENGTH = {'type': ['integer', 'string', 'null'], 'pattern': '^-?[0-9]+$', 'minimum': -1, 'maxLength': 18}
NEW_PASSWORD = closed({'adminPass': STRING}, ['adminPass'])


class ServerMachines(ServerController):
    """The machine that a server runs in."""

    @action(
        'os-getConsoleOutput',
        policy=CONSOLE_OUTPUT,
        body=lone('os-getConsoleOutput', closed({'length': LENGTH})),
        response=closed({'output': STRING}, ['output']),
        status=200,
        errors=(404, 409, 501),
    )
    def console_output(self, req: Request, server: Server, body: Any) -> dict[str, str]:
        """Read what a server wrote to its serial console."""
        length = body['os-getConsoleOutput'].get('length')
        lines = None if length is None or int(length) == -1 else int(length)
        return {'output': self.cloud.machines.console_output(server, lines)}

    @action('changePassword', policy=PASSWORD, body=lone('changePassword', NEW_PASSWORD), errors=(404, 409, 501))
    def change_password(self, req: Request, server: Server, body: Any) -> None:
        """Change the password of a server's administrator."""
        self.cloud.machines.change_password(req.context, server, body['changePassword']['adminPass'])
