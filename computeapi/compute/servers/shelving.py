"""Shelving: an image of the server is kept and its host given up, until it is unshelved."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable
from datetime import timedelta

from oslo_config import cfg

from computeapi.backends.image import Images
from computeapi.compute.servers.images import described
from computeapi.compute.servers.life import Life, check
from computeapi.compute.states import ACTIVE, PAUSED, SHELVED, SHELVED_OFFLOADED, STOPPED, SUSPENDED, Change
from computeapi.compute.work.snapshot import discard
from computeapi.compute.zones import Zones
from computeapi.context import Context
from computeapi.db.servers import Server
from computeapi.errors import Invalid

SHELVE = Change('shelve', 'shelve', 'shelving', frozenset({ACTIVE, STOPPED, PAUSED, SUSPENDED}))
OFFLOAD = Change('shelveOffload', 'offload', 'shelving_offloading', frozenset({SHELVED}))
UNSHELVE = Change('unshelve', 'unshelve', 'unshelving', frozenset({SHELVED, SHELVED_OFFLOADED}))


class Shelves:
    """Errors: as Life's; Invalid for a zone or a host that does not exist."""

    def __init__(
        self,
        life: Life,
        images: Images,
        conf: cfg.ConfigOpts,
        check_host: Callable[[str], None],
        zones: Zones,
    ):
        self.life, self.images, self.conf = life, images, conf
        self.check_host, self.zones = check_host, zones

    def shelve(self, context: Context, server: Server) -> None:
        """Keep an image of the server, and leave its host at once or after a while."""
        if not server.image_id:
            self.life.begin(context, server, SHELVE)
            return
        image_id = str(uuid.uuid4())
        undo = functools.partial(discard, self.images, context, image_id)
        with self.life.prepared(context, server, SHELVE, {'image_id': image_id}, undo):
            self.images.create(
                context,
                f'{server.name}-shelved',
                image_id=image_id,
                properties=described(server),
                disk_format='raw',
                container_format='bare',
            )

    def offload(self, context: Context, server: Server) -> None:
        """Leave the host now."""
        self.life.begin(context, server, OFFLOAD)

    def unshelve(
        self,
        context: Context,
        server: Server,
        *,
        zone: str | None = None,
        unpin: bool = False,
        host: str | None = None,
    ) -> None:
        """Run again: on the host that it still has, or on one that is found; zone: pinned there from now on."""
        check(context, server, UNSHELVE)
        if zone is not None:
            self.zones.check(zone)
        if host is not None:
            self.check_host(host)
        if (zone or unpin or host) and server.vm_state != SHELVED_OFFLOADED:
            raise Invalid(
                f'Unshelving instance {server.uuid} to a zone or a host needs it to be {SHELVED_OFFLOADED}; '
                f'it is {server.vm_state}'
            )
        pinned = {'pinned_availability_zone': zone} if zone or unpin else {}
        self.life.begin(context, server, UNSHELVE, {'host': host}, **pinned)

    @property
    def offload_after(self) -> timedelta | None:
        """How long a shelved server keeps its host; None: for ever."""
        seconds = self.conf.shelved_offload_time
        return None if seconds < 0 else timedelta(seconds=seconds)
