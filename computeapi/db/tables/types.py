"""Column types that mean the same on SQLite, PostgreSQL and MariaDB, and tables of common shapes.

Type objects are shared between columns, because SQLAlchemy caches each type's implementation for a database with it.
"""

import functools
from collections.abc import Callable
from datetime import datetime
from typing import Any

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        'ix': 'ix_%(table_name)s_%(column_0_N_name)s',
        'uq': 'uq_%(table_name)s_%(column_0_N_name)s',
        'fk': 'fk_%(table_name)s_%(column_0_N_name)s',
        'pk': 'pk_%(table_name)s',
    }
)


class InMariaDB(sa.types.TypeDecorator[Any]):
    """A type of SQLAlchemy's MariaDB dialect, which is only loaded if that is the database."""

    impl = sa.types.NullType
    cache_ok = True

    def __init__(self, make: Callable[[Any], sa.types.TypeEngine[Any]]):
        super().__init__()
        self.make = make

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        from sqlalchemy.dialects import mysql

        return self.make(mysql)


@functools.cache
def Text(length: int) -> sa.types.TypeEngine[str]:
    """A string compared by code point on all databases: 'a' and 'A' differ."""
    exact = InMariaDB(lambda mysql: mysql.VARCHAR(length, charset='utf8mb4', collation='utf8mb4_bin'))
    return sa.String(length).with_variant(exact, 'mysql', 'mariadb')


@functools.cache
def CodePoints(length: int) -> sa.types.TypeEngine[str]:
    """A string that is also sorted by code point on all databases."""
    return Text(length).with_variant(sa.String(length, collation='C'), 'postgresql')


@functools.cache
def LongText() -> sa.types.TypeEngine[str]:
    """Text without a practical limit (up to 4 GiB)."""
    exact = InMariaDB(lambda mysql: mysql.LONGTEXT(charset='utf8mb4', collation='utf8mb4_bin'))
    return sa.Text().with_variant(exact, 'mysql', 'mariadb')


@functools.cache
def Timestamp() -> sa.types.TypeEngine[datetime]:
    """A time in UTC, with microseconds."""
    exact = InMariaDB(lambda mysql: mysql.DATETIME(fsp=6))
    return sa.DateTime().with_variant(exact, 'mysql', 'mariadb')


def Id() -> sa.types.TypeEngine[str]:
    """A UUID as text, or the 32 hexadecimal digits that identity uses."""
    return Text(64)


BigInteger = sa.BigInteger().with_variant(sa.Integer(), 'sqlite')


def pairs(name: str, owner: str) -> sa.Table:
    """A table of name-value pairs that are deleted with their owner; see `computeapi.db.pairs`.

    owner: the column that identifies owners, such as volumes.id.
    """
    return sa.Table(
        name,
        metadata,
        sa.Column('owner_id', Id(), sa.ForeignKey(owner, ondelete='CASCADE'), primary_key=True),
        sa.Column('name', Text(255), primary_key=True),
        sa.Column('value', LongText(), nullable=False),
    )


def resource(name: str, *columns: sa.Column[Any]) -> sa.Table:
    """A table of resources that users create in their projects: the common columns, and these."""
    return sa.Table(
        name,
        metadata,
        sa.Column('id', Id(), primary_key=True),
        sa.Column('project_id', Id(), nullable=False, index=True),
        sa.Column('user_id', Id()),
        sa.Column('name', Text(255)),
        sa.Column('description', Text(255)),
        sa.Column('status', Text(32), nullable=False),
        *columns,
        sa.Column('created_at', Timestamp(), nullable=False, index=True),
        sa.Column('updated_at', Timestamp(), nullable=False),
    )
