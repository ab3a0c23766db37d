"""Results of database servers: the columns of a repeated statement are parsed once, and read as what they are."""

import io
from contextlib import ExitStack, closing

import pytest
import sqlalchemy as sa

from computeapi.db.engine import Store

pytestmark = pytest.mark.several_writers
POOL_SIZE = 7
NUMBERS = sa.select(*(sa.literal(number).label(f'column_{number}') for number in range(20)))


@pytest.fixture
def fresh(store):
    """The same database, of which this process has no results yet."""
    with closing(Store(store.url.render_as_string(hide_password=False), pool_size=POOL_SIZE)) as fresh:
        yield fresh


@pytest.fixture
def parsed(database, monkeypatch):
    """Grows whenever a driver parses descriptions of columns: of one on MariaDB, of all of a result on PostgreSQL."""
    parsed = []
    if database == 'mariadb':
        from pymysql.protocol import FieldDescriptorPacket as Column

        parse = Column._parse_field_descriptor
        monkeypatch.setattr(Column, '_parse_field_descriptor', lambda *of: parsed.append(of) or parse(*of))
    else:
        from psycopg import Cursor

        describe = Cursor.description.fget
        monkeypatch.setattr(Cursor, 'description', property(lambda of: parsed.append(of) or describe(of)))
    return parsed


def test_columns_of_a_repeated_statement_are_parsed_once(fresh, parsed):
    def ask(connection):
        return tuple(connection.execute(NUMBERS).one())

    assert fresh.query(ask) == tuple(range(20))
    assert parsed
    parsed.clear()
    assert fresh.query(ask) == tuple(range(20))
    assert parsed == []


def test_all_connections_of_the_pool_may_be_kept_for_reading(fresh):
    with ExitStack() as stack:
        for _ in range(POOL_SIZE + 2):
            stack.enter_context(fresh.read())
    assert len(fresh.connection_cache.kept) == POOL_SIZE


class InPieces(io.RawIOBase):
    """What arrives from a server, at most that many bytes at a time."""

    def __init__(self, socket, size):
        self.socket, self.size = socket, size

    def readable(self):
        return True

    def readinto(self, buffer):
        return self.socket.recv_into(memoryview(buffer)[: self.size])


@pytest.mark.parametrize('size', [1, 7, 100, 1000])
def test_a_result_that_arrives_in_pieces(size, fresh, database):
    """MariaDB's driver recognizes descriptions only if they have arrived completely."""

    def ask(connection):
        if database == 'mariadb':
            driver = connection.connection.dbapi_connection
            driver._rfile = io.BufferedReader(InPieces(driver._sock, size))
        return [tuple(connection.execute(each).one()) for each in (NUMBERS, NUMBERS, sa.select(sa.literal('é' * 300)))]

    for _ in range(2):
        assert fresh.query(ask) == [tuple(range(20)), tuple(range(20)), ('é' * 300,)]


def test_columns_of_one_name_are_read_by_their_own_types(fresh):
    for value in (1, 'é' * 300, 'x', b'\xff\x00', 2.5, None, 1):
        statement = sa.select(sa.literal(value).label('value'))
        assert fresh.query(lambda connection, asked=statement: connection.scalar(asked)) == value


def test_a_column_that_changes_its_type(fresh):
    def ask(connection):
        return connection.exec_driver_sql('SELECT value FROM changing').scalar()

    with fresh.write() as connection:
        connection.exec_driver_sql('CREATE TABLE changing (value INTEGER)')
        connection.exec_driver_sql('INSERT INTO changing VALUES (7)')
    try:
        assert fresh.query(ask) == 7
        with fresh.write() as connection:
            kind = 'MODIFY value VARCHAR(9)' if fresh.dialect == 'mysql' else 'ALTER value TYPE VARCHAR(9)'
            connection.exec_driver_sql(f'ALTER TABLE changing {kind}')
        assert fresh.query(ask) == '7'
    finally:
        with fresh.write() as connection:
            connection.exec_driver_sql('DROP TABLE changing')
