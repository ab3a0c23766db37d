"""Temporary databases for tests: on SQLite, and on the servers given by environment variables.

COMPUTEAPI_TEST_POSTGRESQL and _MARIADB have the SQLAlchemy URL of a server on which databases may be created, e.g.
postgresql+psycopg://postgres@127.0.0.1/postgres and mysql+pymysql://root@127.0.0.1/test.
"""

import os
import uuid
from contextlib import contextmanager

import sqlalchemy as sa

URLS = {
    'postgresql': os.environ.get('COMPUTEAPI_TEST_POSTGRESQL'),
    'mariadb': os.environ.get('COMPUTEAPI_TEST_MARIADB'),
}
DATABASES = ['sqlite', *(name for name, url in URLS.items() if url)]
"""The enabled databases."""
SHARED = 'postgresql' if URLS['postgresql'] else 'sqlite'
"""The database for tests with several processes."""


def own_name():
    """A unique name. Process IDs would not do: they are reused, and killed processes leave their databases behind."""
    return f'computeapi_test_{uuid.uuid4().hex[:12]}'


@contextmanager
def made(database, folder):
    """The SQLAlchemy URL of a new database without tables; a SQLite database is in the folder."""
    name = own_name()
    if database == 'sqlite':
        yield f'sqlite:///{folder}/{name}.db'
        return
    _administer(URLS[database], f'CREATE DATABASE {name}')
    try:
        yield sa.make_url(URLS[database]).set(database=name).render_as_string(hide_password=False)
    finally:
        # Killed processes may still be connected.
        _administer(URLS[database], f'DROP DATABASE {name}' + ' WITH (FORCE)' * (database == 'postgresql'))


def _administer(url, statement):
    engine = sa.create_engine(url, isolation_level='AUTOCOMMIT')
    with engine.connect() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


@contextmanager
def listened(target, event, listener):
    """Listens to an engine or a connection meanwhile. Without a listener, constant queries bypass SQLAlchemy's
    execution."""
    sa.event.listen(target, event, listener)
    try:
        yield
    finally:
        sa.event.remove(target, event, listener)
        # It stays set otherwise, and connections are kept.
        target._has_events = False
