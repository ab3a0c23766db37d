"""POST /servers/{id}/action: shelving."""

from typing import Any

from computeapi.api.servers.controller import ServerController, action
from computeapi.api.types import NAME, NULLABLE_STRING, OR_NULL, STRING
from computeapi.compute.servers import shelving
from computeapi.db.servers import Server
from computeapi.versions import added, changed
from computeapi.web.contract import ADMIN, MEMBER_OR_ADMIN, Policy
from computeapi.web.request import Request, target_of
from computeapi.web.schemas import closed

SHELVE = Policy('os_compute_api:os-shelve:shelve', MEMBER_OR_ADMIN, 'Shelve a server')
UNSHELVE = Policy('os_compute_api:os-shelve:unshelve', MEMBER_OR_ADMIN, 'Unshelve a server')
UNSHELVE_TO_HOST = Policy('os_compute_api:os-shelve:unshelve_to_host', ADMIN, 'Unshelve a server to a specified host')
OFFLOAD = Policy('os_compute_api:os-shelve:shelve_offload', ADMIN, 'Offload a shelved server from its host')

ZONES, HOSTS = '2.77', '2.91'

DESTINATION = closed(
    {
        'availability_zone': changed({ZONES: NAME, HOSTS: NULLABLE_STRING}),
        'host': added(HOSTS, STRING),
    },
    required=changed({ZONES: ['availability_zone'], HOSTS: []}),
)


class ServerShelving(ServerController):
    """Shelving servers: an image of the server is stored and its host is released, until it is unshelved."""

    @action('shelve', policy=SHELVE, errors=(403, 409))
    def shelve(self, req: Request, server: Server, body: Any) -> None:
        """Shelve a server."""
        self.cloud.shelves.shelve(req.context, server)

    @action('shelveOffload', policy=OFFLOAD, errors=(409,))
    def offload(self, req: Request, server: Server, body: Any) -> None:
        """Offload a shelved server from its host."""
        self.begin(req, server, shelving.OFFLOAD)

    @action(
        'unshelve',
        policy=UNSHELVE,
        also=(UNSHELVE_TO_HOST,),
        takes=changed({'2.1': {}, ZONES: DESTINATION | OR_NULL}),
        errors=(403, 409),
        behaviour={'zones': added(ZONES, True)},
    )
    def unshelve(self, req: Request, server: Server, body: Any) -> None:
        """Unshelve a server."""
        wanted = (body['unshelve'] or {}) if req.behaviour.zones else {}
        if 'host' in wanted:
            req.check(UNSHELVE_TO_HOST, target_of(server))
        zone = wanted.get('availability_zone')
        unpin = 'availability_zone' in wanted and zone is None
        self.cloud.shelves.unshelve(req.context, server, zone=zone, unpin=unpin, host=wanted.get('host'))
