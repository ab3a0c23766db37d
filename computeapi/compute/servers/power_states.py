"""Periodically finds servers whose machines are in an unexpected power state, which nothing else reports: the guest
shut down or crashed, or somebody started it on its host."""

import logging
from collections import defaultdict
from typing import NamedTuple

from computeapi import randomness
from computeapi.backends.hypervisor import PowerState
from computeapi.compute.servers.changes import Changes
from computeapi.compute.servers.power import PAUSED_IS_OFF, POWERED_OFF, STOPPED_IS_ON
from computeapi.compute.tasks.transition import Transition
from computeapi.context import Context
from computeapi.db import servers
from computeapi.db.clock import elapsed
from computeapi.db.servers import Server
from computeapi.errors import Error
from computeapi.states import VMState

LOG = logging.getLogger(__name__)
NOBODY = Context(user_id='', project_id='', user_name='power').elevated()
BATCH = 200
# The time limit for checking the servers of one host in one turn: a slow host must not delay the others.
SECONDS_AT_A_HOST = 30.0
OFF = (PowerState.SHUTDOWN, PowerState.CRASHED)
ON = (PowerState.RUNNING, PowerState.PAUSED)


class PowerMismatch(NamedTuple):
    """The power states that the machine of a server must not have, and the transition that follows if it does."""

    power: tuple[PowerState, ...]
    follows: Transition


STRAYS = {
    VMState.ACTIVE: PowerMismatch(OFF, POWERED_OFF),
    VMState.PAUSED: PowerMismatch(OFF, PAUSED_IS_OFF),
    VMState.STOPPED: PowerMismatch(ON, STOPPED_IS_ON),
}
"""By vm_state of the server."""


class PowerStates:
    """Checks the servers in batches, and starts over after the last one."""

    def __init__(self, changes: Changes, at_once: int = BATCH):
        self.changes, self.platform, self.at_once = changes, changes.platform, at_once
        self.last = ''

    def take_turn(self) -> None:
        """Check the next servers, in random order, so that those of a slow host all have their turn."""
        server_ids = self.platform.store.query(servers.on_hosts, self.last, self.at_once)
        spent = defaultdict[str | None, float](float)
        for server in randomness.shuffled(self.platform.store.query(servers.alive, server_ids)):
            stray, began = STRAYS.get(VMState(server.vm_state)), elapsed()
            if stray is None or server.task_state is not None or spent[server.host] > SECONDS_AT_A_HOST:
                continue
            if self._power(server) in stray.power:
                self.changes.follow(NOBODY, server, stray.follows)
            spent[server.host] += elapsed() - began
        self.last = server_ids[-1] if len(server_ids) == self.at_once else ''

    def _power(self, server: Server) -> PowerState | None:
        try:
            return self.platform.hypervisor.power_state(server)
        except Error as error:
            LOG.info('The power state of %s could not be determined: %s', server.uuid, error)
            return None
