"""Pages of servers: in whatever order and searched by whatever, all servers once, along an index."""

import random
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from computeapi.db import bulk, server_search
from computeapi.db.listing import Page
from computeapi.db.server_search import Found, Search
from computeapi.db.servers import set_tags
from computeapi.db.tables.server_lists import CHOSEN, SELDOM_SORTED, SORTED
from tests.conftest import ACTIVE, FLAVOR

BEGIN = datetime(2030, 1, 1)
MANY, PAGE = 90, 7
NEWEST_FIRST = (('created_at', True), ('id', True))
ENDLESS = 10**6


def drawn(draw, number):
    """A server, many of whose values others have, too, or nobody."""
    moments = [BEGIN + timedelta(seconds=draw.randrange(20)) for _ in range(4)]
    some = {
        name: draw.choice([None, moment])
        for name, moment in zip(('updated_at', 'launched_at', 'terminated_at', 'deleted_at'), moments, strict=True)
    }
    if draw.random() < 0.7:
        some['deleted_at'] = None
    texts = ('host', 'node', 'availability_zone', 'image_id', 'key_name', 'locked_by', 'access_ip_v4', 'task_state')
    return ACTIVE | {
        **{name: draw.choice([None, 'a', 'b', 'c']) for name in (*texts, 'access_ip_v6', 'root_device_name')},
        **some,
        'uuid': f'{draw.randrange(10**6)}-{number}',
        'id': number + 1,
        'created_at': BEGIN + timedelta(seconds=draw.randrange(30)),
        'name': draw.choice(['web', 'Web', 'db', 'cache']),
        'flavor': FLAVOR | {'flavorid': draw.choice(['small', 'large'])},
        'memory_mb': draw.choice([64, 128]),
        'vm_state': draw.choice(['active', 'active', 'stopped', 'soft-delete']),
        'project_id': draw.choice(['project', 'project', 'other']),
        'user_id': draw.choice(['ann', 'bob']),
        'power_state': draw.choice([0, 1, 4]),
    }


@pytest.fixture
def rows(store):
    draw = random.Random(11)
    made = [drawn(draw, number) for number in range(MANY)]
    with store.write() as connection:
        bulk.insert(connection, {'servers': made})
        for row in made:
            set_tags(connection, row['uuid'], draw.sample(['red', 'green', 'blue'], draw.randrange(3)))
    return made


def there(row, project_id='project'):
    return project_id in (None, row['project_id']) and row['deleted_at'] is None and row['vm_state'] != 'soft-delete'


def in_order(rows, sort):
    """By Python, in which None is less than anything."""
    found = list(rows)
    keys = [*sort, ('id', sort[-1][1])] if 'id' not in dict(sort) else sort
    for key, descending in reversed(keys):
        found.sort(key=lambda row, key=key: (row[key] is not None, row[key]), reverse=descending)
    return [row['uuid'] for row in found]


def walk(store, search, sort=NEWEST_FIRST, most=ENDLESS):
    """The ids of the servers on all pages, in their order."""
    found, marker = [], None
    with store.read() as connection:
        while True:
            servers, last = server_search.page(connection, Page(PAGE, marker, sort), search, most)
            found += [server.uuid for server in servers]
            if len(servers) < PAGE and last is None:
                return found
            marker = last or found[-1]


@pytest.mark.parametrize('project_id', ['project', None])
@pytest.mark.parametrize('descending', [False, True])
def test_every_order(store, rows, project_id, descending):
    living = [row for row in rows if there(row, project_id)]
    assert len(living) > 3 * PAGE
    for key in (*SORTED, *SELDOM_SORTED, 'project_id'):
        if key not in ('name', 'hostname'):
            sort = [(key, descending)]
            assert walk(store, Search(project_id), sort) == in_order(living, sort), key
    # Which of two names in different case is less differs between databases.
    assert sorted(walk(store, Search(project_id), [('name', descending)])) == sorted(row['uuid'] for row in living)


@pytest.mark.parametrize(
    'sort',
    [
        [('host', False), ('launched_at', True)],
        [('launched_at', True), ('host', True), ('memory_mb', False)],
        [('memory_mb', False), ('image_id', True), ('id', False)],
    ],
)
def test_several_keys(store, rows, sort):
    assert walk(store, Search('project'), sort) == in_order(filter(there, rows), sort)


FITS = {
    'image_id': ('a', lambda row: row['image_id'] == 'a'),
    'flavorid': ('large', lambda row: row['flavor']['flavorid'] == 'large'),
    'host': ('b', lambda row: row['host'] == 'b'),
    'user_id': ('ann', lambda row: row['user_id'] == 'ann'),
    'vm_state': ('stopped', lambda row: row['vm_state'] == 'stopped'),
    'task_state': ('c', lambda row: row['task_state'] == 'c'),
    'name': ('^we', lambda row: row['name'] in ('web', 'Web')),
    'availability_zone': ('[ab]', lambda row: row['availability_zone'] in ('a', 'b')),
    'locked': (True, lambda row: row['locked_by'] is not None),
    'changes_since': (BEGIN + timedelta(seconds=9), lambda row: changed(row) >= BEGIN + timedelta(seconds=9)),
    'changes_before': (BEGIN + timedelta(seconds=9), lambda row: changed(row) <= BEGIN + timedelta(seconds=9)),
}


