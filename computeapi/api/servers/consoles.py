"""Graphical and serial consoles: POST /servers/{server_id}/remote-consoles, and the actions that were before it;
and /os-console-auth-tokens, what a console proxy asks about the token that a client brought.
"""

from collections.abc import Callable
from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.gone import MALFORMED
from computeapi.api.servers.subject import ServerController, action
from computeapi.api.types import INTEGER, NULLABLE_STRING, STRING, UUID
from computeapi.db.consoles import ConsoleToken
from computeapi.db.servers import Server
from computeapi.errors import Invalid
from computeapi.versions import ABSENT, added, before
from computeapi.web.contract import ADMIN, MEMBER_OR_ADMIN, Field, Policy, View, attr
from computeapi.web.controller import Bounds, Function, api_version, operation
from computeapi.web.request import Request
from computeapi.web.schemas import lone, one_of, query, whole

REMOTE_CONSOLES = Policy('os_compute_api:os-remote-consoles', MEMBER_OR_ADMIN, 'Open a console of a server')
SHOW_TOKEN = Policy('os_compute_api:os-console-auth-tokens', ADMIN, 'See where the token of a console leads')

# ------------------------------------------------------------------ requests and answers

REMOTE, MKS = '2.6', '2.8'

# What was once RDP is still understood, and refused.
PROTOCOL = one_of('vnc', 'spice', 'serial', 'rdp', added(MKS, 'mks'))
TYPE = one_of(
    'novnc', 'xvpvnc', 'spice-html5', 'serial', 'rdp-html5', added(MKS, 'webmks'), added('2.99', 'spice-direct')
)
WANTED = {'protocol': PROTOCOL, 'type': TYPE}
BODY = lone('remote_console', whole(WANTED))
OPENED = WANTED | {'url': STRING}


def console_action(name: str, *kinds: str) -> Callable[[Function], Function]:
    """An action that opens a console of one of these types."""
    facts = {'type': {'type': 'string', 'enum': list(kinds)}}
    console = facts | {'url': STRING}
    return action(
        name,
        policy=REMOTE_CONSOLES,
        takes=whole(facts),
        response={'console': whole(console)},
        status=200,
        errors=(409, 501),
    )


def tls_port(token: ConsoleToken) -> Any:
    return ABSENT if token.tls_port is None else token.tls_port


CONSOLE = View(
    {
        'instance_uuid': Field(UUID, attr('server_id')),
        'host': Field(STRING, attr('address')),
        'port': Field(INTEGER, attr('port')),
        'tls_port': added('2.99', Field(INTEGER, tls_port, optional=True)),
        'internal_access_path': Field(NULLABLE_STRING, attr('internal_access_path')),
    }
)


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
        response={'remote_console': whole(OPENED)},
        errors=(409, 501),
    )
    def create(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Open a console of a server."""
        wanted = body['remote_console']
        if wanted['protocol'] == 'rdp':
            raise Invalid(MALFORMED)
        url = self.cloud.consoles.open(server, wanted['protocol'], wanted['type'])
        return {'remote_console': {'protocol': wanted['protocol'], 'type': wanted['type'], 'url': url}}


class ConsoleAuthTokens(ComputeController):
    """The tokens in the URLs of consoles. Requests before 2.31 are refused: see computeapi.api.gone."""

    path = '/os-console-auth-tokens'

    @operation(
        'GET',
        '/{id}',
        policy=SHOW_TOKEN,
        query=query({}, strict='2.99'),
        response={'console': CONSOLE},
        secret_path=True,
    )
    @api_version('2.31')
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show where the token of a console leads."""
        return {'console': CONSOLE.render(req, self.cloud.consoles.find(id))}
