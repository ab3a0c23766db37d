"""Pages of servers: for any order and any search, they contain all servers once, and are read along an index."""

import itertools
import random
import re
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from computeapi.db import (
    addresses,
    audits,
    bulk,
    index_scans,
    server_lookups,
    server_scans,
    server_search,
    server_tagged,
    server_tags,
    servers,
)
from computeapi.db.listing import Page
from computeapi.db.server_scans import BY, VALUES, Reach
from computeapi.db.server_search import Found, Search
from computeapi.db.tables import servers as tables
from computeapi.db.tables.server_lists import KEYS, SELDOM, derived
from tests.conftest import ACTIVE, FLAVOR
from tests.databases import listened

BEGIN = datetime(2030, 1, 1)
MANY, PAGE = 90, 7
NEWEST_FIRST = (('created_at', True), ('id', True))
SORTED = ['name' if key == 'folded_name' else key for key in (*KEYS, *SELDOM) if key != 'flavorid']
ENDLESS = 10**6


def drawn(draw, number):
    """A random server; many of its values occur in other servers, or are missing."""
    moments = [BEGIN + timedelta(seconds=draw.randrange(20)) for _ in range(4)]
    some = {
        name: draw.choice([None, moment])
        for name, moment in zip(('updated_at', 'launched_at', 'terminated_at', 'deleted_at'), moments, strict=True)
    }
    if draw.random() < 0.7:
        some['deleted_at'] = None
    texts = ('host', 'node', 'availability_zone', 'image_id', 'key_name', 'locked_by', 'access_ip_v4', 'task_state')
    more = ('access_ip_v6', 'root_device_name', 'kernel_id', 'ramdisk_id')
    state = draw.choice(['active', 'active', 'stopped', 'soft-delete'])
    server_id = f'{draw.randrange(10**6)}-{number}'
    return derived(
        ACTIVE
        | {
            **{name: draw.choice([None, 'a', 'b', 'c']) for name in (*texts, *more)},
            **some,
            'locked_by': draw.choice([None, None, None, 'admin', 'owner', 'somebody']),
            'uuid': server_id,
            'id': number + 1,
            'created_at': BEGIN + timedelta(seconds=draw.randrange(30)),
            'name': draw.choice(['web', 'Web', 'db', 'cache']),
            'hostname': draw.choice(['web', 'db']),
            'flavor': FLAVOR | {'flavorid': draw.choice(['small', 'large'])},
            'memory_mb': draw.choice([64, 128]),
            'launch_index': draw.randrange(3),
            'vm_state': 'deleted' if some['deleted_at'] else state,
            'project_id': draw.choice(['project', 'project', 'other']),
            'user_id': draw.choice(['ann', 'bob']),
            'power_state': draw.choice([0, 1, 4]),
            'network_info': [
                {'addresses': [{'address': f'10.0.{each}.{number}', 'version': 4}]}
                for each in draw.sample(range(3), draw.randrange(3))
            ],
        }
    )


@pytest.fixture
def rows(store):
    draw = random.Random(11)
    made = [drawn(draw, number) for number in range(MANY)]
    with store.write() as connection:
        bulk.insert(connection, {'servers': made})
        for row in made:
            row['tags'] = draw.sample(['red', 'green', 'blue'], draw.randrange(3))
            server_tags.replace(connection, row['uuid'], row['tags'])
            addresses.update(connection, row['uuid'], row['network_info'])
    return made


def there(row, project_id='project'):
    return project_id in (None, row['project_id']) and row['vm_state'] not in ('deleted', 'soft-delete')


def in_order(rows, sort):
    """The expected order, computed in Python; None is less than anything."""
    keys = [('folded_name' if key == 'name' else key, descending) for key, descending in sort]
    found = list(rows)
    for key, descending in reversed([*keys, *((key, sort[0][1]) for key in ('created_at', 'id'))]):
        found.sort(key=lambda row, key=key: (row[key] is not None, row[key]), reverse=descending)
    return [row['uuid'] for row in found]


def all_pages(store, search, sort=NEWEST_FIRST):
    """The IDs of the servers on all pages, in order."""
    found, marker = [], None
    with store.read() as connection:
        while True:
            some, last = server_search.page(connection, Page(PAGE, marker, sort), search)
            found += [server.uuid for server in some]
            if len(some) < PAGE and last is None:
                return found
            marker = last or found[-1]


