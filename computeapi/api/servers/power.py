"""POST /servers/{id}/action: power operations."""

from typing import Any

from computeapi.api.servers.controller import ServerController, action
from computeapi.api.types import NOTHING
from computeapi.compute.servers import power
from computeapi.db.servers import Server
from computeapi.web.contract import MEMBER_OR_ADMIN, Policy
from computeapi.web.controller import api_version
from computeapi.web.request import Request
from computeapi.web.schemas import lone, one_of

START = Policy('os_compute_api:servers:start', MEMBER_OR_ADMIN, 'Start a server')
STOP = Policy('os_compute_api:servers:stop', MEMBER_OR_ADMIN, 'Stop a server')
REBOOT = Policy('os_compute_api:servers:reboot', MEMBER_OR_ADMIN, 'Reboot a server')
PAUSE = Policy('os_compute_api:os-pause-server:pause', MEMBER_OR_ADMIN, 'Pause a server')
UNPAUSE = Policy('os_compute_api:os-pause-server:unpause', MEMBER_OR_ADMIN, 'Unpause a server')
SUSPEND = Policy('os_compute_api:os-suspend-server:suspend', MEMBER_OR_ADMIN, 'Suspend a server')
RESUME = Policy('os_compute_api:os-suspend-server:resume', MEMBER_OR_ADMIN, 'Resume a server')
CRASH_DUMP = Policy('os_compute_api:servers:trigger_crash_dump', MEMBER_OR_ADMIN, 'Trigger a crash dump in a server')

REBOOT_TYPE = one_of('HARD', 'Hard', 'hard', 'SOFT', 'Soft', 'soft')


class ServerStarts(ServerController):
    """Starting and stopping servers, and crash dumps."""

    by_cell = True

    @action('os-start', policy=START, errors=(409,))
    def start(self, req: Request, server: Server, body: Any) -> None:
        """Start a stopped server."""
        self.begin(req, server, power.START)

    @action('os-stop', policy=STOP, errors=(409,))
    def stop(self, req: Request, server: Server, body: Any) -> None:
        """Stop a running server."""
        self.begin(req, server, power.STOP)

    @action('trigger_crash_dump', policy=CRASH_DUMP, takes=NOTHING, errors=(409, 501))
    @api_version('2.17')
    def crash_dump(self, req: Request, server: Server, body: Any) -> None:
        """Trigger a crash dump in a server."""
        self.begin(req, server, power.CRASH_DUMP)


class ServerPower(ServerController):
    """Rebooting, pausing and suspending servers."""

    @action('reboot', policy=REBOOT, takes=lone('type', REBOOT_TYPE), errors=(409,))
    def reboot(self, req: Request, server: Server, body: Any) -> None:
        """Reboot a server: SOFT lets its guest shut down, HARD does not."""
        hard = body['reboot']['type'].upper() == 'HARD'
        self.begin(req, server, power.HARD_REBOOT if hard else power.SOFT_REBOOT)

    @action('pause', policy=PAUSE, errors=(409, 501))
    def pause(self, req: Request, server: Server, body: Any) -> None:
        """Pause a server: it stays in memory, but does not run."""
        self.begin(req, server, power.PAUSE)

    @action('unpause', policy=UNPAUSE, errors=(409, 501))
    def unpause(self, req: Request, server: Server, body: Any) -> None:
        """Unpause a server."""
        self.begin(req, server, power.UNPAUSE)

    @action('suspend', policy=SUSPEND, errors=(403, 409, 501))
    def suspend(self, req: Request, server: Server, body: Any) -> None:
        """Suspend a server: its memory is written to disk."""
        self.begin(req, server, power.SUSPEND)

    @action('resume', policy=RESUME, errors=(409, 501))
    def resume(self, req: Request, server: Server, body: Any) -> None:
        """Resume a suspended server."""
        self.begin(req, server, power.RESUME)
