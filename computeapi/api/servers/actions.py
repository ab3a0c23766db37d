"""POST /servers/{id}/action and DELETE /servers/{id}: starting, stopping, locking ..."""

from computeapi.api.servers.subject import ServerController, action
from computeapi.api.types import STRING
from computeapi.versions import ABSENT, APIVersionRequest, changed
from computeapi.web.contract import ADMIN, MEMBER_OR_ADMIN, Policy, closed, lone
from computeapi.web.controller import operation

# ------------------------------------------------------------------ policies

DELETE = Policy('os_compute_api:servers:delete', MEMBER_OR_ADMIN, 'Delete a server')
START = Policy('os_compute_api:servers:start', MEMBER_OR_ADMIN, 'Start a server')
STOP = Policy('os_compute_api:servers:stop', MEMBER_OR_ADMIN, 'Stop a server')
REBOOT = Policy('os_compute_api:servers:reboot', MEMBER_OR_ADMIN, 'Reboot a server')
LOCK = Policy('os_compute_api:os-lock-server:lock', MEMBER_OR_ADMIN, 'Lock a server')
UNLOCK = Policy('os_compute_api:os-lock-server:unlock', MEMBER_OR_ADMIN, 'Unlock a server')
UNLOCK_OVERRIDE = Policy(
    'os_compute_api:os-lock-server:unlock:unlock_override', ADMIN, 'Unlock a server that somebody else locked'
)
CONSOLE_OUTPUT = Policy('os_compute_api:os-console-output', MEMBER_OR_ADMIN, "Read a server's serial console")

# ------------------------------------------------------------------ requests


REBOOT_TYPE = {'type': 'string', 'enum': ['HARD', 'Hard', 'hard', 'SOFT', 'Soft', 'soft']}
REASONS = APIVersionRequest.parse('2.73')
LOCK_BODY = changed(
    {
        '2.1': lone('lock'),
        '2.73': lone(
            'lock',
            {
                'type': ['object', 'null'],
                'properties': {'locked_reason': {'type': 'string', 'minLength': 1, 'maxLength': 255}},
                'additionalProperties': False,
            },
        ),
    }
)
LENGTH = {'type': ['integer', 'string', 'null'], 'pattern': '^-?[0-9]+$', 'minimum': -1, 'maxLength': 18}

# ------------------------------------------------------------------ controller


class ServerActions(ServerController):
    """What a server can be asked for."""

    @operation('DELETE', '/{server_id}', policy=DELETE, status=204, errors=(404, 409))
    def delete(self, req, server):
        """Delete a server."""
        self.cloud.life.delete(req.context, server)

    @action('os-start', policy=START, body=lone('os-start'), errors=(404, 409))
    def start(self, req, server, body):
        """Start a stopped server."""
        self.cloud.life.start(req.context, server)

    @action('os-stop', policy=STOP, body=lone('os-stop'), errors=(404, 409))
    def stop(self, req, server, body):
        """Stop a running server."""
        self.cloud.life.stop(req.context, server)

    @action('reboot', policy=REBOOT, body=lone('reboot', closed({'type': REBOOT_TYPE}, ['type'])), errors=(404, 409))
    def reboot(self, req, server, body):
        """Reboot a server: SOFT lets it shut down, HARD does not."""
        self.cloud.life.reboot(req.context, server, hard=body['reboot']['type'].upper() == 'HARD')

    @action('lock', policy=LOCK, body=LOCK_BODY, errors=(404,))
    def lock(self, req, server, body):
        """Lock a server against changes."""
        facts = (body['lock'] or {}) if req.version >= REASONS else {}
        self.cloud.life.lock(req.context, server, facts.get('locked_reason'))

    @action(
        'unlock',
        policy=UNLOCK,
        also=(UNLOCK_OVERRIDE,),
        body=changed({'2.1': lone('unlock'), '2.73': ABSENT}),
        errors=(404,),
    )
    def unlock(self, req, server, body):
        """Unlock a server."""
        expected = 'owner' if server.project_id == req.context.project_id else 'admin'
        if server.locked_by not in (None, expected):
            req.check(UNLOCK_OVERRIDE, {'project_id': server.project_id, 'user_id': server.user_id})
        self.cloud.life.unlock(req.context, server)

    @action(
        'os-getConsoleOutput',
        policy=CONSOLE_OUTPUT,
        body=lone('os-getConsoleOutput', closed({'length': LENGTH})),
        response=closed({'output': STRING}, ['output']),
        status=200,
        errors=(404, 409, 501),
    )
    def console_output(self, req, server, body):
        """Read what a server wrote to its serial console."""
        length = body['os-getConsoleOutput'].get('length')
        lines = None if length is None or int(length) == -1 else int(length)
        return {'output': self.cloud.life.console_output(req.context, server, lines)}