@contextmanager
def asked(connection):
    """The statements executed from here on."""
    statements = []

    def keep(connection, cursor, statement, *more):
        statements.append(statement)

    with listened(connection, 'before_cursor_execute', keep):
        yield statements


@pytest.fixture(params=[(1, 10), (1000, 10), (1000, 0)], ids=['among many', 'among few', 'of a small project'])
def few(request, monkeypatch):
    """Whether the search is among many servers, which takes several look-ups, or among few."""
    few, costlier = request.param
    monkeypatch.setattr(server_lookups, 'FEW', few)
    monkeypatch.setattr(server_lookups, 'COSTLIER', costlier)
    monkeypatch.setattr(index_scans, 'FIRST_LOOK', 5)
    monkeypatch.setattr(server_search, 'BATCH', 5)


@pytest.mark.parametrize('project_id', ['project', None])
@pytest.mark.parametrize('descending', [False, True])
def test_every_order(store, rows, few, project_id, descending):
    living = [row for row in rows if there(row, project_id)]
    assert len(living) > 3 * PAGE
    for key in SORTED:
        sort = [(key, descending)]
        assert all_pages(store, Search(project_id), sort) == in_order(living, sort), key


@pytest.mark.parametrize(
    'sort',
    [
        [('host', False), ('launched_at', True)],
        [('launched_at', True), ('host', True), ('memory_mb', False)],
        [('memory_mb', False), ('image_id', True), ('id', False)],
    ],
)
def test_several_keys(store, rows, sort):
    expected = in_order(filter(there, rows), sort)
    assert sorted(all_pages(store, Search('project'), sort)) == sorted(expected)
    assert all_pages(store, Search('project'), sort) == expected


LATER = BEGIN + timedelta(seconds=9)
FITS = {
    'image_id': ('a', lambda row: row['image_id'] == 'a'),
    'flavorid': ('large', lambda row: row['flavor']['flavorid'] == 'large'),
    'host': ('b', lambda row: row['host'] == 'b'),
    'user_id': ('ann', lambda row: row['user_id'] == 'ann'),
    'vm_state': ('stopped', lambda row: row['vm_state'] == 'stopped'),
    'task_state': ('c', lambda row: row['task_state'] == 'c'),
    'statuses': (['SHUTOFF', 'ACTIVE'], lambda row: row['vm_state'] in ('stopped', 'active')),
    'power_state': ('4', lambda row: row['power_state'] == 4),
    'progress': ('some', lambda row: False),
    'name': ('^we', lambda row: row['name'] in ('web', 'Web')),
    'availability_zone': ('[ab]', lambda row: row['availability_zone'] in ('a', 'b')),
    'node': ('b', lambda row: row['node'] == 'b'),
    'key_name': ('^C$', lambda row: row['key_name'] == 'c'),
    'hostname': ('e', lambda row: row['hostname'] == 'web'),
    'ip': ('10.0.1.', lambda row: '10.0.1.' in str(row['network_info'])),
    'ip6': ('^fd00::', lambda row: False),
    'locked': (True, lambda row: row['locked_by'] is not None),
    'tags': (['red', 'blue'], lambda row: {'red', 'blue'} <= set(row['tags'])),
    'tags_any': (['red', 'blue'], lambda row: {'red', 'blue'} & set(row['tags'])),
    'not_tags': (['red', 'blue'], lambda row: not {'red', 'blue'} <= set(row['tags'])),
    'not_tags_any': (['red', 'blue'], lambda row: not {'red', 'blue'} & set(row['tags'])),
    'changes_since': (LATER, lambda row: changed(row) >= LATER),
    'changes_before': (LATER, lambda row: changed(row) <= LATER.replace(microsecond=999_999)),
}


def changed(row):
    return row['updated_at'] or row['created_at']


def fitting(rows, *names):
    return [row for row in rows if all(FITS[name][1](row) for name in names)]


@pytest.mark.parametrize('sort', [NEWEST_FIRST, (('host', False),)])
def test_servers_without_an_image(store, rows, few, sort):
    expected = in_order([row for row in rows if there(row) and row['image_id'] is None], sort)
    assert expected and all_pages(store, Search('project', filters={'image_id': None}), sort) == expected


