"""Persistent SQLite connections see committed data, and nothing else."""

import contextlib
import sqlite3

import pytest
import sqlalchemy as sa

from computeapi.db.engine import MAX_KEPT, Store

COUNT = sa.text('SELECT count(*) FROM things')


@pytest.fixture
def store(tmp_path):
    store = Store(f'sqlite:///{tmp_path}/computeapi.db')
    with contextlib.closing(store):
        with store.write() as connection:
            connection.exec_driver_sql('CREATE TABLE things (id INTEGER)')
        yield store


def add(store):
    with store.write() as connection:
        connection.exec_driver_sql('INSERT INTO things VALUES (1)')


def number(connection):
    return connection.scalar(COUNT)


def test_a_look_sees_what_was_committed_before_it(store):
    for expected in range(3):
        assert store.query(number) == expected
        add(store)


def test_what_is_committed_meanwhile_is_seen_by_the_next_look(store):
    with store.read() as connection:
        assert number(connection) == 0
        add(store)
        assert number(connection) == 0
    assert store.query(number) == 1


def test_who_does_not_look_leaves_no_view_behind(store):
    with store.read():
        pass
    add(store)
    assert store.query(number) == 1


def test_a_look_that_fails_leaves_no_view_behind(store):
    with pytest.raises(KeyError), store.read() as connection:
        assert number(connection) == 0
        raise KeyError
    assert store.connection_cache.kept == []
    add(store)
    assert store.query(number) == 1


def test_few_connections_are_kept(store):
    with contextlib.ExitStack() as stack:
        for _ in range(MAX_KEPT + 3):
            stack.enter_context(store.read())
        assert store.connections().in_use == MAX_KEPT + 3
    assert len(store.connection_cache.kept) == MAX_KEPT
    assert store.connections().in_use == 0


def test_one_connection_is_enough_for_one_look_after_the_other(store):
    for _ in range(3):
        store.query(number)
    assert len(store.connection_cache.kept) == 1


def test_a_change_is_made_by_a_connection_that_was_kept(store):
    """There are no more connections than are used at the same time."""
    made = []
    sa.event.listen(store.engine.pool, 'connect', lambda *facts: made.append(facts))
    for _ in range(3):
        assert store.query(number) == len(made) == 0
    for count in range(3):
        add(store)
        assert store.query(number) == count + 1
    assert made == []
    with store.read() as connection, store.write():
        assert number(connection) == 3
    assert len(made) == 1


def test_looks_and_changes_use_one_connection_in_turn(store):
    fetched = []
    sa.event.listen(store.engine.pool, 'checkout', lambda *facts: fetched.append(facts))
    for _ in range(3):
        store.query(number)
        add(store)
    assert fetched == []


def test_a_change_that_fails_leaves_nothing_behind(store):
    with pytest.raises(KeyError), store.write() as connection:
        connection.exec_driver_sql('INSERT INTO things VALUES (1)')
        raise KeyError
    assert store.connection_cache.kept == []
    assert store.query(number) == 0
    add(store)
    assert store.query(number) == 1


@pytest.mark.parametrize('url', ['sqlite://', 'sqlite:///:memory:'])
def test_of_a_database_in_memory_each_thread_has_its_own(url):
    with contextlib.closing(Store(url)) as store:
        assert store.query(lambda connection: connection.scalar(sa.text('SELECT 1'))) == 1
        assert store.connection_cache.kept == []


def test_a_store_that_is_closed_has_none(store):
    store.query(number)
    store.close()
    assert store.connection_cache.kept == []


@pytest.mark.parametrize('use', [Store.read, Store.write])
def test_a_connection_that_is_in_use_when_its_store_is_closed_is_closed_afterwards(store, use):
    with use(store) as connection:
        driver = connection.connection.dbapi_connection
        store.close()
        assert number(connection) == 0
    with pytest.raises(sqlite3.ProgrammingError, match='closed'):
        driver.execute('SELECT 1')
