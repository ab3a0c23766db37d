"""An upgrade that was killed at any point succeeds when it is run again."""

import os
import subprocess
import sys
from contextlib import closing

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from computeapi.db import schema
from computeapi.db.engine import Store
from computeapi.db.tables import metadata
from tests.conftest import THOROUGH
from tests.db import killed, test_identity_revision

# Its test is not run once more here.
former = test_identity_revision.former
SEED = os.environ.get('COMPUTEAPI_TEST_KILL_SEED', '1')
# If a killed upgrade is rolled back as a whole, each attempt costs as much as all previous steps.
STEPS = {'sqlite': 60, 'postgresql': 150, 'mariadb': 60}


def upgrade(url, step):
    command = [sys.executable, killed.__file__, url, str(1 if THOROUGH else step), SEED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 3
    return int(done.stdout)


def test_an_upgrade_from_nothing(database, database_url):
    upgrade(database_url, STEPS[database])
    with closing(Store(database_url)) as store:
        assert schema.version(store) == schema.head()
        with store.read() as connection:
            assert not compare_metadata(MigrationContext.configure(connection), metadata)
            assert not sa.inspect(connection).has_table('upgrade_steps')


def test_an_upgrade_of_rows(database, former):
    """From a revision before the first one that moves rows."""
    upgrade(former.url.render_as_string(hide_password=False), STEPS[database])
    test_identity_revision.test_rights_are_what_they_were(former)


@pytest.mark.parametrize('revision', ['0099', 'abcdef'])
def test_tables_of_another_release_are_left_alone(database_url, revision):
    with closing(Store(database_url)) as store:
        schema.create(store)
        with store.write() as connection:
            connection.execute(sa.text('UPDATE alembic_version SET version_num = :new'), {'new': revision})
        with pytest.raises(schema.DatabaseError, match='The database') as told:
            schema.upgrade(store)
        assert revision in told.value.reason
        assert schema.version(store) == revision