@pytest.mark.parametrize('sort', [NEWEST_FIRST, (('created_at', False),), (('host', False),)])
def test_filters(store, rows, few, sort):
    """Each filter alone, and in pairs."""
    draw = random.Random(12)
    for name in (*FITS, 'name'):
        names = {name, draw.choice(list(FITS))}
        expected = in_order(fitting(filter(there, rows), *names), sort)
        for max_examined in (ENDLESS, 12):
            search = Search('project', filters={name: FITS[name][0] for name in names}, max_examined=max_examined)
            assert all_pages(store, search, sort) == expected, (names, max_examined)


@pytest.mark.parametrize('deleted', [True, None])
@pytest.mark.parametrize('soft_deleted', [True, False, None])
@pytest.mark.parametrize('sort', [NEWEST_FIRST, (('host', True),)])
def test_deleted_servers(store, rows, few, deleted, soft_deleted, sort):
    gone = {'deleted'} if soft_deleted is False else {'deleted', 'soft-delete'}
    mine = [row for row in rows if row['project_id'] == 'project' and (deleted is None or row['vm_state'] in gone)]
    for names in ((), ('changes_since',), ('name',), ('vm_state',)):
        search = Search('project', deleted, soft_deleted, {name: FITS[name][0] for name in names})
        assert all_pages(store, search, sort) == in_order(fitting(mine, *names), sort), names


def test_the_oldest_come_first_where_nobody_asks_for_an_order(store, rows):
    living = [row for row in rows if there(row)]
    assert all_pages(store, Search('project'), ()) == in_order(living, [('created_at', False)])


def test_servers_that_can_be_restored(store, rows):
    mine = [row for row in rows if row['project_id'] == 'project' and row['deleted_at'] is None]
    assert all_pages(store, Search('project', soft_deleted=True)) == in_order(mine, NEWEST_FIRST)


@pytest.mark.parametrize('filters', [{}, {'hostname': 'web'}, {'tags': ['red']}, {'host': 'a'}])
@pytest.mark.parametrize('key', ['created_at', 'name', 'progress', 'vcpus'])
@pytest.mark.parametrize('records, unread', [(servers.BRIEF, 'flavor'), (servers.LISTED, 'public_key')])
def test_a_list_of_less_has_the_same_servers_and_reads_no_more_of_them(store, rows, records, unread, filters, key):
    page, search = Page(PAGE, None, ((key, True),)), Search('project', filters=filters)
    with store.read() as connection, asked(connection) as statements:
        less = server_search.page(connection, page, search, records=records)
        assert statements and not any(f'servers.{unread}' in each for each in statements)
        whole = server_search.page(connection, page, search)
        assert any(f'servers.{unread}' in each for each in statements)
    assert less.servers and [each.name for each in less.servers] == [each.name for each in whole.servers]
    assert [each.uuid for each in less.servers] == [each.uuid for each in whole.servers]


def test_a_page_ends_where_enough_was_looked_at(store, rows, monkeypatch):
    monkeypatch.setattr(server_lookups, 'FEW', 0)
    monkeypatch.setattr(server_search, 'EXTENSION_FACTOR', 3)
    mine = [row for row in rows if row['project_id'] == 'project' and row['deleted_at'] is None]
    there = in_order(mine, NEWEST_FIRST)
    with store.read() as connection:

        def found(filters, marker=None, limit=PAGE):
            return server_search.page(
                connection, Page(limit, marker, NEWEST_FIRST), Search('project', filters=filters, max_examined=5)
            )

        nowhere = {'description': 'nowhere'}
        assert found(nowhere).servers == [] and 3 * 5 <= there.index(found(nowhere).last) < 4 * 5 + 5
        assert found(nowhere, there[-3]) == Found([], None)
        often = found({'hostname': 'e'}, limit=ENDLESS)
        assert often.servers and 5 <= there.index(often.last) < 4 * 5 + 5


def test_a_page_that_is_soon_full_costs_nothing_for_what_is_beyond(store, rows, monkeypatch):
    """Neither further along the index, nor at all names or addresses."""
    monkeypatch.setattr(server_lookups, 'FEW', 0)
    for filters in ({'hostname': '.'}, {'name': '.'}, {'not_tags': ['of nobody']}):
        with store.read() as connection, asked(connection) as statements:
            found = server_search.page(connection, Page(PAGE, None, NEWEST_FIRST), Search(None, filters=filters))
        assert len(found.servers) == PAGE
        assert len(statements) <= 3, 'whether there is less, where the stretch ends, and who is on it'


