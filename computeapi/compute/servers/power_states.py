"""Servers whose guests switched themselves off or broke down, found now and then: nobody else tells of it."""

import logging
from collections.abc import Callable

from computeapi.backends.hypervisor import PowerState
from computeapi.compute.platform import Platform
from computeapi.compute.servers.events import POWER_UPDATE, Event, ExternalEvents
from computeapi.context import Context
from computeapi.db import servers as rows
from computeapi.db.servers import Server
from computeapi.errors import Error
from computeapi.states import VMState

LOG = logging.getLogger(__name__)
NOBODY = Context(user_id='', project_id='', user_name='power').elevated()
AT_ONCE = 200
OFF = (PowerState.SHUTDOWN, PowerState.CRASHED)


class PowerStates:
    """Looks at the servers by turns, some at a time; then it begins anew."""

    def __init__(self, platform: Platform, events: ExternalEvents, at_once: int = AT_ONCE):
        self.platform, self.events, self.at_once = platform, events, at_once
        self.last = ''

    def take_turn(self, is_mine: Callable[[], bool]) -> None:
        """Look at the next servers, if it is for this process to do."""
        if not is_mine():
            return
        server_ids = self.platform.store.ask(rows.on_hosts, self.last, self.at_once)
        found = self.platform.store.ask(rows.alive, server_ids)
        off = [Event(POWER_UPDATE, server.uuid, 'POWER_OFF') for server in found if self.is_off(server)]
        if off:
            # As if somebody had told: a server on which somebody works by now is left to that one.
            self.events.take(NOBODY, off)
        self.last = server_ids[-1] if len(server_ids) == self.at_once else ''

    def is_off(self, server: Server) -> bool:
        """Whether it should run, and its machine does not."""
        if server.vm_state != VMState.ACTIVE or server.task_state is not None:
            return False
        try:
            return self.platform.hypervisor.power_state(server) in OFF
        except Error as error:
            LOG.info('Whether %s runs cannot be seen: %s', server.uuid, error)
            return False
