"""Rescue: a server boots from another image, with its own disk beside it."""

from __future__ import annotations

from computeapi.backends.image import Images
from computeapi.compute.servers.life import RESCUE, Life, check
from computeapi.context import Context
from computeapi.db.servers import Server
from computeapi.errors import ImageNotFound, Invalid


class Rescues:
    """Errors: as Life's; Invalid for an image that cannot be booted, or a server that cannot be rescued."""

    def __init__(self, life: Life, images: Images):
        self.life, self.images = life, images

    def rescue(self, context: Context, server: Server, image_id: str | None, *, even_on_volume: bool) -> None:
        """Boot from *image_id*, by default the image that the server was made from."""
        check(context, server, RESCUE)
        if not server.image_id and not even_on_volume:
            reason = 'Cannot rescue a volume-backed instance'
            raise Invalid(f'Instance {server.uuid} cannot be rescued: {reason}')
        wanted = image_id or server.image_id
        if wanted is not None:
            self.check_image(context, wanted)
        self.life.begin(context, server, RESCUE, {'image_id': wanted})

    def check_image(self, context: Context, image_id: str) -> None:
        try:
            usable = self.images.get(context, image_id).status == 'active'
        except ImageNotFound:
            usable = False
        if not usable:
            raise Invalid(f"Requested rescue image '{image_id}' is not supported")
