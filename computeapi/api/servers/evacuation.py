"""POST /servers/{id}/action {evacuate}: rebuilds a server whose host is down on another host."""

from typing import Any

from computeapi.api.servers.admin_password import password_of, shown_password
from computeapi.api.servers.controller import ServerController, action
from computeapi.api.types import HOST, LENIENT_BOOLEAN, NULLABLE_STRING, STRING, is_forced
from computeapi.booleans import is_true
from computeapi.db.servers import Server
from computeapi.errors import Invalid
from computeapi.versions import ABSENT, added, changed, removed
from computeapi.web.contract import ADMIN, Policy
from computeapi.web.controller import api_version
from computeapi.web.request import Request
from computeapi.web.schemas import closed

EVACUATE = Policy('os_compute_api:os-evacuate', ADMIN, 'Evacuate a server from a host that is down')

HOST_IS_CHECKED = '2.29'
STORAGE_IS_FOUND_OUT = '2.14'
FACTS = closed(
    {
        'host': HOST,
        'onSharedStorage': removed(STORAGE_IS_FOUND_OUT, LENIENT_BOOLEAN),
        'adminPass': STRING,
        'force': changed({HOST_IS_CHECKED: LENIENT_BOOLEAN, '2.68': ABSENT}),
    },
    required=[removed(STORAGE_IS_FOUND_OUT, 'onSharedStorage')],
)


class ServerEvacuation(ServerController):
    """Evacuating servers from hosts that are down."""

    @action(
        'evacuate',
        policy=EVACUATE,
        takes=FACTS,
        response=removed(STORAGE_IS_FOUND_OUT, closed({'adminPass': NULLABLE_STRING})),
        status=200,
        errors=(403, 409),
        behaviour={'host_is_checked': added(HOST_IS_CHECKED, True), 'start': removed('2.95', True)},
    )
    def evacuate(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Evacuate a server from a host that is down to another host, with a new password."""
        return shown_password(self.cloud.conf, self.move(req, server, body['evacuate']))

    @api_version(STORAGE_IS_FOUND_OUT)
    def evacuate(self, req: Request, server: Server, body: Any) -> None:
        """Evacuate a server from a host that is down to another host."""
        self.move(req, server, body['evacuate'])

    def move(self, req: Request, server: Server, wanted: Any) -> str | None:
        """Begin the evacuation; returns the new password, if the server gets one."""
        host, behaviour = wanted.get('host'), req.behaviour
        force = is_forced(wanted, host_is_checked=bool(behaviour.host_is_checked))
        keeps_disk = is_true(wanted.get('onSharedStorage', False))
        if keeps_disk and 'adminPass' in wanted:
            raise Invalid("admin password can't be changed on existing disk")
        password = None if keeps_disk else password_of(self.cloud.conf, wanted)
        self.cloud.evacuations.evacuate(
            req.context, server, host, force=force, start=bool(behaviour.start), admin_pass=password
        )
        return password
