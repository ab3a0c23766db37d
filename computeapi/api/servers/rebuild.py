"""POST /servers/{id}/action {rebuild}: rebuilds a server from an image."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from computeapi.api.servers.admin_password import password_of, shown_password
from computeapi.api.servers.columns import columns_of
from computeapi.api.servers.controller import ServerController, action
from computeapi.api.servers.schemas import (
    CERTIFICATES,
    DESCRIPTION,
    DISK_CONFIG,
    FILE,
    HOSTNAME,
    IPV4,
    IPV6,
    METADATA,
    USER_DATA,
)
from computeapi.api.servers.view import READER_POLICIES, REBUILD
from computeapi.api.types import LENIENT_BOOLEAN, NAME, NONEMPTY, NOTHING, STRING, UUID
from computeapi.booleans import is_true
from computeapi.compute.servers.rebuild import RebuildRequest
from computeapi.db.servers import Server
from computeapi.versions import added, removed
from computeapi.web.contract import MEMBER_OR_ADMIN, Policy
from computeapi.web.request import Reply, Request, target_of
from computeapi.web.schemas import array, closed

REBUILD_SERVER = Policy('os_compute_api:servers:rebuild', MEMBER_OR_ADMIN, 'Rebuild a server')
TRUSTED_CERTS = Policy(
    'os_compute_api:servers:rebuild:trusted_certs', MEMBER_OR_ADMIN, 'Rebuild a server with trusted image certificates'
)

# ------------------------------------------------------------------ requests

BODY = closed(
    {
        'name': NAME,
        'imageRef': UUID,
        'adminPass': STRING,
        'metadata': METADATA,
        'preserve_ephemeral': LENIENT_BOOLEAN,
        'OS-DCF:diskConfig': DISK_CONFIG,
        'accessIPv4': IPV4,
        'accessIPv6': IPV6,
        'personality': removed('2.57', array(FILE)),
        'description': added('2.19', DESCRIPTION),
        'key_name': added('2.54', {'oneOf': [NONEMPTY, NOTHING]}),
        'user_data': added('2.57', USER_DATA | {'type': ['string', 'null']}),
        'trusted_image_certificates': added('2.63', CERTIFICATES),
        'hostname': HOSTNAME,
    },
    ['imageRef'],
)
CHANGES = (
    *('name', 'description', 'hostname', 'metadata', 'accessIPv4', 'accessIPv6'),
    *('key_name', 'user_data', 'trusted_image_certificates'),
)
"""What is stored of the body."""


class ServerRebuild(ServerController):
    """Rebuilding servers."""

    @action(
        'rebuild',
        policy=REBUILD_SERVER,
        also=(TRUSTED_CERTS, *READER_POLICIES),
        takes=BODY,
        response={'server': REBUILD},
        errors=(403, 409),
        behaviour={'even_on_volume': added('2.93', True)},
    )
    def rebuild(self, req: Request, server: Server, body: Any) -> Reply:
        """Rebuild a server: it keeps its name and addresses, and gets a new root disk."""
        wanted = body['rebuild']
        if 'trusted_image_certificates' in wanted:
            req.check(TRUSTED_CERTS, target_of(server))
        password = password_of(self.cloud.conf, wanted)
        request = replace(request_of(req, wanted), admin_pass=password)
        self.cloud.rebuilds.rebuild(req.context, server, request)
        shown = REBUILD.render(req, server) | shown_password(self.cloud.conf, password)
        return Reply({'server': shown}, {'Location': f'{req.endpoint}/servers/{server.uuid}'})


def request_of(req: Request, wanted: Mapping[str, Any]) -> RebuildRequest:
    """The body as a RebuildRequest."""
    return RebuildRequest(
        image_id=wanted['imageRef'],
        changes=columns_of(wanted, CHANGES),
        disk_config=wanted.get('OS-DCF:diskConfig'),
        personality=wanted.get('personality', ()),
        preserve_ephemeral=is_true(wanted.get('preserve_ephemeral')),
        even_on_volume=bool(req.behaviour.even_on_volume),
    )
