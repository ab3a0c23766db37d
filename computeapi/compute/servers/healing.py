"""Compares the network info of servers with the network service from time to time, because events may be lost."""

import logging

from computeapi.compute.platform import Platform
from computeapi.compute.servers.addresses import BATCH, Addresses
from computeapi.context import Context
from computeapi.db import servers
from computeapi.errors import NeighbourAway

LOG = logging.getLogger(__name__)
NOBODY = Context(user_id='', project_id='', user_name='healing').elevated()


class Healing:
    """Checks the servers in batches, and starts over after the last one."""

    def __init__(self, platform: Platform, at_once: int = BATCH):
        self.platform, self.at_once = platform, at_once
        self.addresses = Addresses(platform)
        self.last = ''

    def take_turn(self) -> None:
        """Check the next batch."""
        before = self.last
        server_ids = self.platform.store.query(servers.on_hosts, before, self.at_once)
        # Set before the check: any error but an outage concerns this batch only, and must not block the next one.
        self.last = server_ids[-1] if len(server_ids) == self.at_once else ''
        try:
            self.addresses.refresh(NOBODY, server_ids)
        except NeighbourAway as away:
            LOG.warning('The addresses of servers could not be checked: %s', away)
            self.last = before
