"""Whether any agent has reported recently; if none has, no host is considered down because of that."""

from collections.abc import Callable
from datetime import datetime, timedelta

from oslo_config import cfg

from computeapi.db import services
from computeapi.db.clock import elapsed
from computeapi.db.engine import Store
from computeapi.errors import NeighbourAway

REPORTS = 2
"""After the first host reports again, the others have this many report intervals to follow."""


class AgentsSilent(NeighbourAway):
    """It is more likely that the broker is away, or that no process was listening, than that all hosts are down:
    requests to them wait, as for any neighbour."""

    text = 'No compute host has reported recently.'


class AgentSilence:
    """Remembers the last time of silence. It starts with this process, because nobody may have listened before."""

    def __init__(self, store: Store, conf: cfg.ConfigOpts, clock: Callable[[], datetime]):
        self.store, self.clock = store, clock
        self.by_agents = conf.hypervisor.backend == 'remote'
        self.down_after = timedelta(seconds=conf.service_down_time)
        self.returning = REPORTS * conf.report_interval
        # Not by the clock of the database, which may not be available yet.
        self.silence = elapsed()

    def check(self) -> None:
        """AgentsSilent, if there are agents, while none of them reports, and until all have had time to report."""
        last = self.store.query(services.last_sign) if self.by_agents else None
        if last is None:
            return
        if self.clock() - last > self.down_after:
            self.silence = elapsed()
        if elapsed() - self.silence <= self.returning:
            raise AgentsSilent()
