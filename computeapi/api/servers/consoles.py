"""Graphical and serial consoles: POST /servers/{server_id}/remote-consoles, and the older actions;
and /os-console-auth-tokens, by which a console proxy looks up the token of a client.
"""

from collections.abc import Callable
from typing import Any

from computeapi.api.cloud import CloudManagers
from computeapi.api.controller import ComputeController
from computeapi.api.servers.controller import ServerController, action
from computeapi.api.types import INTEGER, NULLABLE_STRING, STRING, UUID
from computeapi.db.consoles import ConsoleToken
from computeapi.db.servers import Server
from computeapi.errors import Invalid, NotAuthenticated
from computeapi.versions import ABSENT, added, before
from computeapi.web.contract import ADMIN, MEMBER_OR_ADMIN, Field, Policy, View, attr
from computeapi.web.controller import Bounds, Function, api_version, operation
from computeapi.web.request import Request
from computeapi.web.schemas import lone, one_of, query, whole

REMOTE_CONSOLES = Policy('os_compute_api:os-remote-consoles', MEMBER_OR_ADMIN, 'Open a console of a server')
SHOW_TOKEN = Policy(
    'os_compute_api:os-console-auth-tokens', ADMIN, 'Show the connection information of a console token'
)

# ------------------------------------------------------------------ requests and responses

REMOTE, MKS, ANY_TOKEN = '2.6', '2.8', '2.31'
RDP = 'rdp-html5'

PROTOCOL = one_of('vnc', 'spice', 'serial', 'rdp', added(MKS, 'mks'))
TYPE = one_of('novnc', 'xvpvnc', 'spice-html5', 'serial', RDP, added(MKS, 'webmks'), added('2.99', 'spice-direct'))
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
        return opened(self.cloud, server, 'vnc', body['os-getVNCConsole'])

    @console_action('os-getSPICEConsole', 'spice-html5')
    def spice(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Open a SPICE console of a server."""
        return opened(self.cloud, server, 'spice', body['os-getSPICEConsole'])

    @console_action('os-getSerialConsole', 'serial')
    def serial(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Open a serial console of a server."""
        return opened(self.cloud, server, 'serial', body['os-getSerialConsole'])


class RDPConsoles(ServerController):
    """RDP consoles. A cloud without RDP refuses the request before it looks up the server."""

    versions = Bounds(last=before(REMOTE))

    @console_action('os-getRDPConsole', RDP)
    def rdp(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Open an RDP console of a server."""
        return opened(self.cloud, server, 'rdp', body['os-getRDPConsole'])

    def find(self, req: Request, identifier: str) -> Server:
        check_rdp(self.cloud)
        return super().find(req, identifier)


def check_rdp(cloud: CloudManagers) -> None:
    """Invalid without further details if the cloud has no RDP consoles."""
    if not cloud.consoles.offers('rdp'):
        raise Invalid()


def opened(cloud: CloudManagers, server: Server, protocol: str, wanted: Any) -> dict[str, Any]:
    return {'console': {'type': wanted['type'], 'url': cloud.consoles.open(server, protocol, wanted['type'])}}


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
            check_rdp(self.cloud)
        url = self.cloud.consoles.open(server, wanted['protocol'], wanted['type'])
        return {'remote_console': {'protocol': wanted['protocol'], 'type': wanted['type'], 'url': url}}


class ConsoleAuthTokens(ComputeController):
    """Console tokens. The first versions show tokens of RDP consoles only, and a cloud without RDP refuses them all."""

    path = '/os-console-auth-tokens'

    @operation(
        'GET',
        '/{id}',
        policy=None,
        also=(SHOW_TOKEN,),
        query=ABSENT,
        response={'console': CONSOLE},
    )
    @api_version('2.1', before(ANY_TOKEN))
    def show_rdp(self, req: Request, id: str) -> dict[str, Any]:
        """Show the connection information of an RDP console token."""
        check_rdp(self.cloud)
        req.check(SHOW_TOKEN)
        token = self.cloud.consoles.find(id)
        if token.kind != RDP:
            raise NotAuthenticated('The requested console type details are not accessible')
        return {'console': CONSOLE.render(req, token)}

    @operation(
        'GET',
        '/{id}',
        policy=SHOW_TOKEN,
        query=query({}, strict='2.99'),
        response={'console': CONSOLE},
    )
    @api_version(ANY_TOKEN)
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show the connection information of a console token."""
        return {'console': CONSOLE.render(req, self.cloud.consoles.find(id))}