@pytest.mark.parametrize('pattern', ['^10.0.1.{}$', r'^10\.0\.1\.{}$', '^10.0.1.{}', '^10.0.1..*{}$', '0.1.{}$'])
def test_one_address(store, rows, few, pattern):
    mine = [row for row in rows if there(row) and '10.0.1.' in str(row['network_info'])]
    number = min(str(row['network_info'][0]['addresses'][0]['address'].split('.')[-1]) for row in mine)
    expected = [row for row in mine if re.search(pattern.format(number), address_of(row, '10.0.1.'))]
    assert expected
    for max_examined in (ENDLESS, 12):
        search = Search('project', filters={'ip': pattern.format(number)}, max_examined=max_examined)
        assert all_pages(store, search) == in_order(expected, NEWEST_FIRST)


def address_of(row, beginning):
    there = [each['address'] for entry in row['network_info'] for each in entry['addresses']]
    return next(each for each in there if each.startswith(beginning))


def test_what_is_told_of_a_server_follows_it(store, rows):
    changes = {'name': 'Renamed', 'flavor': FLAVOR | {'flavorid': 'huge'}}
    told = {'network_info': [{'addresses': [{'address': 'fd00::7', 'version': 6}]}]}
    mine = next(row['uuid'] for row in rows if there(row))
    with store.write() as connection:
        for values in (changes, told):
            servers.update(connection, mine, values)
    for filters in ({'name': '^renamed$'}, {'flavorid': 'huge'}, {'ip6': 'fd00::7$'}):
        assert all_pages(store, Search('project', filters=filters)) == [mine]


# ------------------------------------------------------------------ plans

SORTS = ['SORT', 'TEMP B-TREE', 'USING FILESORT']
READS_ALL = ['SEQ SCAN', 'SCAN SERVERS\n', 'SERVERS | ALL |']


@contextmanager
def plans(connection):
    """The query plans of the following statements of a transaction, in upper case. PostgreSQL sorts and reads whole
    tables only if it has no alternative."""
    told = []

    def explain(connection, cursor, statement, parameters, *rest):
        if statement.startswith(('SELECT', 'WITH')):
            words = 'EXPLAIN QUERY PLAN' if connection.dialect.name == 'sqlite' else 'EXPLAIN'
            cursor = connection.connection.cursor()
            cursor.execute(f'{words} {statement}', parameters)
            told.append('\n'.join(' | '.join(map(str, row)) for row in cursor.fetchall()).upper() + '\n')

    if connection.dialect.name == 'postgresql':
        for what in ('seqscan', 'sort', 'incremental_sort', 'bitmapscan'):
            connection.exec_driver_sql(f'SET LOCAL enable_{what} = off')
    with listened(connection, 'after_cursor_execute', explain):
        yield told


def is_walked(connection, search, sort=NEWEST_FIRST, marker=None):
    with plans(connection) as told:
        server_search.page(connection, Page(PAGE, marker, sort), search)
    assert told
    for plan in told:
        assert not [word for word in (*SORTS, *READS_ALL) if word in plan], (sort, search.filters, plan)


@pytest.mark.parametrize('descending', [False, True])
def test_orders_have_indexes(store, rows, descending):
    marker = next(row['uuid'] for row in rows if there(row))
    with store.write() as connection:
        for project_id, key, place in itertools.product(('project', None), SORTED, (None, marker)):
            is_walked(connection, Search(project_id), [(key, descending)], place)


def test_values_are_found_one_from_the_other(store, rows):
    """Not by reading all servers beyond the previous value."""
    for key in ('node', 'locked_by', 'availability_zone'):
        with store.write() as connection, plans(connection) as told:
            found = server_scans.held(connection, key)
        assert set(found) == {row[key] for row in rows if there(row, None) or row['vm_state'] == 'soft-delete'} - {None}
        [plan] = told
        assert not [word for word in (*SORTS, *READS_ALL, 'AGGREGATE') if word in plan], plan


def test_filters_have_indexes(store, rows, monkeypatch):
    monkeypatch.setattr(server_lookups, 'FEW', 0)
    marker = next(row['uuid'] for row in rows if there(row))
    with store.write() as connection:
        for project_id, name, place in itertools.product(('project', None), VALUES, (None, marker)):
            if name in FITS and name not in ('statuses', 'progress'):
                is_walked(connection, Search(project_id, filters={name: FITS[name][0]}), marker=place)
        for project_id in ('project', None):
            is_walked(connection, Search(project_id, filters={'statuses': ['SHUTOFF']}), marker=marker)


