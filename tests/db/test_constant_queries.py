"""Queries that bypass SQLAlchemy's execution have the results and the errors that it gives."""

import gc
import weakref
from datetime import datetime

import pytest
import sqlalchemy as sa

from computeapi import errors
from computeapi.db import constant_queries, flavors, server_groups
from computeapi.db.constant_queries import WrittenQuery, fetch, first, written_queries
from computeapi.db.engine import Store
from computeapi.db.tables.compute import flavors as table
from tests.databases import listened

MOMENT = datetime(2030, 1, 2, 3, 4, 5, 678900)
FACTS = {
    'flavorid': '1',
    'name': '100% "ü" :name %s ?',
    'memory_mb': 2**40,
    'vcpus': 1,
    'root_gb': 0,
    'ephemeral_gb': 0,
    'swap': 0,
    'rxtx_factor': 1.5,
    'disabled': False,
    'is_public': True,
    'extra_specs': {'a': ['ü', None, 1.5]},
    'created_at': MOMENT,
}
SECRET = 'a secret of the client'
BY_EACH_TYPE = sa.select(*table.c, sa.literal('50 % of :all ?').label('text'), sa.null().label('empty')).where(
    table.c.name == sa.bindparam('name of it'),
    table.c.created_at == sa.bindparam('moment'),
    table.c.is_public == sa.bindparam('public', True),
    table.c.rxtx_factor == sa.bindparam('factor'),
    table.c.memory_mb.in_([1, sa.bindparam('memory')]),
)
VALUES = {'name of it': FACTS['name'], 'moment': MOMENT, 'factor': 1.5, 'memory': 2**40}


@pytest.fixture
def connection(store):
    with store.write() as connection:
        flavors.insert(connection, FACTS)
        flavors.insert(connection, {**FACTS, 'flavorid': '2', 'name': 'other', 'description': 'much'})
    with store.read() as connection:
        yield connection


@pytest.fixture
def written(monkeypatch):
    """The queries that were written since."""
    found = []

    class Noted(WrittenQuery):
        def __init__(self, query, dialect):
            super().__init__(query, dialect)
            found.append(query)

    monkeypatch.setattr(constant_queries, 'WrittenQuery', Noted)
    return found


def by_id(value=1):
    """A new query each time."""
    return sa.select(table.c.flavorid, table.c.extra_specs).where(
        table.c.vcpus == value, table.c.flavorid == sa.bindparam('id')
    )


@pytest.mark.parametrize('times', [1, 2])
def test_values_of_each_type(connection, times):
    for _ in range(times):
        found = fetch(connection, BY_EACH_TYPE, VALUES)
    expected = connection.execute(BY_EACH_TYPE, VALUES).all()
    assert [tuple(row) for row in found] == [tuple(row) for row in expected]
    assert found[0][list(table.c).index(table.c.extra_specs)] == FACTS['extra_specs']
    assert [type(value) for value in found[0]] == [type(value) for value in expected[0]]


def test_a_default_can_be_overridden(connection):
    assert not fetch(connection, BY_EACH_TYPE, {**VALUES, 'public': False})


def test_the_rows_of_a_union(connection):
    query = sa.union_all(by_id(), sa.select(table.c.name, sa.null()).where(table.c.flavorid == sa.bindparam('other')))
    found = fetch(connection, query, {'id': '1', 'other': '2'})
    assert sorted(map(tuple, found), key=str) == [('1', FACTS['extra_specs']), ('other', None)]


def test_the_first_row(connection):
    query = sa.select(table.c.flavorid).where(table.c.vcpus == sa.bindparam('size')).order_by(table.c.id.desc())
    assert tuple(first(connection, query, {'size': 1})) == ('2',)
    assert tuple(first(connection, query.params(size=1))) == ('2',)
    assert first(connection, query, {'size': 7}) is None


def test_a_missing_parameter_is_an_error(connection):
    with pytest.raises(KeyError, match='id'):
        fetch(connection, by_id(), {})


def test_a_list_of_values_is_left_to_sqlalchemy(connection, written):
    query = sa.select(table.c.flavorid).where(table.c.flavorid.in_(sa.bindparam('ids', expanding=True)))
    for ids in (['1'], ['1', '2'], []):
        assert sorted(row[0] for row in fetch(connection, query, {'ids': ids})) == ids
    assert written == [query]


def test_listeners_learn_of_the_queries(connection):
    query, seen = by_id(), []
    fetch(connection, query, {'id': '1'})
    with listened(connection.engine, 'before_cursor_execute', lambda *event: seen.append(event[2])):
        assert len(fetch(connection, query, {'id': '1'})) == 1
    fetch(connection, query, {'id': '1'})
    assert len(seen) == 1
    assert 'flavors' in seen[0]


