"""The log of usage audits: no host has run any."""

from datetime import datetime

import pytest

PATH = '/os-instance_usage_audit_log'


@pytest.fixture(autouse=True)
def hosts(service):
    service.conf.set_override('hosts', 2, 'simulated')
    service.hosts.register()


def test_the_last_month(api, sample):
    audit = api.get(PATH).json['instance_usage_audit_logs']
    wanted = sample('os-instance-usage-audit-log/inst-usage-audit-log-index-get-resp.json')['instance_usage_audit_logs']
    assert {key: type(value) for key, value in audit.items()} == {key: type(value) for key, value in wanted.items()}
    assert audit['hosts_not_run'] == ['compute1', 'compute2'] and audit['num_hosts'] == audit['num_hosts_not_run'] == 2
    assert audit['overall_status'] == '0 of 2 hosts done. 0 errors.'
    begin, end = (datetime.fromisoformat(audit[f'period_{name}']) for name in ('beginning', 'ending'))
    assert begin < end < datetime.now() and (begin.day, end.day) == (1, 1)


@pytest.mark.parametrize(
    ('moment', 'begin', 'end'),
    [
        ('2012-07-05%2010:00:00', '2012-06-01 00:00:00', '2012-07-01 00:00:00'),
        ('2012-01-31%2010:00:00.5', '2011-12-01 00:00:00', '2012-01-01 00:00:00'),
        ('2012-02-01%2000:00:00', '2011-12-01 00:00:00', '2012-01-01 00:00:00'),
    ],
)
def test_the_month_before(api, sample, moment, begin, end):
    audit = api.get(f'{PATH}/{moment}').json['instance_usage_audit_log']
    wanted = sample('os-instance-usage-audit-log/inst-usage-audit-log-show-get-resp.json')['instance_usage_audit_log']
    assert audit.keys() == wanted.keys()
    assert (audit['period_beginning'], audit['period_ending']) == (begin, end)


@pytest.mark.parametrize(
    'moment', ['junk', '2012-07-05', '2012-07-05T10:00:00', '0001-01-01%2000:00:00', '0001-02-01%2000:00:00']
)
def test_no_moments(api, moment):
    assert api.get(f'{PATH}/{moment}').status == 400


def test_only_for_administrators(api, legacy):
    assert api.get(PATH, as_='bob:project').status == 403
    assert api.get(f'{PATH}/2012-07-05%2010:00:00', as_='bob:project').status == 403
    assert legacy.get(PATH).status == 200
