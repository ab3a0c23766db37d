"""Queries on PostgreSQL that bypass psycopg's cursors; see also test_constant_queries.py and test_driver_errors.py."""

from contextlib import closing

import pytest
import sqlalchemy as sa

from computeapi.db.constant_queries import fetch
from computeapi.db.engine import Store

pytestmark = pytest.mark.postgresql
LONG = 20 * 2**20
"""More characters than fit into the buffers of a socket."""
PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'computeapi%'"
NUMBER = sa.select(sa.literal_column("'%'"), sa.column('number')).select_from(sa.text('numbers'))
ABOVE = NUMBER.where(sa.column('number') >= sa.bindparam('least'), sa.bindparam('other') <= sa.bindparam('least'))
LENGTH = sa.select(sa.func.length(sa.bindparam('text', type_=sa.Text)))


@pytest.fixture
def connection(store):
    with closing(Store(store.url.render_as_string(hide_password=False))) as store, store.read() as connection:
        connection.exec_driver_sql('CREATE TEMPORARY TABLE numbers AS SELECT 5 AS number')
        yield connection


def above(connection, least=0, other=0):
    return [tuple(row) for row in fetch(connection, ABOVE, {'least': least, 'other': other})]


def prepared(connection):
    return connection.exec_driver_sql(PREPARED.replace('%', '%%')).scalar()


def test_a_query_is_prepared_once(connection):
    for _ in range(4):
        assert above(connection) == [('%', 5)]
    assert prepared(connection) == 1


def test_numbers_may_be_of_any_size(connection):
    for least, expected in ((0, [('%', 5)]), (2**20, []), (2**40, []), (0, [('%', 5)])):
        for _ in range(2):
            assert above(connection, least) == expected


def test_what_is_no_longer_prepared_is_prepared_again(connection):
    """psycopg deallocates all after a rollback."""
    for _ in range(3):
        above(connection)
    connection.exec_driver_sql('DEALLOCATE ALL')
    assert above(connection) == [('%', 5)]
    assert prepared(connection) == 1


def test_the_type_of_a_column_may_change(connection):
    for _ in range(3):
        above(connection)
    connection.exec_driver_sql('ALTER TABLE numbers ALTER number TYPE bigint')
    assert above(connection) == [('%', 5)]


def test_a_value_may_be_longer_than_what_is_sent_at_once(connection):
    for _ in range(3):
        assert fetch(connection, LENGTH, {'text': 'ü' * LONG}) == [(LONG,)]


def test_in_a_transaction_nothing_is_prepared(store):
    with store.write() as connection:
        before = prepared(connection)
        connection.exec_driver_sql('CREATE TEMPORARY TABLE numbers ON COMMIT DROP AS SELECT 5 AS number')
        for _ in range(3):
            assert above(connection) == [('%', 5)]
        assert prepared(connection) == before
