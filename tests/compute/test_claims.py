"""Claims on hosts by many concurrent workers: no resource is given away twice."""

import threading
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace

import pytest
import sqlalchemy as sa

from computeapi.clock import utcnow
from computeapi.compute.scheduler import NoValidHost, Spec
from computeapi.context import Context
from computeapi.db import servers as rows
from computeapi.db import services
from computeapi.db.allocations import Amounts, count, leave, miscounted, release, resize
from computeapi.db.hypervisors import of_host
from computeapi.db.tables.compute import allocations, hypervisors, placement_changes, server_groups
from computeapi.errors import Conflict
from tests.databases import listened

MANY = 20


@pytest.fixture
def platform(service):
    """Three hosts with 8 CPUs each, without overcommit."""
    for option, value in (('hosts', 3), ('vcpus', 8)):
        service.conf.set_override(option, value, 'simulated')
    service.conf.set_override('cpu_allocation_ratio', 1, 'filter_scheduler')
    service.hosts.register()
    return service.platform


@pytest.fixture
def group(store):
    """group('affinity'): creates a server group; returns its ID."""

    def make(policy, **rules):
        row = {'uuid': str(uuid.uuid4()), 'project_id': 'project', 'user_id': 'bob', 'name': 'group'}
        with store.write() as connection:
            connection.execute(server_groups.insert().values(**row, policy=policy, rules=rules, created_at=utcnow()))
        return row['uuid']

    return make


@pytest.fixture
def at_once(platform, servers):
    """at_once(n, vcpus=1): n threads place one new server each; returns the hosts, None for refused servers."""

    def place_all(number=MANY, **kwargs):
        ids = [servers.add(host=None, server_group_id=kwargs.get('group_id')) for _ in range(number)]
        start = threading.Barrier(number)

        def place(server_id):
            start.wait()
            try:
                return platform.scheduler.allocate(spec(server_id, **kwargs), nothing).name
            except NoValidHost:
                return None

        with ThreadPoolExecutor(number) as pool:
            return Counter(pool.map(place, ids))

    return place_all


@pytest.fixture
def claimed(store):
    """claimed(): the claimed CPUs by host."""

    def count():
        with store.read() as connection:
            sums = sa.select(allocations.c.host, sa.func.sum(allocations.c.vcpus)).group_by(allocations.c.host)
            return {host: int(vcpus) for host, vcpus in connection.execute(sums)}

    return count


def nothing(connection, host):
    """What else a claim's transaction writes."""


def spec(server_id, **kwargs):
    return Spec(**{'server_id': server_id, 'project_id': 'project', 'vcpus': 1, 'memory_mb': 64, 'disk_gb': 1} | kwargs)


def test_hosts_are_never_overcommitted(at_once, claimed):
    placed = at_once(vcpus=3)
    assert placed == {'compute1': 2, 'compute2': 2, 'compute3': 2, None: MANY - 6}
    assert claimed() == {'compute1': 6, 'compute2': 6, 'compute3': 6}


def test_all_get_a_place_while_there_is_one(at_once, claimed):
    assert at_once()[None] == 0
    assert sum(claimed().values()) == MANY


@pytest.mark.parametrize(('rules', 'most'), [({}, 1), ({'max_server_per_host': 2}, 2)])
def test_groups_stay_apart(at_once, group, rules, most):
    placed = at_once(group_id=group('anti-affinity', **rules))
    assert placed == {'compute1': most, 'compute2': most, 'compute3': most, None: MANY - 3 * most}


def test_groups_stay_together(at_once, group):
    placed = at_once(group_id=group('affinity'))
    assert placed.pop(None) == MANY - 8
    assert list(placed.values()) == [8]


def test_a_claim_is_of_one_size(platform, servers, claimed):
    """The claim of a server on a host grows with a further claim, and is counted once."""
    server_id = servers.add(host=None)
    for vcpus, held in ((2, 2), (4, 4), (3, 4)):
        platform.scheduler.allocate(spec(server_id, host='compute1', vcpus=vcpus), nothing)
        assert claimed() == {'compute1': held}
    with pytest.raises(NoValidHost):
        platform.scheduler.allocate(spec(server_id, host='compute1', vcpus=9), nothing)
    assert claimed() == {'compute1': 4}


def test_places_are_given_back(platform, store, servers, claimed):
    server_id = servers.add(host=None)
    for host in ('compute1', 'compute2', 'compute3'):
        platform.scheduler.allocate(spec(server_id, host=host), nothing)
    with store.write() as connection:
        release(connection, server_id, keep='compute2')
    assert claimed() == {'compute2': 1}
    with store.write() as connection:
        release(connection, server_id)
    assert claimed() == {}


