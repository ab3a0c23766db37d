"""POST /servers/{id}/action: locks against changes."""

from __future__ import annotations

from typing import Any

from computeapi.api.servers.subject import ServerController, action
from computeapi.db.servers import Server
from computeapi.versions import ABSENT, added, changed
from computeapi.web.contract import ADMIN, MEMBER_OR_ADMIN, Policy, lone
from computeapi.web.request import Request, target_of

LOCK = Policy('os_compute_api:os-lock-server:lock', MEMBER_OR_ADMIN, 'Lock a server')
UNLOCK = Policy('os_compute_api:os-lock-server:unlock', MEMBER_OR_ADMIN, 'Unlock a server')
UNLOCK_OVERRIDE = Policy(
    'os_compute_api:os-lock-server:unlock:unlock_override', ADMIN, 'Unlock a server that somebody else locked'
)

REASONS = '2.73'
WITH_REASON = lone(
    'lock',
    {
        'type': ['object', 'null'],
        'properties': {'locked_reason': {'type': 'string', 'minLength': 1, 'maxLength': 255}},
        'additionalProperties': False,
    },
)


class ServerLocks(ServerController):
    """Locks against changes."""

    @action(
        'lock',
        policy=LOCK,
        body=changed({'2.1': lone('lock'), REASONS: WITH_REASON}),
        errors=(404,),
        behaviour={'reasons': added(REASONS, True)},
    )
    def lock(self, req: Request, server: Server, body: Any) -> None:
        """Lock a server against changes."""
        facts = (body['lock'] or {}) if req.behaviour.reasons else {}
        self.cloud.locks.lock(req.context, server, facts.get('locked_reason'))

    @action(
        'unlock',
        policy=UNLOCK,
        also=(UNLOCK_OVERRIDE,),
        body=changed({'2.1': lone('unlock'), REASONS: ABSENT}),
        errors=(404,),
    )
    def unlock(self, req: Request, server: Server, body: Any) -> None:
        """Unlock a server."""
        expected = 'owner' if server.project_id == req.context.project_id else 'admin'
        if server.locked_by not in (None, expected):
            req.check(UNLOCK_OVERRIDE, target_of(server))
        self.cloud.locks.unlock(req.context, server)
