"""POST /servers/{id}/action: resize, migration, evacuation; and /servers/{id}/migrations."""

from computeapi.api.servers.schemas import DISK_CONFIG
from computeapi.api.servers.subject import ServerController, action
from computeapi.api.types import SPOKEN_BOOLEAN, STRING
from computeapi.booleans import FALSE, TRUE, spoken
from computeapi.compute.passwords import generate
from computeapi.errors import FlavorNotFound, Invalid
from computeapi.versions import ABSENT, APIVersionRequest, changed
from computeapi.web.contract import ADMIN, MANAGER_OR_ADMIN, MEMBER_OR_ADMIN, NOBODY, Policy, closed, lone

# ------------------------------------------------------------------ policies

RESIZE = Policy('os_compute_api:servers:resize', MEMBER_OR_ADMIN, 'Resize a server')
CROSS_CELL = Policy('compute:servers:resize:cross_cell', NOBODY, 'Resize or migrate a server to another cell')
CONFIRM = Policy('os_compute_api:servers:confirm_resize', MEMBER_OR_ADMIN, 'Confirm the resize of a server')
REVERT = Policy('os_compute_api:servers:revert_resize', MEMBER_OR_ADMIN, 'Revert the resize of a server')
MIGRATE = Policy('os_compute_api:os-migrate-server:migrate', MANAGER_OR_ADMIN, 'Migrate a server to another host')
MIGRATE_TO = Policy('os_compute_api:os-migrate-server:migrate:host', ADMIN, 'Migrate a server to a named host')
LIVE = Policy('os_compute_api:os-migrate-server:migrate_live', MANAGER_OR_ADMIN, 'Live migrate a server')
LIVE_TO = Policy('os_compute_api:os-migrate-server:migrate_live:host', ADMIN, 'Live migrate a server to a named host')
EVACUATE = Policy('os_compute_api:os-evacuate', ADMIN, 'Evacuate a server from a host that is down')

HOST_IS_READ = APIVersionRequest.parse('2.56')
PASSWORD_IS_RETURNED = APIVersionRequest.parse('2.14')
HOST_IS_VERIFIED = APIVersionRequest.parse('2.29')
FORCE_IS_ASKED = APIVersionRequest.parse('2.30')
STAYS_STOPPED = APIVersionRequest.parse('2.95')

# ------------------------------------------------------------------ requests

FLAVOR_REF = {'type': ['string', 'integer'], 'minLength': 1}
RESIZE_BODY = lone('resize', closed({'flavorRef': FLAVOR_REF, 'OS-DCF:diskConfig': DISK_CONFIG}, ['flavorRef']))
HOST = {'type': 'string', 'minLength': 1, 'maxLength': 255, 'pattern': '^[a-zA-Z0-9-._]*$'}
HOST_OR_NULL = HOST | {'type': ['string', 'null']}
MIGRATE_BODY = changed(
    {
        '2.1': ABSENT,
        '2.56': lone(
            'migrate',
            {'type': ['object', 'null'], 'properties': {'host': HOST_OR_NULL}, 'additionalProperties': False},
        ),
    }
)
BLOCK_OR_AUTO = {'type': ['boolean', 'string'], 'enum': [True, *TRUE, False, *FALSE, 'auto']}
LIVE_BODY = lone(
    'os-migrateLive',
    {
        'type': 'object',
        'properties': {
            'host': HOST_OR_NULL,
            'block_migration': changed({'2.1': SPOKEN_BOOLEAN, '2.25': BLOCK_OR_AUTO}),
            'disk_over_commit': changed({'2.1': SPOKEN_BOOLEAN, '2.25': ABSENT}),
            'force': changed({'2.30': SPOKEN_BOOLEAN, '2.68': ABSENT}),
        },
        'required': changed(
            {'2.1': ['block_migration', 'disk_over_commit', 'host'], '2.25': ['block_migration', 'host']}
        ),
        'additionalProperties': False,
    },
)
EVACUATE_BODY = lone(
    'evacuate',
    {
        'type': 'object',
        'properties': {
            'host': HOST,
            'onSharedStorage': changed({'2.1': SPOKEN_BOOLEAN, '2.14': ABSENT}),
            'adminPass': {'type': 'string'},
            'force': changed({'2.29': SPOKEN_BOOLEAN, '2.68': ABSENT}),
        },
        'required': changed({'2.1': ['onSharedStorage'], '2.14': []}),
        'additionalProperties': False,
    },
)

# ------------------------------------------------------------------ controller


class ServerMoves(ServerController):
    """Resizing servers and moving them to other hosts."""

    @action('resize', policy=RESIZE, also=(CROSS_CELL,), body=RESIZE_BODY, errors=(403, 404, 409))
    def resize(self, req, server, body):
        """Resize a server to another flavor."""
        wanted = body['resize']
        try:
            flavor = self.cloud.flavors.get(req.context, str(wanted['flavorRef']))
        except FlavorNotFound as error:
            raise Invalid(str(error)) from None
        self.cloud.moves.resize(req.context, server, flavor, wanted.get('OS-DCF:diskConfig'))

    @action('confirmResize', policy=CONFIRM, body=lone('confirmResize'), status=204, errors=(404, 409))
    def confirm(self, req, server, body):
        """Confirm the resize or migration of a server."""
        self.cloud.moves.confirm(req.context, server)

    @action('revertResize', policy=REVERT, body=lone('revertResize'), errors=(404, 409))
    def revert(self, req, server, body):
        """Revert the resize or migration of a server."""
        self.cloud.moves.revert(req.context, server)

    @action('migrate', policy=None, also=(MIGRATE, MIGRATE_TO), body=MIGRATE_BODY, errors=(403, 404, 409))
    def migrate(self, req, server, body):
        """Migrate a server to another host."""
        host = (body['migrate'] or {}).get('host') if req.version >= HOST_IS_READ else None
        self.permit(req, server, MIGRATE_TO if host else MIGRATE)
        self.cloud.moves.migrate(req.context, server, host)

    @action('os-migrateLive', policy=None, also=(LIVE, LIVE_TO), body=LIVE_BODY, errors=(403, 404, 409))
    def live_migrate(self, req, server, body):
        """Migrate a server to another host while it runs."""
        wanted = body['os-migrateLive']
        self.permit(req, server, LIVE_TO if wanted.get('host') else LIVE)
        # Before 2.30 a named host was taken without asking the scheduler.
        force = spoken(wanted.get('force')) or (wanted.get('host') is not None and req.version < FORCE_IS_ASKED)
        self.cloud.moves.live_migrate(req.context, server, wanted.get('host'), force=force)

    @action(
        'evacuate',
        policy=EVACUATE,
        body=EVACUATE_BODY,
        response=changed({'2.1': closed({'adminPass': STRING}), '2.14': ABSENT}),
        status=200,
        errors=(403, 404, 409),
    )
    def evacuate(self, req, server, body):
        """Rebuild a server of a host that is down on another host."""
        wanted = body['evacuate']
        host = wanted.get('host')
        force = spoken(wanted.get('force')) or (host is not None and req.version < HOST_IS_VERIFIED)
        self.cloud.moves.evacuate(req.context, server, host, force=force, start=req.version < STAYS_STOPPED)
        if req.version < PASSWORD_IS_RETURNED:
            return {'adminPass': wanted.get('adminPass') or generate(self.cloud.conf.password_length)}
        return None

    def permit(self, req, server, policy):
        req.check(policy, {'project_id': server.project_id, 'user_id': server.user_id})
