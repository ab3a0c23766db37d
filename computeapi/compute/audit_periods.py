"""The periods of usage audits: whole hours, days, months or years, of UTC."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from oslo_config import cfg

from computeapi.errors import Invalid

FIRST = {'minute': 0, 'hour': 0, 'day': 1, 'month': 1}
WITHIN = {
    'hour': ('minute',),
    'day': ('hour', 'minute'),
    'month': ('day', 'hour', 'minute'),
    'year': ('month', 'day', 'hour', 'minute'),
}
"""The fields of a moment within each unit; an offset is a value of the first one."""


class Period(NamedTuple):
    begin: datetime
    end: datetime


class AuditPeriods:
    """The periods of [DEFAULT]instance_usage_audit_period: month@15 are those from the 15th to the 15th."""

    def __init__(self, conf: cfg.ConfigOpts):
        self.unit, _, offset = conf.instance_usage_audit_period.partition('@')
        self.start: dict[str, Any] = {'second': 0, 'microsecond': 0} | {each: FIRST[each] for each in WITHIN[self.unit]}
        if int(offset or 0):
            self.start[WITHIN[self.unit][0]] = int(offset)

    def last_before(self, moment: datetime) -> Period:
        """The last period that ended before a moment; Invalid if the calendar begins later."""
        try:
            end = moment.replace(**self.start)
            if end >= moment:
                end = self._before(end)
            return Period(self._before(end), end)
        except (OverflowError, ValueError):
            raise Invalid(f'There is no {self.unit} before {moment}.') from None

    def current(self, moment: datetime) -> Period:
        """What has passed of the period at a moment."""
        return Period(self.last_before(moment).end, moment)

    def _before(self, start: datetime) -> datetime:
        """The start of the period before the one that starts then."""
        if self.unit == 'year':
            return start.replace(year=start.year - 1)
        if self.unit == 'month':
            return (start.replace(day=1) - timedelta(days=1)).replace(day=start.day)
        return start - timedelta(**{f'{self.unit}s': 1})
