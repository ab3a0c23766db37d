"""POST /servers/{id}/action: what changes whether and how a server runs."""

from computeapi.api.servers.subject import ServerController, action
from computeapi.api.types import NOTHING
from computeapi.compute.passwords import generate
from computeapi.compute.servers import life
from computeapi.compute.states import ACTIVE, ERROR
from computeapi.versions import APIVersionRequest
from computeapi.web.contract import ADMIN, MEMBER_OR_ADMIN, Policy, closed, lone
from computeapi.web.controller import api_version

# ------------------------------------------------------------------ policies

PAUSE = Policy('os_compute_api:os-pause-server:pause', MEMBER_OR_ADMIN, 'Pause a server')
UNPAUSE = Policy('os_compute_api:os-pause-server:unpause', MEMBER_OR_ADMIN, 'Unpause a server')
SUSPEND = Policy('os_compute_api:os-suspend-server:suspend', MEMBER_OR_ADMIN, 'Suspend a server')
RESUME = Policy('os_compute_api:os-suspend-server:resume', MEMBER_OR_ADMIN, 'Resume a server')
RESCUE = Policy('os_compute_api:os-rescue', MEMBER_OR_ADMIN, 'Boot a server from a rescue image')
UNRESCUE = Policy('os_compute_api:os-unrescue', MEMBER_OR_ADMIN, 'End the rescue of a server')
CRASH_DUMP = Policy('os_compute_api:servers:trigger_crash_dump', MEMBER_OR_ADMIN, 'Trigger a crash dump in a server')
PASSWORD = Policy('os_compute_api:os-admin-password', MEMBER_OR_ADMIN, "Change a server's administrator password")
RESET_STATE = Policy('os_compute_api:os-admin-actions:reset_state', ADMIN, 'Set the state of a server by hand')
FORCE_DELETE = Policy('os_compute_api:os-deferred-delete:force', MEMBER_OR_ADMIN, 'Delete a server at once')
RESTORE = Policy('os_compute_api:os-deferred-delete:restore', MEMBER_OR_ADMIN, 'Restore a deleted server')

VOLUMES_ARE_RESCUED = APIVersionRequest.parse('2.87')

# ------------------------------------------------------------------ requests

ADMIN_PASSWORD = {'type': 'string'}
RESCUE_BODY = lone(
    'rescue',
    {
        'type': ['object', 'null'],
        'properties': {
            'adminPass': ADMIN_PASSWORD,
            'rescue_image_ref': {'type': 'string', 'format': 'uuid'},
        },
        'additionalProperties': False,
    },
)
PASSWORD_BODY = lone('changePassword', closed({'adminPass': ADMIN_PASSWORD}, ['adminPass']))
STATE = {'type': 'string', 'enum': [ACTIVE, ERROR]}

# ------------------------------------------------------------------ controller


class ServerPower(ServerController):
    """What changes whether and how a server runs."""

    @action('pause', policy=PAUSE, body=lone('pause'), errors=(404, 409, 501))
    def pause(self, req, server, body):
        """Pause a server: it stays in memory and does nothing."""
        self.cloud.life.begin(req.context, server, life.PAUSE)

    @action('unpause', policy=UNPAUSE, body=lone('unpause'), errors=(404, 409, 501))
    def unpause(self, req, server, body):
        """Let a paused server go on."""
        self.cloud.life.begin(req.context, server, life.UNPAUSE)

    @action('suspend', policy=SUSPEND, body=lone('suspend'), errors=(403, 404, 409))
    def suspend(self, req, server, body):
        """Suspend a server: its memory is written to disk."""
        self.cloud.life.begin(req.context, server, life.SUSPEND)

    @action('resume', policy=RESUME, body=lone('resume'), errors=(404, 409))
    def resume(self, req, server, body):
        """Resume a suspended server."""
        self.cloud.life.begin(req.context, server, life.RESUME)

    @action(
        'rescue',
        policy=RESCUE,
        body=RESCUE_BODY,
        response=closed({'adminPass': {'type': 'string'}}),
        status=200,
        errors=(404, 409, 501),
    )
    def rescue(self, req, server, body):
        """Boot a server from a rescue image, with its own disk beside it."""
        wanted = body['rescue'] or {}
        password = wanted.get('adminPass') or generate(self.cloud.conf.password_length)
        on_volume = req.version >= VOLUMES_ARE_RESCUED
        self.cloud.rescues.rescue(req.context, server, wanted.get('rescue_image_ref'), even_on_volume=on_volume)
        return {'adminPass': password}

    @action('unrescue', policy=UNRESCUE, body=lone('unrescue'), errors=(404, 409, 501))
    def unrescue(self, req, server, body):
        """End the rescue of a server: it boots from its own disk again."""
        self.cloud.life.begin(req.context, server, life.UNRESCUE)

    @action('trigger_crash_dump', policy=CRASH_DUMP, body=lone('trigger_crash_dump', NOTHING), errors=(404, 409))
    @api_version('2.17')
    def crash_dump(self, req, server, body):
        """Trigger a crash dump in a server."""
        self.cloud.life.begin(req.context, server, life.CRASH_DUMP)

    @action('changePassword', policy=PASSWORD, body=PASSWORD_BODY, errors=(404, 409, 501))
    def change_password(self, req, server, body):
        """Change the password of a server's administrator."""
        self.cloud.life.change_password(req.context, server, body['changePassword']['adminPass'])

    @action(
        'os-resetState',
        policy=RESET_STATE,
        body=lone('os-resetState', closed({'state': STATE}, ['state'])),
        errors=(404,),
    )
    def reset_state(self, req, server, body):
        """Set the state of a server by hand."""
        self.cloud.life.reset_state(req.context, server, body['os-resetState']['state'])

    @action('forceDelete', policy=FORCE_DELETE, body=lone('forceDelete'), errors=(404, 409))
    def force_delete(self, req, server, body):
        """Delete a server at once."""
        self.cloud.life.force_delete(req.context, server)

    @action('restore', policy=RESTORE, body=lone('restore'), errors=(403, 404, 409))
    def restore(self, req, server, body):
        """Restore a server that was deleted and is kept for a while."""
        self.cloud.life.restore(req.context, server)
