"""Usage audits: which servers were used in a period, and the log of that."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from computeapi.compute.publishers import publishers_of
from computeapi.compute.usage_audits import UsageAuditor
from computeapi.db import usage_audits
from computeapi.db.archive import purge
from tests.databases import listened
from tests.interruptible import Interruptible, Killed
from tests.notified import data, taken

DAILY = pytest.mark.parametrize('conf', ['day'], indirect=True)
PATH = '/os-instance_usage_audit_log'
NOW, BEGIN, END = (datetime(2026, 3, *rest) for rest in ((2, 10, 30), (1,), (2,)))
"""The present, and the last day before it."""
HOUR = timedelta(hours=1)


@pytest.fixture
def store(store):
    return Interruptible(store)


@pytest.fixture
def conf(conf, request):
    """Audits of each month, or of the unit in the parameter."""
    conf.set_override('instance_usage_audit_period', getattr(request, 'param', 'month'))
    conf.set_override('notification_format', 'versioned', 'notifications')
    conf.set_override('instance_usage_audit', True)
    return conf


def existed(store):
    """The notifications of use since the last call; those of the hosts are not of interest."""
    return [each for each in taken(store) if each.event_type == 'instance.exists']


@pytest.fixture
def auditor(service, monkeypatch):
    monkeypatch.setattr(service.store, 'clock', lambda: NOW)
    return UsageAuditor(service.store, service.platform.notifications, service.conf.notifications.most_waiting)


@pytest.fixture
def used(servers):
    """used(begin, end): the UUID of a server that ran between these hours of the period; end None: it still runs."""

    def add(begin, end=None, host='compute1', **more):
        ended = None if end is None else BEGIN + end * HOUR
        gone = {} if end is None else {'vm_state': 'deleted', 'terminated_at': ended, 'deleted_at': ended}
        return servers.add(launched_at=BEGIN + begin * HOUR, host=host, **gone, **more)

    return add


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


@DAILY
def test_an_audit_tells_about_the_servers_of_the_period(api, auditor, store, used):
    used(-5, -1), used(25), used(1, host=None)
    wanted = [used(-5), used(-5, 1), used(1, 2, host='compute2'), used(23, 30)]
    auditor.catch_up()
    found = existed(store)
    assert [data(each)['uuid'] for each in found] == wanted
    assert [each.publisher_id for each in found][1:3] == ['nova-compute:compute1', 'nova-compute:compute2']
    assert data(found[0])['audit_period']['nova_object.data'] == {
        'audit_period_beginning': '2026-03-01T00:00:00Z',
        'audit_period_ending': '2026-03-02T00:00:00Z',
    }
    audit = api.get(PATH).json['instance_usage_audit_logs']
    assert (audit['period_beginning'], audit['period_ending']) == (str(BEGIN), str(END))
    assert audit['overall_status'] == 'ALL hosts done. 0 errors.' and audit['hosts_not_run'] == []
    assert [audit[f'num_hosts{each}'] for each in ('', '_done', '_running', '_not_run')] == [2, 2, 0, 0]
    assert (audit['total_instances'], audit['total_errors']) == (4, 0)
    assert [(name, log['state'], log['instances']) for name, log in audit['log'].items()] == [
        ('compute1', 'DONE', 3),
        ('compute2', 'DONE', 1),
    ]
    auditor.catch_up()
    assert existed(store) == []


@DAILY
def test_a_host_that_is_new_since_an_audit_is_done(api, auditor, service):
    """It can have had no server that the audit did not go through."""
    auditor.catch_up()
    service.conf.set_override('hosts', 3, 'simulated')
    service.hosts.register()
    audit = api.get(PATH).json['instance_usage_audit_logs']
    assert audit['overall_status'] == 'ALL hosts done. 0 errors.' and audit['hosts_not_run'] == []
    assert [audit[f'num_hosts{each}'] for each in ('', '_done', '_not_run')] == [3, 3, 0]
    assert audit['log']['compute3'] == audit['log']['compute1']


@DAILY
def test_an_audit_in_progress(api, auditor, service, store, used):
    used(1)
    begun = store.change(usage_audits.locked, BEGIN, END, NOW)
    service.conf.set_override('hosts', 3, 'simulated')
    service.hosts.register()
    audit = api.get(PATH).json['instance_usage_audit_logs']
    assert [audit[f'num_hosts{each}'] for each in ('', '_done', '_running', '_not_run')] == [3, 0, 2, 1]
    assert audit['hosts_not_run'] == ['compute3'] and audit['overall_status'] == '0 of 3 hosts done. 0 errors.'
    assert audit['log']['compute1']['state'] == 'RUNNING'
    auditor.catch_up()
    assert len(existed(store)) == 1 and store.query(usage_audits.find, BEGIN, END).id == begun.id


@DAILY
def test_each_server_is_told_about_once_whatever_is_killed(auditor, monkeypatch, store, used):
    monkeypatch.setattr(usage_audits, 'EXAMINED', 2)
    wanted = [used(1) for _ in range(5)]
    kills = 0
    while True:
        store.after(1, store.die)
        try:
            auditor.catch_up()
        except Killed:
            kills += 1
            store.revive()
        else:
            break
    store.after(None, None)
    assert kills == 3 and [data(each)['uuid'] for each in existed(store)] == wanted


@DAILY
def test_the_notifications_of_a_step_are_written_together(auditor, store, used):
    wanted = [used(1) for _ in range(20)]
    statements = []
    with listened(store.engine, 'before_cursor_execute', lambda *facts: statements.append(facts[2])):
        auditor.catch_up()
    assert len([each for each in statements if each.startswith('INSERT INTO notifications')]) == 2
    assert [data(each)['uuid'] for each in existed(store)] == wanted


@DAILY
@pytest.mark.several_writers
def test_several_processes_perform_one_audit(auditor, monkeypatch, store, used):
    monkeypatch.setattr(usage_audits, 'EXAMINED', 2)
    deadlocks = []
    monkeypatch.setattr(store.error_log, 'log', deadlocks.append)
    wanted = [used(1) for _ in range(40)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: auditor.catch_up(), range(4)))
    assert [data(each)['uuid'] for each in existed(store)] == wanted
    # The first step, which adds the row of the audit, may have some.
    assert len(deadlocks) < 4


@DAILY
def test_an_audit_waits_for_the_notifications_to_be_sent(auditor, monkeypatch, store, used):
    """They would be dropped otherwise if there are too many."""
    auditor.most_waiting = 10
    monkeypatch.setattr(usage_audits, 'EXAMINED', 4)
    taken(store)
    wanted, found = [used(1) for _ in range(20)], []
    for _ in range(6):
        auditor.catch_up()
        some = existed(store)
        assert len(some) <= 10
        found += some
    assert [data(each)['uuid'] for each in found] == wanted
    assert store.query(usage_audits.find, BEGIN, END).ended_at == NOW


def test_audits_are_off_by_default(conf, service):
    def names():
        return [publisher.name for publisher in publishers_of(service.platform)]

    assert names() == ['notifications', 'usage audit']
    conf.clear_override('instance_usage_audit')
    assert names() == ['notifications']


@DAILY
def test_old_audits_are_purged(auditor, store):
    """The last one stays, so that its period is not audited again."""
    store.change(usage_audits.locked, BEGIN - 24 * HOUR, BEGIN, BEGIN)
    auditor.catch_up()
    assert purge(store, BEGIN, 10) == {}
    assert purge(store, NOW, 10) == {'usage_audits': 1}
    assert purge(store, NOW, 10) == {}
    assert store.query(usage_audits.find, BEGIN, END).ended_at == NOW


def test_only_for_administrators(api, legacy):
    assert api.get(PATH, as_='bob:project').status == 403
    assert api.get(f'{PATH}/2012-07-05%2010:00:00', as_='bob:project').status == 403
    assert legacy.get(PATH).status == 200
