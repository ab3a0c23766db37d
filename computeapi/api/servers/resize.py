"""POST /servers/{id}/action: resize and cold migration, with confirmation and reversion."""

from typing import Any

from computeapi.api.servers.controller import ServerController, action
from computeapi.api.servers.schemas import DISK_CONFIG, FLAVOR_REF, HOST_OR_NULL
from computeapi.api.types import OR_NULL
from computeapi.db.servers import Server
from computeapi.versions import ABSENT, added, changed
from computeapi.web.contract import ADMIN, MANAGER_OR_ADMIN, MEMBER_OR_ADMIN, NOBODY, Policy
from computeapi.web.request import Request, target_of
from computeapi.web.schemas import closed

RESIZE = Policy('os_compute_api:servers:resize', MEMBER_OR_ADMIN, 'Resize a server')
CROSS_CELL = Policy('compute:servers:resize:cross_cell', NOBODY, 'Resize or migrate a server to another cell')
CONFIRM = Policy('os_compute_api:servers:confirm_resize', MEMBER_OR_ADMIN, 'Confirm the resize of a server')
REVERT = Policy('os_compute_api:servers:revert_resize', MEMBER_OR_ADMIN, 'Revert the resize of a server')
MIGRATE = Policy('os_compute_api:os-migrate-server:migrate', MANAGER_OR_ADMIN, 'Migrate a server to another host')
MIGRATE_TO = Policy('os_compute_api:os-migrate-server:migrate:host', ADMIN, 'Migrate a server to a specified host')

# ------------------------------------------------------------------ requests

SIZE = closed({'flavorRef': FLAVOR_REF, 'OS-DCF:diskConfig': DISK_CONFIG}, ['flavorRef'])
HOSTS = '2.56'
WITH_HOST = closed({'host': HOST_OR_NULL}) | OR_NULL


class ServerResize(ServerController):
    """Resizing servers, and cold migration."""

    @action('resize', policy=RESIZE, also=(CROSS_CELL,), takes=SIZE, errors=(403, 409))
    def resize(self, req: Request, server: Server, body: Any) -> None:
        """Resize a server to another flavor."""
        wanted = body['resize']
        disk_config = wanted.get('OS-DCF:diskConfig')
        self.cloud.resizes.resize(req.context, server, str(wanted['flavorRef']), disk_config)

    @action('confirmResize', policy=CONFIRM, status=204, errors=(409,))
    def confirm(self, req: Request, server: Server, body: Any) -> None:
        """Confirm the resize or migration of a server."""
        self.cloud.resizes.confirm(req.context, server)

    @action('revertResize', policy=REVERT, errors=(409,))
    def revert(self, req: Request, server: Server, body: Any) -> None:
        """Revert the resize or migration of a server."""
        self.cloud.resizes.revert(req.context, server)

    @action(
        'migrate',
        policy=None,
        also=(MIGRATE, MIGRATE_TO),
        takes=changed({'2.1': ABSENT, HOSTS: WITH_HOST}),
        errors=(403, 409),
        behaviour={'hosts': added(HOSTS, True)},
    )
    def migrate(self, req: Request, server: Server, body: Any) -> None:
        """Migrate a server to another host."""
        host = (body['migrate'] or {}).get('host') if req.behaviour.hosts else None
        req.check(MIGRATE_TO if host else MIGRATE, target_of(server))
        self.cloud.resizes.migrate(req.context, server, host)