def changed(row):
    return row['updated_at'] or row['created_at']


@pytest.mark.parametrize('few', [0, 3, 1000])
@pytest.mark.parametrize('sort', [NEWEST_FIRST, (('host', False),)])
def test_filters(store, rows, few, sort, monkeypatch):
    """Alone and by twos, whether few servers fit, or many, which are then sought in as few looks as can be."""
    monkeypatch.setattr(server_search.rare, 'FEW', few)
    monkeypatch.setattr(server_search.listing, 'FIRST_LOOK', 5)
    draw = random.Random(12)
    for name in FITS:
        names = {name, draw.choice(list(FITS))}
        filters = {name: FITS[name][0] for name in names}
        expected = in_order((row for row in rows if there(row) and all(FITS[name][1](row) for name in names)), sort)
        for most in (ENDLESS, 12):
            assert walk(store, Search('project', filters=filters), sort, most) == expected, names


def test_a_page_ends_where_enough_was_looked_at(store, rows):
    living = in_order(filter(there, rows), NEWEST_FIRST)
    with store.read() as connection:
        search = Search('project', filters={'name': 'nowhere'})
        assert server_search.page(connection, Page(PAGE, None, NEWEST_FIRST), search, 10) == Found([], living[9])
        assert server_search.page(connection, Page(PAGE, living[-10], NEWEST_FIRST), search, 10) == Found([], None)


def test_tags(store, rows):
    with store.read() as connection:
        tags = {
            row['uuid']: server_search.page(
                connection, Page(), Search(filters={'uuid': row['uuid']}, deleted=None, soft_deleted=True), 10, ['tags']
            )
            .servers[0]
            .tags
            for row in rows
        }
    wanted = {'red', 'blue'}
    for name, fits in {
        'tags': lambda held: wanted <= held,
        'tags_any': lambda held: wanted & held,
        'not_tags': lambda held: not wanted <= held,
        'not_tags_any': lambda held: not wanted & held,
    }.items():
        expected = [row for row in rows if there(row) and fits(set(tags[row['uuid']]))]
        assert walk(store, Search('project', filters={name: sorted(wanted)})) == in_order(expected, NEWEST_FIRST), name


# ------------------------------------------------------------------ plans

SORTS = ['SORT', 'TEMP B-TREE', 'USING FILESORT']
READS_ALL = ['SEQ SCAN', 'SCAN SERVERS\n', '| ALL |']


@contextmanager
def plans(connection):
    """The plans of the statements that follow, in upper case; PostgreSQL is to sort and to read a table only where it
    must."""
    told = []

    def explain(connection, cursor, statement, parameters, *rest):
        if statement.startswith('SELECT'):
            words = 'EXPLAIN QUERY PLAN' if connection.dialect.name == 'sqlite' else 'EXPLAIN'
            cursor = connection.connection.cursor()
            cursor.execute(f'{words} {statement}', parameters)
            told.append('\n'.join(' | '.join(map(str, row)) for row in cursor.fetchall()).upper() + '\n')

    if connection.dialect.name == 'postgresql':
        for what in ('seqscan', 'sort', 'bitmapscan'):
            connection.exec_driver_sql(f'SET LOCAL enable_{what} = off')
    sa.event.listen(connection, 'after_cursor_execute', explain)
    yield told
    sa.event.remove(connection, 'after_cursor_execute', explain)


def is_walked(connection, search, sort=NEWEST_FIRST, marker=None):
    with plans(connection) as told:
        server_search.page(connection, Page(PAGE, marker, sort), search, ENDLESS)
    assert told
    for plan in told:
        assert not [word for word in (*SORTS, *READS_ALL) if word in plan], (sort, search.filters, plan)


@pytest.mark.parametrize('descending', [False, True])
def test_orders_have_indexes(store, rows, descending):
    marker = next(row['uuid'] for row in rows if there(row))
    with store.read() as connection:
        for project_id, keys in (('project', (*SORTED, *SELDOM_SORTED, 'project_id')), (None, (*SORTED, 'project_id'))):
            for key in keys:
                for place in (None, marker):
                    is_walked(connection, Search(project_id), [(key, descending)], place)


def test_filters_have_indexes(store, rows):
    marker = next(row['uuid'] for row in rows if there(row))
    with store.read() as connection:
        for project_id in ('project', None):
            for name in CHOSEN:
                for place in (None, marker):
                    is_walked(connection, Search(project_id, filters={name: FITS[name][0]}), marker=place)
            for search in (Search(project_id, deleted=None), Search(project_id, filters={'statuses': ['SHUTOFF']})):
                is_walked(connection, search)
