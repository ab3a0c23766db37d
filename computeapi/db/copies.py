"""All that an SQLite database has, copied into memory and put back."""

import sqlite3

import sqlalchemy as sa

from computeapi.db.engine import Store
from computeapi.errors import NotSupported

# How long to wait, in seconds, before another look whether who writes has come to an end.
LOOK_AGAIN_SECONDS = 0.002


class Copy:
    """What was in a database at one moment."""

    def __init__(self) -> None:
        # It is closed when nobody holds the copy any more.
        self.pages = sqlite3.connect(':memory:', check_same_thread=False)

    def __del__(self) -> None:
        self.pages.close()


def copy_of(store: Store) -> Copy:
    """What the store has now; NotSupported where that is not a file of SQLite."""
    copy = Copy()
    with store.read() as connection:
        driver_of(connection).backup(copy.pages)
    return copy


def put_back(store: Store, copy: Copy) -> None:
    """Let the store have what it had then, whole or not at all; who reads meanwhile sees the one or the other."""
    with store.engine.connect() as connection:
        copy.pages.backup(driver_of(connection), sleep=LOOK_AGAIN_SECONDS)


def driver_of(connection: sa.Connection) -> sqlite3.Connection:
    """What the connection is to SQLite's own module; NotSupported where it is none of SQLite."""
    driver = connection.connection.dbapi_connection
    if not isinstance(driver, sqlite3.Connection):
        raise NotSupported('a database that is not SQLite')
    return driver
