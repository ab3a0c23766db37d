"""Monthly usage audits: which hosts have reported for a month.

An audit reports by notifications, which this service does not send; so no host has run one.
"""

from datetime import MINYEAR, datetime
from typing import NamedTuple

from computeapi.compute.services import ServiceManager
from computeapi.db.services import COMPUTE
from computeapi.errors import Invalid


class Audit(NamedTuple):
    """The audit of the period from `begin` to `end`; hosts_not_run: the hosts that have not reported for it."""

    begin: datetime
    end: datetime
    hosts_not_run: list[str]


class UsageAudits:
    """Errors: Invalid."""

    def __init__(self, services: ServiceManager):
        self.services, self.clock = services, services.clock

    def last(self, before: datetime | None = None) -> Audit:
        """The audit of the last month that ended before the given time, by default now."""
        begin, end = _month_before(before or self.clock())
        return Audit(begin, end, [status.service.host for status in self.services.list(binary=COMPUTE)])


def _month_before(moment: datetime) -> tuple[datetime, datetime]:
    end = moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    if end == moment:
        end = _previous(end)
    return _previous(end), end


def _previous(first: datetime) -> datetime:
    """The first day of the previous month."""
    if first.month == 1:
        if first.year == MINYEAR:
            raise Invalid(f'There is no month before {first}.')
        return first.replace(year=first.year - 1, month=12)
    return first.replace(month=first.month - 1)
