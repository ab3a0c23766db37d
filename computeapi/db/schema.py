"""The version of the tables in a database, and how it is brought up to date.

Revisions are counted: the one of `0001_initial.py` is `0001`, and they follow each other in a line. So what is
the newest can be told without Alembic, which is loaded only when there is something to do.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import sqlalchemy as sa

from computeapi.db.engine import Store
from computeapi.db.steps import Steps
from computeapi.db.tables import metadata
from computeapi.errors import DatabaseTrouble

MIGRATIONS = Path(__file__).parent / 'migrations'
LOCK_SECONDS = 300
LOCK_NUMBER = 0x636F6D70


class WrongTables(DatabaseTrouble):
    """The tables are not those of this release."""


def revisions() -> set[str]:
    """The revisions that this release knows."""
    return {path.stem.partition('_')[0] for path in MIGRATIONS.glob('versions/[0-9]*.py')}


def head() -> str:
    """The newest revision there is."""
    return max(revisions(), default='')


def version(store: Store) -> str | None:
    """The revision of the tables in the database; None before the first. To ask does not make a file of SQLite."""
    if store.dialect == 'sqlite' and _would_make(store.url.database or ':memory:'):
        return None
    with store.read() as connection:
        return _version(connection)


def upgrade(store: Store) -> bool:
    """Bring the tables to the newest revision; whether there was anything to do. Where SQLite has none they are made as
    they are now: to go through all revisions takes longer than all else that a start does.

    Processes that start together take turns, and those that come later find the work done. All revisions are
    one transaction where the database can; MariaDB commits after each table, and Steps goes on from there.
    WrongTables for those of a release that this one does not know.
    """
    if not _is_older(found := version(store)):
        return False
    if found is None and store.dialect == 'sqlite' and _create(store):
        return True
    with store.rebuild() as connection, _one_at_a_time(connection):
        if not _is_older(_version(connection)):
            return False
        run(connection)
    return True


def create(store: Store) -> None:
    """Make the newest tables where there are none, without going through all revisions; else as `upgrade`.

    For databases that are thrown away: what makes the others is tried on every one of them.
    """
    if version(store) is not None or not _create(store):
        upgrade(store)


def _create(store: Store) -> bool:
    """Make the newest tables where there are none; False if there are some now."""
    with store.write() as connection:
        if sa.inspect(connection).get_table_names():
            return False
        # That none of them is there need not be asked again for each.
        metadata.create_all(connection, checkfirst=False)
        connection.exec_driver_sql('CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)')
        connection.execute(sa.text('INSERT INTO alembic_version VALUES (:head)'), {'head': head()})
    return True


def check(store: Store) -> None:
    """WrongTables unless the tables are those of this release."""
    if reason := obstacle(version(store)):
        raise WrongTables(f'{store.url.render_as_string()}: {reason}')


def obstacle(found: str | None) -> str | None:
    """Why this release cannot use tables of that revision; None if it can."""
    if found == head():
        return None
    if not is_later(found):
        return f'Its tables are at revision {found}, not {head()}: run `computeapi db upgrade`.'
    return f'Its tables are at revision {found}, which this release does not support: its newest revision is {head()}.'


def is_later(found: str | None) -> bool:
    """Whether the tables are those of a release after this one, which has only added to them: what runs goes on."""
    return found is not None and found not in revisions()


def _is_older(found: str | None) -> bool:
    if not is_later(found):
        return found != head()
    raise WrongTables(str(obstacle(found)))


def _would_make(database: str) -> bool:
    """Whether SQLite would make the file; what is no path is in memory, or a URI of SQLite's own."""
    if database.startswith((':memory:', 'file:')) or os.path.exists(database):
        return False
    return os.path.isdir(os.path.dirname(database) or '.')


def _version(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table('alembic_version'):
        return None
    found: str | None = connection.scalar(sa.text('SELECT version_num FROM alembic_version'))
    return found


@contextmanager
def _one_at_a_time(connection: sa.Connection) -> Iterator[None]:
    """Hold a lock of the whole database; SQLite's own write lock is one already."""
    if connection.dialect.name == 'postgresql':
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK_NUMBER)))
    if connection.dialect.name not in ('mysql', 'mariadb'):
        yield
        return
    # The names of these locks belong to the whole server.
    name = sa.func.left(sa.func.concat('computeapi/', sa.func.database()), 64)
    if connection.scalar(sa.select(sa.func.get_lock(name, LOCK_SECONDS))) != 1:
        raise DatabaseTrouble(f'Another process has been changing the tables for {LOCK_SECONDS} seconds.')
    try:
        yield
    finally:
        connection.execute(sa.select(sa.func.release_lock(name)))


def run(connection: sa.Connection, revision: str = 'head') -> None:
    """Bring the tables to this revision, without waiting for others."""
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={'connection': connection})
    config.set_main_option('script_location', str(MIGRATIONS).replace('%', '%%'))
    with Steps(connection) if connection.dialect.name in ('mysql', 'mariadb') else nullcontext():
        command.upgrade(config, revision)
