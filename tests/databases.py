"""Databases that tests make for themselves, which go away: on SQLite, and on servers that the environment names.

COMPUTEAPI_TEST_POSTGRESQL and _MARIADB hold the SQLAlchemy URL of a server on which a database may be made, e.g.
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
"""Those that are switched on."""
SHARED = 'postgresql' if URLS['postgresql'] else 'sqlite'
"""The one for several processes."""


def own_name():
    """A name that nobody has, also none who was killed: the numbers of processes come again."""
    return f'computeapi_test_{uuid.uuid4().hex[:12]}'


@contextmanager
def made(database, folder):
    """The SQLAlchemy URL of a new database, without tables; SQLite's is in the folder."""
    name = own_name()
    if database == 'sqlite':
        yield f'sqlite:///{folder}/{name}.db'
        return
    _administer(URLS[database], f'CREATE DATABASE {name}')
    try:
        yield sa.make_url(URLS[database]).set(database=name).render_as_string(hide_password=False)
    finally:
        # Processes that were killed may be connected still.
        _administer(URLS[database], f'DROP DATABASE {name}' + ' WITH (FORCE)' * (database == 'postgresql'))


def _administer(url, statement):
    engine = sa.create_engine(url, isolation_level='AUTOCOMMIT')
    with engine.connect() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()
