"""Whether the hosts that are behind agents can be heard at all, before it is said of any that it is down."""

from collections.abc import Callable
from datetime import datetime, timedelta

from oslo_config import cfg

from computeapi.db import services
from computeapi.db.engine import Store
from computeapi.errors import NeighbourAway

REPORTS = 2
"""For so many reports hosts have time to be heard again, one after the other, when the first of them was."""


class HostsUnheard(NeighbourAway):
    """It is likelier that the broker is away, or that nobody has listened, than that all hosts are down: what was asked
    of them waits, as it does for a neighbour."""

    text = 'No compute host is heard of.'


class Hearing:
    """Remembers when there was silence last: before this process began nobody has listened."""

    def __init__(self, store: Store, conf: cfg.ConfigOpts, clock: Callable[[], datetime]):
        self.store, self.clock = store, clock
        self.by_agents = conf.hypervisor.backend == 'remote'
        self.down_after = timedelta(seconds=conf.service_down_time)
        self.returning = timedelta(seconds=REPORTS * conf.report_interval)
        self.silence = clock()

    def check(self) -> None:
        """HostsUnheard, where there are agents, while not one of them is heard of, and until all had time to be."""
        last = self.store.ask(services.last_sign) if self.by_agents else None
        if last is None:
            return
        now = self.clock()
        if now - last > self.down_after:
            self.silence = now
        if now - self.silence <= self.returning:
            raise HostsUnheard()