@pytest.mark.parametrize('filters', [{'tags': ['red']}, {'tags': ['red', 'blue']}, {'tags_any': ['red', 'blue']}])
def test_tags_tell_the_age_of_their_servers(store, rows, monkeypatch, filters):
    """A page of the servers with a tag is read along an index, however many servers there are."""
    monkeypatch.setattr(server_lookups, 'FEW', 0)
    marker = next(row['uuid'] for row in rows if there(row))
    for project_id, place in itertools.product(('project', None), (None, marker)):
        search = Search(project_id, filters=filters)
        with store.write() as connection, plans(connection) as told:
            server_search.page(connection, Page(PAGE, place, NEWEST_FIRST), search)
        index = server_tagged.OF_ALL if project_id is None else server_tagged.OF_PROJECT
        # With few rows, PostgreSQL rates both indexes the same.
        name = 'ix_server_tags_' if store.dialect == 'postgresql' else index.name
        assert any(name.upper() in plan for plan in told), told
        assert not [plan for plan in told for word in SORTS if word in plan]


@pytest.mark.parametrize('sort', [NEWEST_FIRST, (('created_at', False),)])
def test_tags_that_an_older_release_wrote(store, rows, sort):
    mine = [row for row in rows if there(row) and 'red' in row['tags']]
    with store.write() as connection:
        connection.execute(sa.update(tables.server_tags).values(created_at=None, project_id=None))
        assert set(audits.ageless_tags(connection, ENDLESS)) == {row['uuid'] for row in rows if row['tags']}
    for name, names in (('tags', ['red']), ('tags_any', ['red', 'of nobody'])):
        assert all_pages(store, Search('project', filters={name: names}), sort) == in_order(mine, sort)
    for row in rows:
        store.change(server_tags.fill_age, row['uuid'])
    assert store.query(audits.ageless_tags, ENDLESS) == [] and store.query(server_tagged.are_told, ['red'])
    assert all_pages(store, Search('project', filters={'tags': ['red']}), sort) == in_order(mine, sort)


def test_what_has_no_index_is_looked_at_along_one(store, rows, monkeypatch):
    """In order, so that reading ends when the page is full."""
    monkeypatch.setattr(server_lookups, 'FEW', 0)
    marker = next(row['uuid'] for row in rows if there(row))
    sought = [{'hostname': 'e'}, {'not_tags': ['red']}, {'not_tags_any': ['red', 'blue']}]
    sought += [{'name': 'e'}, {'ip': '10.'}, {'vm_state': 'active', 'hostname': 'e'}]
    with store.write() as connection:
        for project_id, filters, place in itertools.product(('project', None), sought, (None, marker)):
            is_walked(connection, Search(project_id, filters=filters), marker=place)


def test_of_several_filters_the_one_is_walked_that_fewest_pass(store, rows, monkeypatch):
    monkeypatch.setattr(server_lookups, 'FEW', 0)
    monkeypatch.setattr(index_scans, 'FEW', 3)
    with store.write() as connection:
        for number, row in enumerate(rows):
            of_image, of_user = ('few' if number % 20 == rest else 'many' for rest in (3, 13))
            servers.update(connection, row['uuid'], {'image_id': of_image, 'user_id': of_user})
    for expected, other in itertools.permutations(('image_id', 'user_id')):
        with store.read() as connection:
            filters = {expected: 'few', other: 'many'}
            some, told = server_scans.by_age(connection, Reach(None, False, None), True, filters)
        assert told == (expected,) and some[0].along is BY[expected]


@pytest.mark.parametrize('database', ['sqlite'])
def test_addresses_are_looked_for_among_those_of_the_server(store, rows):
    """Not among all addresses for each server."""
    with store.read() as connection, plans(connection) as told:
        server_search.page(
            connection, Page(PAGE, None, NEWEST_FIRST), Search('project', filters={'ip': '7'}, max_examined=1)
        )
    lines = [line for plan in told if 'CORRELATED' in plan for line in plan.splitlines()]
    looked = [line for line in lines if 'SERVER_ADDRESSES' in line]
    assert looked and all('SERVER_ID=?' in line for line in looked)
