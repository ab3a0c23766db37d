"""The revisions create exactly the tables that the code defines."""

import subprocess
import sys
from contextlib import closing
from datetime import datetime

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import mysql

from computeapi.db import schema, services
from computeapi.db.engine import Store
from computeapi.db.tables import metadata
from computeapi.db.tables.servers import server_tags
from tests.conftest import ACTIVE
from tests.db.former import insert

UPGRADE = """
import sys
from computeapi.db import schema, services
from computeapi.db.engine import Store

store = Store(sys.argv[1])
schema.upgrade(store)
print(schema.version(store))
"""


@pytest.fixture
def empty(database_url):
    store = Store(database_url)
    yield store
    store.close()


@pytest.mark.parametrize('first', [None, '0001'])
def test_an_upgrade_makes_the_tables(empty, first):
    if first is not None:
        with empty.rebuild() as connection:
            schema.run(connection, first)
    assert schema.version(empty) == first
    assert schema.upgrade(empty)
    assert schema.version(empty) == schema.head()
    with empty.engine.connect() as connection:
        difference = compare_metadata(MigrationContext.configure(connection), metadata)
    assert not difference, 'Write a revision: see computeapi/db/migrations/__init__.py'


def test_an_upgrade_keeps_what_belongs_to_a_table_that_changes(empty):
    with empty.write() as connection:
        schema.run(connection, '0002')
    now = datetime(2030, 1, 1)
    text = {'project_id': 'p', 'name': 'data', 'status': 'available', 'availability_zone': 'nova'}
    flags = {'bootable': False, 'multiattach': False, 'readonly': False, 'is_public': True}
    times = {'created_at': now, 'updated_at': now}
    with empty.write() as connection:
        tables = sa.MetaData()
        tables.reflect(connection, only=['volumes', 'volume_types', 'volume_metadata'])
        kind, volume, pair = (tables.tables[name] for name in ('volume_types', 'volumes', 'volume_metadata'))
        for table, row in (
            (kind, {'id': 't'}),
            (volume, {'id': 'v', 'size': 1, 'volume_type_id': 't'}),
            (pair, {'owner_id': 'v', 'name': 'color', 'value': 'red'}),
        ):
            facts = {**text, **flags, **times, **row}
            connection.execute(table.insert(), {name: value for name, value in facts.items() if name in table.c})
    assert schema.upgrade(empty)
    with empty.read() as connection:
        assert connection.execute(sa.select(pair.c.name, pair.c.value)).all() == [('color', 'red')]
    with pytest.raises(sa.exc.IntegrityError), empty.write() as connection:
        connection.execute(pair.insert().values(owner_id='nobody', name='color', value='red'))


def test_an_upgrade_tells_how_old_the_servers_of_tags_are(empty):
    made, row = datetime(2030, 1, 1), {**ACTIVE, 'uuid': 's', 'project_id': 'p', 'claims': 0}
    with empty.rebuild() as connection:
        schema.run(connection, '0027')
        insert(connection, 'servers', {**row, 'created_at': made})
        insert(connection, 'server_tags', {'server_id': 's', 'tag': 'red'})
    assert schema.upgrade(empty)
    with empty.read() as connection:
        assert connection.execute(sa.select(server_tags)).all() == [('s', 'red', 'p', made)]


def test_an_upgrade_leaves_no_control_services_that_nobody_is(empty):
    rows = [('controller', 'nova-conductor'), ('controller', 'nova-scheduler'), ('controller', 'nova-compute')]
    flags = {'disabled': False, 'forced_down': False, 'created_at': datetime(2030, 1, 1)}
    with empty.rebuild() as connection:
        schema.run(connection, '0028')
        for host, binary in rows:
            insert(connection, 'services', {'uuid': binary, 'host': host, 'binary': binary, **flags})
    assert schema.upgrade(empty)
    assert [each.binary for each in empty.query(services.select)] == ['nova-compute']


def test_there_is_nothing_to_do_twice(empty):
    schema.upgrade(empty)
    assert not schema.upgrade(empty)


def test_processes_that_start_together_do_not_disturb_each_other(database_url):
    command = [sys.executable, '-c', UPGRADE, database_url]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0].strip() for process in started] == [schema.head()] * 3


@pytest.mark.parametrize('database', ['sqlite'])
def test_new_tables_of_sqlite_are_those_that_all_revisions_make(empty, tmp_path):
    schema.upgrade(empty)
    with closing(Store(f'sqlite:///{tmp_path}/former.db')) as former:
        with former.rebuild() as connection:
            schema.run(connection)
        assert former.query(described) == empty.query(described)


def described(connection):
    """SQLite's description of each table, independent of order."""
    inspector = sa.inspect(connection)
    wheres = dict(connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'index'").all())
    return {
        name: (
            {
                (each['name'], str(each['type']), each['nullable'], each['default'])
                for each in inspector.get_columns(name)
            },
            {(each['name'], *each['column_names'], each['unique'], where(wheres[each['name']])) for each in indexes},
            tuple(inspector.get_pk_constraint(name)['constrained_columns']),
            {(*each['constrained_columns'], each['referred_table'], *each['options'].items()) for each in foreign},
            {tuple(each['column_names']) for each in inspector.get_unique_constraints(name)},
            {each['sqltext'] for each in inspector.get_check_constraints(name)},
        )
        for name in inspector.get_table_names()
        for indexes, foreign in [(inspector.get_indexes(name), inspector.get_foreign_keys(name))]
    }


def where(index):
    return index.partition(' WHERE ')[2]


def test_revisions_are_counted_in_one_line():
    scripts = ScriptDirectory(str(schema.MIGRATIONS))
    assert scripts.get_heads() == [schema.head()]
    assert all(script.path.rpartition('/')[2].startswith(script.revision) for script in scripts.walk_revisions())


def test_text_compares_by_code_point_on_mariadb():
    columns = [column for table in metadata.tables.values() for column in table.columns]
    types = {str(column): column.type.compile(mysql.dialect()) for column in columns}
    texts = {name: kind for name, kind in types.items() if 'CHAR' in kind or 'TEXT' in kind}
    assert [name for name, kind in texts.items() if 'utf8mb4_bin' not in kind] == []


def test_which_numbers_are_given_once_on_sqlite(tmp_path):
    with closing(Store(f'sqlite:///{tmp_path}/computeapi.db')) as store:
        schema.upgrade(store)
        with store.read() as connection:
            counting = sa.text("SELECT name FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%'")
            made = set(connection.scalars(counting))
    assert made == {name for name, table in metadata.tables.items() if table.dialect_options['sqlite']['autoincrement']}