def test_what_is_claimed_and_given_back_is_counted(platform, servers, store, claimed):
    ids = [servers.add(host=None) for _ in range(3)]
    for server_id, vcpus in zip(ids, (1, 2, 3), strict=True):
        platform.scheduler.allocate(spec(server_id, host='compute1', vcpus=vcpus), nothing)
        platform.scheduler.allocate(spec(server_id, host='compute2', vcpus=vcpus), nothing)
    store.change(resize, ids[2], 'compute1', {'vcpus': 1, 'memory_mb': 32, 'disk_gb': 0})
    store.change(leave, ids[1], ['compute2', 'compute3'])
    store.change(release, ids[0], keep='compute1')
    assert claimed() == {'compute1': 4, 'compute2': 3}
    assert store.query(miscounted, 10) == []
    assert store.query(used, 'compute1') == Amounts(4, 64 + 64 + 32, 2)
    assert store.query(used, 'compute2') == Amounts(3, 64, 1)


def test_what_many_claim_and_give_back_at_once_is_counted(platform, servers, store):
    ids = [servers.add(host=None) for _ in range(MANY)]

    def come_and_go(server_id):
        for _ in range(3):
            platform.scheduler.allocate(spec(server_id), nothing)
            store.change(release, server_id)
        platform.scheduler.allocate(spec(server_id), nothing)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(come_and_go, ids))
    assert store.query(miscounted, 10) == []
    assert sum(store.query(used, host).vcpus for host in ('compute1', 'compute2', 'compute3')) == MANY


@pytest.mark.several_writers
def test_hosts_are_locked_by_their_numbers(platform, servers, store):
    """With another index, InnoDB would lock its entry before the row, which can deadlock with requests that lock the
    row first."""
    with locking_plans(store) as plans:
        server_id = servers.add(host=None)
        platform.scheduler.allocate(spec(server_id), nothing)
        store.change(count)
        store.change(count, ['compute1', 'compute2'])
        store.change(release, server_id)
    assert len(plans) == 3
    if store.dialect != 'postgresql':
        assert all(plan['key'] == 'PRIMARY' for plan in plans), plans


@contextmanager
def locking_plans(store):
    """The query plans of statements that lock hosts meanwhile."""
    found = []

    def explain(connection, cursor, statement, parameters, *rest):
        if 'FROM hypervisors' in statement and statement.endswith('FOR UPDATE'):
            cursor = connection.connection.cursor()
            cursor.execute(f'EXPLAIN {statement}', parameters)
            names = [column[0] for column in cursor.description]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            found.append(next((row for row in rows if row.get('table') == 'hypervisors'), rows[0]))

    with listened(store.engine, 'after_cursor_execute', explain):
        yield found


def test_what_is_held_of_a_host_outlives_its_row(service, platform, servers, store):
    platform.scheduler.allocate(spec(servers.add(host=None), host='compute1'), nothing)
    store.change(lambda connection: connection.execute(sa.delete(hypervisors).where(hypervisors.c.host == 'compute1')))
    service.hosts.register()
    assert store.query(used, 'compute1') == Amounts(1, 64, 1)


def used(connection, host):
    [node] = of_host(connection, host)
    return Amounts(node.used_vcpus, node.used_memory_mb, node.used_disk_gb)


@pytest.mark.several_writers
def test_a_host_is_not_forgotten_while_a_server_comes(service, platform, servers, store):
    coming = Spec.of(servers.get(servers.add(host=None)), on_volume=False)
    [compute] = store.query(services.select, 'compute1', services.COMPUTE)
    with ThreadPoolExecutor(1) as pool:

        def keep(connection, host):
            rows.update(connection, coming.server_id, {'host': host.name})
            forgetting.append(pool.submit(service.cloud.services.delete, Context(), compute.uuid))
            wait(forgetting, 0.5)

        forgetting = []
        platform.scheduler.allocate(replace(coming, host='compute1'), keep)
        with pytest.raises(Conflict):
            forgetting[0].result()
    assert store.query(services.of_compute_host, 'compute1') is not None


def test_a_claim_is_made_together_with_its_reason(platform, servers, claimed):
    def fail(connection, host):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        platform.scheduler.allocate(spec(servers.add(host=None)), fail)
    assert claimed() == {}


def test_without_a_placement_nothing_is_written_for_one(platform, servers, store):
    server_id = servers.add(host=None)
    platform.scheduler.allocate(spec(server_id), nothing)
    store.change(release, server_id)
    assert store.noted is None and platform.mirror is None
    assert store.query(lambda connection: connection.execute(sa.select(placement_changes)).all()) == []
