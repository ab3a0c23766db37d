"""Graphical and serial consoles: POST /servers/{server_id}/remote-consoles, and the actions that were before it."""

from collections.abc import Callable
from typing import Any

from computeapi.api.gone import MALFORMED
from computeapi.api.servers.subject import ServerController, action
from computeapi.api.types import STRING
from computeapi.db.servers import Server
from computeapi.errors import Invalid
from computeapi.versions import added, before
from computeapi.web.contract import MEMBER_OR_ADMIN, Policy, closed, lone
from computeapi.web.controller import Bounds, Function, operation
from computeapi.web.request import Request

REMOTE_CONSOLES = Policy('os_compute_api:os-remote-consoles', MEMBER_OR_ADMIN, 'Open a console of a server')

# ------------------------------------------------------------------ requests and answers

REMOTE, MKS = '2.6', '2.8'

# What was once RDP is still understood, and refused.
PROTOCOL = {'type': 'string', 'enum': ['vnc', 'spice', 'serial', 'rdp', added(MKS, 'mks')]}
TYPE = {
    'type': 'string',
    'enum': [
        'novnc',
        'xvpvnc',
        'spice-html5',
        'serial',
        'rdp-html5',
        added(MKS, 'webmks'),
        added('2.99', 'spice-direct'),
    ],
}
WANTED = {'protocol': PROTOCOL, 'type': TYPE}
BODY = closed({'remote_console': closed(WANTED, WANTED)}, ['remote_console'])
OPENED = WANTED | {'url': STRING}


def console_action(name: str, *kinds: str) -> Callable[[Function], Function]:
    """An action that opens a console of one of these types."""
    facts = {'type': {'type': 'string', 'enum': list(kinds)}}
    console = facts | {'url': STRING}
    return action(
        name,
        policy=REMOTE_CONSOLES,
        body=lone(name, closed(facts, facts)),
        response={'console': closed(console, console)},
        status=200,
        errors=(404, 409, 501),
    )


# ------------------------------------------------------------------ controllers


class ServerConsoles(ServerController):
    """Consoles by protocol, one action for each."""

    versions = Bounds(last=before(REMOTE))

    @console_action('os-getVNCConsole', 'novnc', 'xvpvnc')
    def vnc(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Open a VNC console of a server."""
        return self.opened(server, 'vnc', body['os-getVNCConsole']['type'])

    @console_action('os-getSPICEConsole', 'spice-html5')
    def spice(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Open a SPICE console of a server."""
        return self.opened(server, 'spice', body['os-getSPICEConsole']['type'])

    @console_action('os-getSerialConsole', 'serial')
    def serial(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Open a serial console of a server."""
        return self.opened(server, 'serial', body['os-getSerialConsole']['type'])

    def opened(self, server: Server, protocol: str, kind: str) -> dict[str, Any]:
        return {'console': {'type': kind, 'url': self.cloud.consoles.open(server, protocol, kind)}}


class RemoteConsoles(ServerController):
    """Consoles of any protocol."""

    path = '/servers/{server_id}/remote-consoles'
    versions = Bounds(REMOTE)

    @operation(
        'POST',
        policy=REMOTE_CONSOLES,
        body=BODY,
        response={'remote_console': closed(OPENED, OPENED)},
        errors=(404, 409, 501),
    )
    def create(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Open a console of a server."""
        wanted = body['remote_console']
        if wanted['protocol'] == 'rdp':
            raise Invalid(MALFORMED)
        url = self.cloud.consoles.open(server, wanted['protocol'], wanted['type'])
        return {'remote_console': {'protocol': wanted['protocol'], 'type': wanted['type'], 'url': url}}
