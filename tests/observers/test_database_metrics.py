"""Metrics from the database: counted along an index, periodically, by one process for all."""

import threading
from contextlib import closing
from datetime import timedelta

import pytest
import sqlalchemy as sa

from computeapi.clock import utcnow
from computeapi.db import counts, notifications, quotas
from computeapi.db.engine import Store
from computeapi.db.tables.compute import processes, quota_usages, services
from computeapi.observers.database_metrics import DatabaseMetrics


@pytest.fixture
def metrics(conf, store):
    return DatabaseMetrics(conf, store)


def add_host(store, name, **kwargs):
    values = {'uuid': name, 'host': name, 'binary': 'nova-compute', 'disabled': False, 'forced_down': False}
    values |= {'seen_at': utcnow(), 'created_at': utcnow()} | kwargs
    with store.write() as connection:
        connection.execute(sa.insert(services).values(values))


def test_servers_are_counted_by_state(metrics, servers):
    for state, number in {'active': 3, 'error': 2}.items():
        for _ in range(number):
            servers.add(vm_state=state)
    servers.add(vm_state='deleted', deleted_at=utcnow())
    assert metrics.found()['servers'] == {'active': 3, 'error': 2}


def test_hosts_are_counted_by_state(metrics, store):
    add_host(store, 'up')
    add_host(store, 'off', disabled=True, seen_at=None)
    add_host(store, 'forced', forced_down=True)
    add_host(store, 'gone', seen_at=None)
    add_host(store, 'silent', seen_at=utcnow() - timedelta(minutes=5))
    add_host(store, 'scheduler', binary='nova-scheduler')
    assert metrics.found()['hosts'] == {'up': 1, 'disabled': 1, 'down': 3}


def test_quotas_are_counted_over_projects(conf, metrics, store):
    """The project with 5 of 10 cores has used half; with its own limit of 5, it has used all."""
    conf.set_override('cores', 10, 'quota')
    conf.set_override('ram', -1, 'quota')
    use(store, 'half', cores=5, ram=2**20)
    use(store, 'nearly', cores=9)
    use(store, 'own', cores=5)
    use(store, 'own', user='alice', cores=0)
    use(store, 'empty', cores=0)
    limit(store, 'own', cores=5)
    limit(store, 'half', instances=0)
    found = metrics.found()
    assert found['quota_used'] == {'instances': 0, 'cores': 19, 'ram': 2**20, 'server_groups': 0}
    assert found['quota_projects'] == {'instances': 0, 'cores': 3, 'ram': 1, 'server_groups': 0}
    assert found['quota_full'] == {'instances': 0, 'cores': 2, 'ram': 0, 'server_groups': 0}


def use(store, project, user='bob', **amounts):
    rows = [{'holder_id': project, 'user_id': user, 'resource': name, 'amount': n} for name, n in amounts.items()]
    with store.write() as connection:
        connection.execute(sa.insert(quota_usages), rows)


def limit(store, project, **limits):
    store.change(quotas.set_limits, project, None, limits)


def test_processes_that_live_are_told(metrics, store):
    for name, minutes in {'a': 0, 'b': 0, 'c': 5}.items():
        facts = {'id': name, 'binary': 'computeapi-worker', 'host': 'h', 'pid': 1, 'workers': 4}
        with store.write() as connection:
            seen = utcnow() - timedelta(minutes=minutes)
            connection.execute(sa.insert(processes).values(facts | {'started_at': seen, 'seen_at': seen}))
    assert metrics.found()['processes'] == {'computeapi-worker': 2}


def test_one_process_counts_for_all_until_it_is_time_again(conf, store, servers, asked):
    servers.add()
    assert DatabaseMetrics(conf, store).found()['servers'] == {'active': 1}
    servers.add()
    del asked[:]
    found = DatabaseMetrics(conf, store).found()
    assert found['servers'] == {'active': 1} and 0 <= found['count_age_seconds'] < 60
    assert not [each for each in asked if 'GROUP BY servers' in each]
    with store.write() as connection:
        connection.execute(sa.text('UPDATE counts SET due_at = counted_at'))
    assert DatabaseMetrics(conf, store).found()['servers'] == {'active': 2}


def test_of_several_that_come_at_a_time_one_counts(store):
    now, turns = utcnow(), []
    store.change(counts.begin, now)

    def take():
        turns.append(store.change(counts.take_turn, now, now + timedelta(minutes=1)))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(turns) == [False] * 7 + [True]


def test_what_was_found_is_good_for_a_while(metrics, asked):
    first = metrics.exposition()
    del asked[:]
    assert metrics.exposition() == first
    assert asked == []


def test_servers_are_counted_along_an_index(store, servers):
    """Only the index is read, and no rows."""
    for _ in range(50):
        servers.add()
    found = plan(store, counts.SERVERS_BY_STATE)
    assert {
        'sqlite': 'USING COVERING INDEX ix_servers_by_vm_state',
        'postgresql': 'Index Only Scan using ix_servers_by_vm_state',
        'mysql': 'ix_servers_by_vm_state',
    }[store.dialect] in found, found
    assert store.dialect != 'mysql' or 'Using where; Using index' in found, found


def plan(store, statement):
    """The query plan; on PostgreSQL, as there are so few rows here, alternatives to an index scan are discouraged."""
    compiled = statement.compile(store.engine, compile_kwargs={'literal_binds': True})
    how = 'EXPLAIN QUERY PLAN' if store.dialect == 'sqlite' else 'EXPLAIN'
    if store.dialect == 'postgresql':
        # An index-only scan reads no rows of a page that was vacuumed since its last change.
        with store.engine.connect() as connection:
            connection.execution_options(isolation_level='AUTOCOMMIT').execute(sa.text('VACUUM ANALYZE servers'))
    with store.write() as connection:
        if store.dialect == 'postgresql':
            for way in ('enable_seqscan', 'enable_bitmapscan', 'enable_sort'):
                connection.execute(sa.text(f'SET LOCAL {way} = off'))
        return str(connection.execute(sa.text(f'{how} {compiled}')).all())


def test_without_tables_it_is_not_up_either(conf, database_url):
    with closing(Store(database_url)) as store:
        assert DatabaseMetrics(conf, store).found() == {'database_up': 0}


def test_without_a_database_that_is_what_is_told(conf):
    store = Store('postgresql+psycopg://me@127.0.0.1:1/none')
    assert DatabaseMetrics(conf, store).found() == {'database_up': 0}
    assert b'computeapi_database_up 0.0' in DatabaseMetrics(conf, store).exposition()


def test_waiting_notifications_are_counted_if_they_are_on(conf, metrics, store):
    assert 'notifications_waiting' not in metrics.found()
    conf.set_override('notification_format', 'versioned', 'notifications')
    facts = {'format': 'versioned', 'priority': 'info', 'publisher_id': 'p', 'event_type': 'e', 'context': {}}
    store.change(notifications.add, [facts | {'payload': {}, 'created_at': utcnow()}])
    assert metrics.found()['notifications_waiting'] == 1
