"""Copies all of an SQLite database into memory, and restores it."""

import sqlite3

import sqlalchemy as sa

from computeapi.db.engine import Store
from computeapi.errors import NotSupported

# The interval, in seconds, at which a restore retries while somebody writes.
LOOK_AGAIN_SECONDS = 0.002


class Copy:
    """The contents of a database at one moment."""

    def __init__(self) -> None:
        # Closed when the copy is no longer referenced.
        self.pages = sqlite3.connect(':memory:', check_same_thread=False)

    def __del__(self) -> None:
        self.pages.close()


def copy_of(store: Store) -> Copy:
    """A copy of the store as it is now; NotSupported if it is not an SQLite file."""
    copy = Copy()
    with store.read() as connection:
        driver_of(connection).backup(copy.pages)
    return copy


def put_back(store: Store, copy: Copy) -> None:
    """Restore the store to the copy, all or nothing; concurrent readers see one state or the other."""
    with store.engine.connect() as connection:
        copy.pages.backup(driver_of(connection), sleep=LOOK_AGAIN_SECONDS)


def driver_of(connection: sa.Connection) -> sqlite3.Connection:
    """The connection of the sqlite3 module; NotSupported if it is another database."""
    driver = connection.connection.dbapi_connection
    if not isinstance(driver, sqlite3.Connection):
        raise NotSupported('a database that is not SQLite')
    return driver