def test_a_query_is_written_once(connection, written):
    query = by_id()
    assert [fetch(connection, query, {'id': name})[0][0] for name in ('1', '2', '1')] == ['1', '2', '1']
    assert written == [query]


def test_a_query_that_is_gone_is_not_kept(connection):
    query = by_id()
    fetch(connection, query, {'id': '1'})
    assert query in written_queries(connection.dialect)
    gone = weakref.ref(query)
    del query
    gc.collect()
    assert gone() is None


def test_errors_are_those_of_sqlalchemy(connection):
    query = sa.select(sa.column('missing')).select_from(table).where(table.c.flavorid == sa.bindparam('id'))
    raised = []
    for execute in (connection.execute, lambda *args: fetch(connection, *args)):
        with pytest.raises(sa.exc.DBAPIError) as caught, connection.engine.connect() as connection:
            execute(query, {'id': SECRET})
        raised.append(caught.value)
    ours, theirs = raised
    assert type(ours) is type(theirs)
    assert str(ours.orig) == str(theirs.orig)
    assert SECRET not in str(theirs)


def test_a_value_that_fits_no_column_is_invalid(store, connection):
    query = sa.select(table.c.id).where(table.c.memory_mb == sa.bindparam('memory'))
    if store.dialect == 'mysql':
        # It compares numbers of any size.
        assert not fetch(connection, query, {'memory': 2**80})
        return
    with pytest.raises(errors.Invalid), store.read() as other:
        fetch(other, query, {'memory': 2**80})


def test_two_databases_do_not_share_queries(tmp_path):
    """They may convert values in different ways."""
    stores = [Store(f'sqlite:///{tmp_path}/{name}.db') for name in 'ab']
    for number, store in enumerate(stores):
        table.create(store.engine)
        with store.write() as connection:
            flavors.insert(connection, {**FACTS, 'name': str(number)})
    assert [store.query(flavors.get, '1').name for store in stores] == ['0', '1']
    for store in stores:
        store.close()


def test_nothing_remains_of_a_database_that_is_closed(tmp_path):
    store = Store(f'sqlite:///{tmp_path}/computeapi.db')
    table.create(store.engine)
    assert store.query(flavors.get, '1') is None
    store.close()
    gone = weakref.ref(store.engine.dialect)
    del store
    gc.collect()
    assert gone() is None


def test_a_connection_that_is_closed_is_an_error_of_the_database(store):
    assert store.query(flavors.get, '1') is None
    with pytest.raises(errors.DatabaseError), store.read() as connection:
        connection.connection.dbapi_connection.close()
        flavors.get(connection, '1')
    assert store.query(flavors.get, '1') is None


def test_pages_of_any_size_are_one_query(store, written):
    store.query(server_groups.select, 'project', 1, 0)
    written.clear()
    for limit, offset in ((2, 0), (1000, 5)):
        store.query(server_groups.select, 'project', limit, offset)
    assert written == []


READS = (
    '/flavors',
    '/flavors/detail',
    '/flavors/{flavor}',
    '/flavors/{flavor}/os-extra_specs',
    '/limits',
    '/os-availability-zone/detail',
    '/os-hypervisors/detail',
    '/os-keypairs',
    '/os-server-groups',
    '/os-services',
    '/servers',
    '/servers/detail',
    '/servers/{server}',
    '/servers/{server}/ips',
    '/servers/{server}/os-instance-actions',
    '/servers/{server}/os-interface',
    '/servers/{server}/os-volume_attachments',
)


def test_a_request_writes_no_query_that_one_like_it_has_written(api, servers, store, written):
    """Whatever it asks for: other things, pages of another size, another caller."""
    # Other tests may have sent the same requests to this database.
    written_queries(store.engine.dialect).clear()
    with store.write() as connection:
        for name in ('one', 'two'):
            flavors.insert(connection, {**FACTS, 'flavorid': name, 'name': name, 'extra_specs': {}})
    ids = [servers.add(name=name) for name in ('one', 'two')]
    counts = []
    for server_id, flavor, limit, caller in ((ids[0], 'one', 2, 'bob:project'), (ids[1], 'two', 7, 'eve:project')):
        for path in READS:
            answer = api.get(path.format(server=server_id, flavor=flavor) + f'?limit={limit}', '2.96', as_=caller)
            assert answer.status in (200, 400, 403), (path, answer)
            api.get(path.format(server=server_id, flavor=flavor), '2.96')
        counts.append(len(written))
    assert counts[0] > 0
    assert counts[1] == counts[0]
