"""POST /servers/{id}/action: locking and unlocking."""

import functools
from typing import Any

from computeapi.api.servers.controller import ServerController, action
from computeapi.api.types import NONEMPTY, OR_NULL
from computeapi.db.servers import Server
from computeapi.versions import added, changed, removed
from computeapi.web.contract import ADMIN, MEMBER_OR_ADMIN, Policy
from computeapi.web.request import Request, target_of
from computeapi.web.schemas import closed

LOCK = Policy('os_compute_api:os-lock-server:lock', MEMBER_OR_ADMIN, 'Lock a server')
UNLOCK = Policy('os_compute_api:os-lock-server:unlock', MEMBER_OR_ADMIN, 'Unlock a server')
UNLOCK_OVERRIDE = Policy(
    'os_compute_api:os-lock-server:unlock:unlock_override', ADMIN, 'Unlock a server that somebody else locked'
)

REASONS = '2.73'
WITH_REASON = closed({'locked_reason': NONEMPTY}) | OR_NULL


class ServerLocks(ServerController):
    """Locking servers against changes."""

    @action(
        'lock',
        policy=LOCK,
        takes=changed({'2.1': {}, REASONS: WITH_REASON}),
        behaviour={'reasons': added(REASONS, True)},
    )
    def lock(self, req: Request, server: Server, body: Any) -> None:
        """Lock a server against changes."""
        facts = (body['lock'] or {}) if req.behaviour.reasons else {}
        self.cloud.locks.lock(req.context, server, facts.get('locked_reason'))

    @action('unlock', policy=UNLOCK, also=(UNLOCK_OVERRIDE,), takes=removed(REASONS, {}))
    def unlock(self, req: Request, server: Server, body: Any) -> None:
        """Unlock a server."""
        check_override = functools.partial(req.check, UNLOCK_OVERRIDE, target_of(server))
        self.cloud.locks.unlock(req.context, server, check_override)
