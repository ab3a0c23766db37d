"""POST /servers/{id}/action: rescue, which boots a server from another image with its own disk attached."""

from typing import Any

from computeapi.api.servers.admin_password import password_of, shown_password
from computeapi.api.servers.controller import ServerController, action
from computeapi.api.types import OR_NULL, STRING, UUID
from computeapi.compute.servers import rescue
from computeapi.db.servers import Server
from computeapi.versions import added
from computeapi.web.contract import MEMBER_OR_ADMIN, Policy
from computeapi.web.request import Request
from computeapi.web.schemas import closed

RESCUE = Policy('os_compute_api:os-rescue', MEMBER_OR_ADMIN, 'Rescue a server')
UNRESCUE = Policy('os_compute_api:os-unrescue', MEMBER_OR_ADMIN, 'Unrescue a server')

RESCUE_FACTS = closed({'adminPass': STRING, 'rescue_image_ref': UUID}) | OR_NULL


class ServerRescue(ServerController):
    """Rescuing servers: booting them from a rescue image."""

    @action(
        'rescue',
        policy=RESCUE,
        takes=RESCUE_FACTS,
        response=closed({'adminPass': STRING}),
        status=200,
        errors=(409, 501),
        behaviour={'even_on_volume': added('2.87', True)},
    )
    def rescue(self, req: Request, server: Server, body: Any) -> dict[str, str]:
        """Rescue a server: it boots from a rescue image, with its own disk attached."""
        wanted = body['rescue'] or {}
        image_id, even_on_volume = wanted.get('rescue_image_ref'), bool(req.behaviour.even_on_volume)
        self.cloud.rescues.rescue(req.context, server, image_id, even_on_volume=even_on_volume)
        return shown_password(self.cloud.conf, password_of(self.cloud.conf, wanted))

    @action('unrescue', policy=UNRESCUE, errors=(409, 501))
    def unrescue(self, req: Request, server: Server, body: Any) -> None:
        """Unrescue a server: it boots from its own disk again."""
        self.begin(req, server, rescue.UNRESCUE)
