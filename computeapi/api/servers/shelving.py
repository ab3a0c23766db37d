"""POST /servers/{id}/action: shelving."""

from computeapi.api.servers.subject import ServerController, action
from computeapi.versions import APIVersionRequest, changed
from computeapi.web.contract import ADMIN, MEMBER_OR_ADMIN, Policy, lone

SHELVE = Policy('os_compute_api:os-shelve:shelve', MEMBER_OR_ADMIN, 'Shelve a server')
UNSHELVE = Policy('os_compute_api:os-shelve:unshelve', MEMBER_OR_ADMIN, 'Unshelve a server')
UNSHELVE_TO_HOST = Policy('os_compute_api:os-shelve:unshelve_to_host', ADMIN, 'Unshelve a server to a host')
OFFLOAD = Policy('os_compute_api:os-shelve:shelve_offload', ADMIN, 'Take a shelved server from its host')

PLACE_IS_READ = APIVersionRequest.parse('2.77')

ZONE = {'type': 'string', 'minLength': 1, 'maxLength': 255}
UNSHELVE_BODY = changed(
    {
        '2.1': lone('unshelve'),
        '2.77': lone(
            'unshelve',
            {
                'type': ['object', 'null'],
                'properties': {
                    'availability_zone': changed(
                        {'2.77': {'type': 'string'}, '2.91': ZONE | {'type': ['string', 'null']}}
                    ),
                    'host': changed({'2.91': ZONE}),
                },
                'required': changed({'2.77': ['availability_zone'], '2.91': []}),
                'additionalProperties': False,
            },
        ),
    }
)


class ServerShelving(ServerController):
    """Shelving: an image of the server is kept and its host given up, until it is unshelved."""

    @action('shelve', policy=SHELVE, body=lone('shelve'), errors=(403, 404, 409))
    def shelve(self, req, server, body):
        """Shelve a server."""
        self.cloud.shelves.shelve(req.context, server)

    @action('shelveOffload', policy=OFFLOAD, body=lone('shelveOffload'), errors=(404, 409))
    def offload(self, req, server, body):
        """Take a shelved server from its host."""
        self.cloud.shelves.offload(req.context, server)

    @action('unshelve', policy=UNSHELVE, also=(UNSHELVE_TO_HOST,), body=UNSHELVE_BODY, errors=(403, 404, 409))
    def unshelve(self, req, server, body):
        """Let a shelved server run again."""
        wanted = (body['unshelve'] or {}) if req.version >= PLACE_IS_READ else {}
        if 'host' in wanted:
            req.check(UNSHELVE_TO_HOST, {'project_id': server.project_id, 'user_id': server.user_id})
        zone = wanted.get('availability_zone')
        unpin = 'availability_zone' in wanted and zone is None
        self.cloud.shelves.unshelve(req.context, server, zone=zone, unpin=unpin, host=wanted.get('host'))
