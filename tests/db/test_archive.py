"""Deleted servers are archived, without changing anything that clients see of others."""

import random
import threading
from datetime import timedelta

import orjson
import pytest
import sqlalchemy as sa

from computeapi.clock import utcnow
from computeapi.db import archive
from computeapi.db.tables import metadata
from computeapi.db.tables.servers import archived_servers
from computeapi.db.tables.servers import servers as table_of_servers

DAY = timedelta(days=1)
NOW = utcnow().replace(microsecond=0)
BEFORE = NOW - 30 * DAY
VERSION = '2.100'


class Past:
    """A random history of servers, written into the store."""

    def __init__(self, store, servers, seed):
        self.store, self.servers, self.chance, self.count = store, servers, random.Random(seed), 0
        self.ids = [self.add() for _ in range(40)]
        # The newest server is always kept.
        self.ids.append(servers.add())

    def add(self):
        chance = self.chance
        born = NOW - chance.randint(40, 400) * DAY
        gone = chance.choice([None, None, born + chance.randint(1, 400) * DAY])
        gone = None if gone is None or gone > NOW else gone
        facts = {'created_at': born, 'launched_at': born, 'deleted_at': gone, 'terminated_at': gone}
        facts |= {'metadata': {'n': str(chance.random())}, 'vm_state': 'deleted' if gone else 'active'}
        server_id = self.servers.add(**facts)
        with self.store.write() as connection:
            for _ in range(chance.randint(0, 3)):
                self.insert(connection, server_id, born)
        return server_id

    def insert(self, connection, server_id, born):
        """Insert one of each kind of row that can belong to a server."""
        self.count += 1
        one = f'{self.count}'
        times = {
            'created_at': born,
            'start_time': born,
            'updated_at': born,
            'expires_at': NOW + DAY,
            'finish_time': born,
        }
        other = f'{server_id[:-9]}{self.count:09}'
        facts = {'server_id': server_id, 'uuid': other, 'share_id': other, 'tag': one}
        facts |= {'request_id': f'req-{one}', 'action': 'stop', 'hash': one, 'status': 'finished', 'event': 'stop_it'}
        facts |= {
            'migration_type': 'migration',
            'destination_type': 'volume',
            'volume_id': other,
            'attachment_id': other,
        }
        for name in ('server_tags', 'block_devices', 'server_shares', 'console_tokens', 'migrations', 'server_actions'):
            made = _insert(connection, metadata.tables[name], facts | times)
        _insert(connection, metadata.tables['server_action_events'], facts | times | {'action_id': made})

    def gone(self):
        """The servers that were deleted before the date."""
        return {each for each in self.ids if (deleted := self.servers.get(each).deleted_at) and deleted < BEFORE}


def _insert(connection, table, facts):
    """Insert a row with these facts and arbitrary values for other required columns; returns its primary key."""
    for column in table.columns:
        if column.name not in facts and not column.nullable and not (column.primary_key and column.name == 'id'):
            facts |= {column.name: False if isinstance(column.type, sa.Boolean) else 0}
            if isinstance(column.type, sa.String):
                facts |= {column.name: 'x'}
    wanted = {name: value for name, value in facts.items() if name in table.c and name != 'id'}
    return connection.execute(table.insert().values(wanted)).inserted_primary_key[0]


def rows_but(store, gone):
    """All rows of all tables, except those of the archived servers."""
    found = {}
    with store.read() as connection:
        actions = metadata.tables['server_actions'].c
        lost = set(connection.scalars(sa.select(actions.id).where(actions.server_id.in_(gone))))
        for table in metadata.sorted_tables:
            rows = [row._asdict() for row in connection.execute(sa.select(table))]
            of = {'servers': 'uuid', 'archived_servers': 'uuid'}.get(table.name, 'server_id')
            found[table.name] = [row for row in rows if row.get(of) not in gone and row.get('action_id') not in lost]
    return found


def shown(api, past, gone):
    """What clients see of the other servers, and of the cloud."""
    paths = ['/servers/detail?all_tenants=1', '/os-migrations', '/limits', '/os-hypervisors/detail']
    paths += [f'/servers/detail?all_tenants=1&changes-since={BEFORE.isoformat()}']
    for each in past.ids:
        if past.servers.get(each) and each not in gone:
            base = f'/servers/{each}'
            actions = api.get(f'{base}/os-instance-actions', VERSION).json['instanceActions']
            paths += [f'{base}/os-instance-actions/{action["request_id"]}' for action in actions]
            parts = ('', '/metadata', '/tags', '/os-volume_attachments', '/migrations', '/os-instance-actions')
            paths += [f'{base}{part}' for part in parts]
    answers = {path: api.get(path, VERSION) for path in paths}
    assert {answer.status for answer in answers.values()} == {200, 404}
    return {path: answer.text for path, answer in answers.items()} | {'usage': usage(api, gone)}


