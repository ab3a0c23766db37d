"""Usage audits: at the end of each period, other services are notified of the servers that were used in it.

The servers are gone through in the order of their IDs, in many transactions, each of which notifies of some of them and
records how far it is. So there is exactly one notification for each server, whatever process continues the audit.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from computeapi.compute.audit_periods import AuditPeriods, Period
from computeapi.compute.notifications.servers import ServerNotifications
from computeapi.compute.services import ServiceManager
from computeapi.db import notifications, usage_audits
from computeapi.db.engine import Store
from computeapi.db.services import COMPUTE


class Audit(NamedTuple):
    """The audit of a period.

    hosts: the compute hosts.  counts: how many servers were used, by host, of those that it includes.  is_done:
    whether that is all.
    """

    period: Period
    hosts: list[str]
    counts: Mapping[str, int]
    is_done: bool

    @property
    def hosts_not_run(self) -> list[str]:
        """The hosts that it does not include."""
        return [host for host in self.hosts if host not in self.counts]


class UsageAudits:
    """Errors: Invalid."""

    def __init__(self, services: ServiceManager):
        self.services, self.store, self.periods = services, services.store, AuditPeriods(services.conf)

    def last(self, before: datetime | None = None) -> Audit:
        """The audit of the last period that ended before the given time, by default now."""
        period = self.periods.last_before(before or self.store.clock())
        hosts = [status.service.host for status in self.services.list(binary=COMPUTE)]
        audit = self.store.query(usage_audits.find, *period)
        if audit is None:
            return Audit(period, hosts, {}, False)
        if audit.ended_at is None:
            return Audit(period, hosts, audit.counts, False)
        # It went through all servers, so nothing is missing from a host that was added later.
        return Audit(period, hosts, dict.fromkeys(hosts, 0) | audit.counts, True)


class UsageAuditor:
    """Performs the audits; any number of processes can. most_waiting: beyond how many notifications the oldest are
    dropped."""

    def __init__(self, store: Store, notifications: ServerNotifications, most_waiting: int):
        self.store, self.notifications, self.most_waiting = store, notifications, most_waiting

    def catch_up(self) -> None:
        """Perform the audit of the last period, unless that is done.

        While many notifications wait, it pauses until the next call.
        """
        period = self.notifications.periods.last_before(self.store.clock())
        audit = self.store.query(usage_audits.find, *period)
        if audit is None or audit.ended_at is None:
            while self._has_room() and self.store.change(self._advance, period):
                pass

    def _has_room(self) -> bool:
        """Whether many more notifications can wait."""
        return bool(self.store.query(notifications.waiting) < self.most_waiting / 2)

    def _advance(self, connection: sa.Connection, period: Period) -> bool:
        """Notify of some servers; returns whether others may be left."""
        now = self.store.clock()
        audit = usage_audits.locked(connection, *period, now)
        if audit.ended_at is not None:
            return False
        found, last_id = usage_audits.next_servers(connection, audit)
        if last_id is None:
            usage_audits.finish(connection, audit, now)
            return False
        self.notifications.existed(connection, found, period)
        counts = Counter(audit.counts)
        counts.update(server.host or '' for server in found)
        usage_audits.advance(connection, audit, last_id, counts)
        return True
