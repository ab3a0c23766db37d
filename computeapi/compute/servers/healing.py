"""What servers know of their ports, compared now and then with the network service, whose events may be lost."""

import logging
from collections.abc import Callable

from computeapi.compute.platform import Platform
from computeapi.compute.servers.ports import AT_ONCE, Addresses
from computeapi.context import Context
from computeapi.db import servers as rows
from computeapi.errors import NeighbourAway

LOG = logging.getLogger(__name__)
NOBODY = Context(user_id='', project_id='', user_name='healing').elevated()


class Healing:
    """Looks at the servers by turns, some at a time; then it begins anew."""

    def __init__(self, platform: Platform, at_once: int = AT_ONCE):
        self.platform, self.at_once = platform, at_once
        self.addresses = Addresses(platform)
        self.last = ''

    def take_turn(self, is_mine: Callable[[], bool]) -> None:
        """Look at the next servers, if it is for this process to do."""
        if not is_mine():
            return
        server_ids = self.platform.store.ask(rows.on_hosts, self.last, self.at_once)
        try:
            self.addresses.refresh(NOBODY, server_ids)
        except NeighbourAway as away:
            LOG.warning('The addresses of servers could not be checked: %s', away)
            return
        self.last = server_ids[-1] if len(server_ids) == self.at_once else ''