def usage(api, gone):
    begin, end = (NOW - 500 * DAY).isoformat(), NOW.isoformat()
    path = f'/os-simple-tenant-usage?detailed=1&start={begin}&end={end}'
    projects = api.get(path, '2.1').json['tenant_usages']
    spans = [span for project in projects for span in project['server_usages'] if span['instance_id'] not in gone]
    return [{name: value for name, value in span.items() if name != 'uptime'} for span in spans]


@pytest.mark.parametrize('seed', range(3))
def test_nothing_changes_for_others(api, store, servers, seed):
    past = Past(store, servers, seed)
    gone = past.gone()
    assert gone
    before, seen = rows_but(store, gone), shown(api, past, gone)
    counts = archive.archive(store, BEFORE, batch=past.chance.randint(1, 20))
    assert (
        counts['servers'] == len(gone) and counts['server_actions'] == counts['migrations'] == counts['block_devices']
    )
    assert rows_but(store, gone) == before and shown(api, past, gone) == seen
    with store.read() as connection:
        kept = connection.execute(sa.select(archived_servers)).all()
        for table in metadata.sorted_tables:
            if 'server_id' in table.c:
                assert not connection.execute(sa.select(table).where(table.c.server_id.in_(gone))).all(), table
    assert {row.uuid for row in kept} == gone
    contents = [orjson.loads(row.contents) for row in kept]
    for name in set(counts) - {'servers'}:
        assert sum(len(each.get(name, ())) for each in contents) == counts[name]
    assert archive.archive(store, BEFORE, batch=10) == {}
    assert archive.purge(store, BEFORE, batch=3) == {'archived_servers': len(gone)}
    assert rows_but(store, gone) == before and shown(api, past, gone) == seen
    with store.read() as connection:
        assert not connection.execute(sa.select(archived_servers)).all()


def test_who_is_not_done_with_stays(store, servers):
    """A server with pending tasks, with claims on a host, or whose deletion a host has yet to learn."""
    long_ago = BEFORE - DAY
    left = [servers.add(deleted_at=long_ago) for _ in range(4)]
    newest = servers.add(deleted_at=long_ago)
    with store.write() as connection:
        facts = {'server_id': left[0], 'created_at': long_ago, 'kind': 'delete', 'context': {}, 'arguments': {}}
        _insert(connection, metadata.tables['tasks'], facts)
        _insert(connection, metadata.tables['allocations'], {'server_id': left[1]})
        moved = {'server_id': left[2], 'migration_type': 'evacuation', 'status': 'done', 'created_at': long_ago}
        _insert(connection, metadata.tables['migrations'], moved)
    assert archive.archive(store, BEFORE, batch=100)['servers'] == 1
    assert [servers.get(each) is None for each in [*left, newest]] == [False, False, False, True, False]


def test_what_expired_is_removed(store, servers):
    server_id = servers.add()
    with store.write() as connection:
        for number in range(10):
            expires = BEFORE + (number - 5) * DAY
            facts = {'server_id': server_id, 'hash': f'{number}', 'expires_at': expires}
            _insert(connection, metadata.tables['console_tokens'], facts)
    assert archive.purge(store, BEFORE, batch=2) == {'console_tokens': 5}
    # Unexpired rows are kept even if a future date is given.
    assert archive.purge(store, NOW + 1000 * DAY, batch=2) == {'console_tokens': 5}


def test_it_goes_on_beside_requests(api, store, servers):
    """Servers are created and deleted while others are archived."""
    old = [servers.add(deleted_at=BEFORE - DAY) for _ in range(60)]
    stop, made, wrong = threading.Event(), [], []

    def work():
        while not stop.is_set():
            made.append(servers.add(name='busy'))
            answer = api.put(f'/servers/{made[-1]}/metadata', {'metadata': {'a': 'b'}})
            if answer.status != 200:
                wrong.append(answer)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        while not made:
            stop.wait(0.01)
        counts = archive.archive(store, BEFORE, batch=5)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert counts == {'servers': 60} and wrong == []
    with store.read() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(servers_of(made))) == len(made)
        assert connection.scalar(sa.select(sa.func.count()).select_from(archived_servers)) == len(old)


def servers_of(ids):
    return sa.select(table_of_servers.c.id).where(table_of_servers.c.uuid.in_(ids)).subquery()
