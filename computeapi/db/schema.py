"""The version of a database's tables, and upgrades.

Revisions are numbered: the one of `0001_initial.py` is `0001`, and they form a single line. So the newest one is known
without Alembic, which is loaded only when there is something to do.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import sqlalchemy as sa

from computeapi.db.engine import Store
from computeapi.db.resumable_revisions import ResumableRevisions
from computeapi.db.tables import metadata
from computeapi.errors import DatabaseError

MIGRATIONS = Path(__file__).parent / 'migrations'
LOCK_SECONDS = 300
LOCK_NUMBER = 0x636F6D70


class WrongTables(DatabaseError):
    """The tables do not match this release."""


def revisions() -> set[str]:
    """The revisions that this release knows."""
    return {path.stem.partition('_')[0] for path in MIGRATIONS.glob('versions/[0-9]*.py')}


def head() -> str:
    """The newest revision."""
    return max(revisions(), default='')


def version(store: Store) -> str | None:
    """The revision of the tables in the database; None before the first. Does not create an SQLite file."""
    if store.dialect == 'sqlite' and _would_make(store.url.database or ':memory:'):
        return None
    with store.read() as connection:
        return _version(connection)


def upgrade(store: Store) -> bool:
    """Upgrade the tables to the newest revision; returns whether there was anything to do. An empty SQLite database
    gets the current tables directly, because going through all revisions takes longer than everything else at startup.

    Processes that start together take turns, and later ones find the work done. All revisions are one transaction where
    the database supports that; MariaDB commits after each DDL statement, and ResumableRevisions resumes from there.
    WrongTables if the tables belong to a release that this one does not know.
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
    """Create the current tables in an empty database, without going through all revisions; otherwise the same as
    `upgrade`.

    For databases that are thrown away: in all others, the migrations themselves get tested.
    """
    if version(store) is not None or not _create(store):
        upgrade(store)


def _create(store: Store) -> bool:
    """Create the current tables in an empty database; False if it is no longer empty."""
    with store.write() as connection:
        if sa.inspect(connection).get_table_names():
            return False
        # The database is empty, so there is no need to check for each table.
        metadata.create_all(connection, checkfirst=False)
        connection.exec_driver_sql('CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)')
        connection.execute(sa.text('INSERT INTO alembic_version VALUES (:head)'), {'head': head()})
    return True


def check(store: Store) -> None:
    """WrongTables unless the tables match this release."""
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
    """Whether the tables belong to a later release: it only adds to them, so running processes can go on."""
    return found is not None and found not in revisions()


def _is_older(found: str | None) -> bool:
    if not is_later(found):
        return found != head()
    raise WrongTables(str(obstacle(found)))


def _would_make(database: str) -> bool:
    """Whether SQLite would create the file; names that are not paths are in memory, or SQLite URIs."""
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
    """Hold a lock on the whole database; SQLite's own write lock is one already."""
    if connection.dialect.name == 'postgresql':
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK_NUMBER)))
    if connection.dialect.name not in ('mysql', 'mariadb'):
        yield
        return
    # The names of these locks are global to the server.
    name = sa.func.left(sa.func.concat('computeapi/', sa.func.database()), 64)
    if connection.scalar(sa.select(sa.func.get_lock(name, LOCK_SECONDS))) != 1:
        raise DatabaseError(f'Another process has been changing the tables for {LOCK_SECONDS} seconds.')
    try:
        yield
    finally:
        connection.execute(sa.select(sa.func.release_lock(name)))


def run(connection: sa.Connection, revision: str = 'head') -> None:
    """Upgrade the tables to this revision, without taking the lock."""
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={'connection': connection})
    config.set_main_option('script_location', str(MIGRATIONS).replace('%', '%%'))
    with ResumableRevisions(connection) if connection.dialect.name in ('mysql', 'mariadb') else nullcontext():
        command.upgrade(config, revision)
