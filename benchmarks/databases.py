"""Temporary databases of benchmarks."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa


@contextmanager
def database(server: str | None, folder: str, of: int = 0) -> Iterator[str]:
    """The URL of a new database on the server, which is dropped at the end; without a server, SQLite in the folder.

    of: distinguishes the databases that one process uses at the same time.
    """
    if server is None:
        yield f'sqlite:///{folder}/benchmark.db'
        return
    engine, name = sa.create_engine(server, isolation_level='AUTOCOMMIT'), f'benchmark_{os.getpid()}_{of}'
    with engine.connect() as connection:
        connection.exec_driver_sql(f'CREATE DATABASE {name}')
        try:
            yield engine.url.set(database=name).render_as_string(hide_password=False)
        finally:
            connection.exec_driver_sql(f'DROP DATABASE {name}')
    engine.dispose()
