"""Revisions bring an empty database to exactly the tables that the code knows."""

import subprocess
import sys

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import mysql

from computeapi.db import schema
from computeapi.db.engine import Store
from computeapi.db.tables import metadata

UPGRADE = """
import sys
from computeapi.db import schema
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


def test_an_upgrade_from_nothing_makes_the_tables(empty):
    assert schema.version(empty) is None
    assert schema.upgrade(empty)
    assert schema.version(empty) == schema.head()
    with empty.engine.connect() as connection:
        difference = compare_metadata(MigrationContext.configure(connection), metadata)
    assert not difference, 'Write a revision: see computeapi/db/migrations/__init__.py'


def test_there_is_nothing_to_do_twice(empty):
    schema.upgrade(empty)
    assert not schema.upgrade(empty)


def test_processes_that_start_together_do_not_disturb_each_other(database_url):
    command = [sys.executable, '-c', UPGRADE, database_url]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0].strip() for process in started] == [schema.head()] * 3


def test_revisions_are_counted_in_one_line():
    scripts = ScriptDirectory(str(schema.MIGRATIONS))
    assert scripts.get_heads() == [schema.head()]
    assert all(script.path.rpartition('/')[2].startswith(script.revision) for script in scripts.walk_revisions())


def test_text_compares_by_code_point_on_mariadb():
    columns = [column for table in metadata.tables.values() for column in table.columns]
    types = {str(column): column.type.compile(mysql.dialect()) for column in columns}
    texts = {name: kind for name, kind in types.items() if 'CHAR' in kind or 'TEXT' in kind}
    assert [name for name, kind in texts.items() if 'utf8mb4_bin' not in kind] == []
