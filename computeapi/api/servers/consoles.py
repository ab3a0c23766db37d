"""Graphical and serial consoles: POST /servers/{server_id}/remote-consoles, and the actions that were before it."""

from computeapi.api.gone import MALFORMED
from computeapi.api.servers.actions import lone
from computeapi.api.servers.subject import ServerController, action
from computeapi.api.types import STRING
from computeapi.errors import Invalid
from computeapi.versions import added
from computeapi.web.contract import MEMBER_OR_ADMIN, Policy, closed
from computeapi.web.controller import api_version, operation

REMOTE_CONSOLES = Policy('os_compute_api:os-remote-consoles', MEMBER_OR_ADMIN, 'Open a console of a server')

# ------------------------------------------------------------------ requests and answers

# What was once RDP is still understood, and refused.
PROTOCOL = {'type': 'string', 'enum': ['vnc', 'spice', 'serial', 'rdp', added('2.8', 'mks')]}
TYPE = {
    'type': 'string',
    'enum': [
        'novnc',
        'xvpvnc',
        'spice-html5',
        'serial',
        'rdp-html5',
        added('2.8', 'webmks'),
        added('2.99', 'spice-direct'),
    ],
}
WANTED = {'protocol': PROTOCOL, 'type': TYPE}
BODY = closed({'remote_console': closed(WANTED, WANTED)}, ['remote_console'])
OPENED = WANTED | {'url': STRING}


def console_action(name: str, *kinds: str):
    """An action that opens a console of one of these types; gone from 2.6 on."""
    facts = {'type': {'type': 'string', 'enum': list(kinds)}}
    console = facts | {'url': STRING}
    return action(
        name,
        policy=REMOTE_CONSOLES,
        body=lone(name, closed(facts, facts)),
        response=closed({'console': closed(console, console)}, ['console']),
        status=200,
        errors=(404, 409, 501),
    )


# ------------------------------------------------------------------ controllers


class ServerConsoles(ServerController):
    """Consoles by protocol, one action for each."""

    @console_action('os-getVNCConsole', 'novnc', 'xvpvnc')
    @api_version('2.1', '2.5')
    def vnc(self, req, server, body):
        """Open a VNC console of a server."""
        return self.opened(server, 'vnc', body['os-getVNCConsole']['type'])

    @console_action('os-getSPICEConsole', 'spice-html5')
    @api_version('2.1', '2.5')
    def spice(self, req, server, body):
        """Open a SPICE console of a server."""
        return self.opened(server, 'spice', body['os-getSPICEConsole']['type'])

    @console_action('os-getSerialConsole', 'serial')
    @api_version('2.1', '2.5')
    def serial(self, req, server, body):
        """Open a serial console of a server."""
        return self.opened(server, 'serial', body['os-getSerialConsole']['type'])

    def opened(self, server, protocol, kind):
        return {'console': {'type': kind, 'url': self.cloud.consoles.open(server, protocol, kind)}}


class RemoteConsoles(ServerController):
    """Consoles of any protocol."""

    path = '/servers/{server_id}/remote-consoles'

    @operation(
        'POST',
        policy=REMOTE_CONSOLES,
        body=BODY,
        response=closed({'remote_console': closed(OPENED, OPENED)}, ['remote_console']),
        errors=(404, 409, 501),
    )
    @api_version('2.6')
    def create(self, req, server, body):
        """Open a console of a server."""
        wanted = body['remote_console']
        if wanted['protocol'] == 'rdp':
            raise Invalid(MALFORMED)
        url = self.cloud.consoles.open(server, wanted['protocol'], wanted['type'])
        return {'remote_console': {'protocol': wanted['protocol'], 'type': wanted['type'], 'url': url}}
