"""The periods of usage audits."""

from datetime import datetime

import pytest
from oslo_config import cfg

from computeapi import config
from computeapi.compute.audit_periods import AuditPeriods
from computeapi.errors import Invalid


def periods(setting):
    return AuditPeriods(config.load(overrides={('DEFAULT', 'instance_usage_audit_period'): setting}))


@pytest.mark.parametrize(
    ('setting', 'now', 'begin', 'end'),
    [
        ('hour', '2026-03-01 10:20:30', '2026-03-01 09:00', '2026-03-01 10:00'),
        ('hour@30', '2026-03-01 00:20:30', '2026-02-28 22:30', '2026-02-28 23:30'),
        ('day', '2026-03-01 10:20:30', '2026-02-28 00:00', '2026-03-01 00:00'),
        ('day@12', '2026-03-01 10:20:30', '2026-02-27 12:00', '2026-02-28 12:00'),
        ('month', '2026-01-31 10:20:30', '2025-12-01 00:00', '2026-01-01 00:00'),
        ('month@0', '2026-01-31 10:20:30', '2025-12-01 00:00', '2026-01-01 00:00'),
        ('month@15', '2026-03-10 00:00:00', '2026-01-15 00:00', '2026-02-15 00:00'),
        ('month@28', '2026-03-29 00:00:00', '2026-02-28 00:00', '2026-03-28 00:00'),
        ('year', '2026-03-01 00:00:00', '2025-01-01 00:00', '2026-01-01 00:00'),
        ('year@7', '2026-03-01 00:00:00', '2024-07-01 00:00', '2025-07-01 00:00'),
        # A period that ends at this moment has not ended before it.
        ('month', '2026-03-01 00:00:00', '2026-01-01 00:00', '2026-02-01 00:00'),
    ],
)
def test_the_last_period(setting, now, begin, end):
    now, begin, end = map(datetime.fromisoformat, (now, begin, end))
    assert periods(setting).last_before(now) == (begin, end)
    assert periods(setting).current(now) == (end, now)


@pytest.mark.parametrize(
    ('setting', 'now'), [('year', '0001-06-01'), ('month', '0001-01-31'), ('day', '0001-01-01'), ('hour', '0001-01-01')]
)
def test_the_calendar_has_a_beginning(setting, now):
    with pytest.raises(Invalid):
        periods(setting).last_before(datetime.fromisoformat(now))


@pytest.mark.parametrize('setting', ['week', 'hour@60', 'day@24', 'month@29', 'year@13', 'month@-1', 'months', ''])
def test_no_periods(setting):
    with pytest.raises((cfg.Error, ValueError)):
        periods(setting)
