"""Tables from records: each field without a default is a column.

class Keypair(NamedTuple):
    id: Number
    user_id: str
    public_key: AnyText
    updated_at: datetime | None


keypairs = table('keypairs', Keypair, sa.UniqueConstraint('user_id'))

A string has up to 255 characters unless its annotation says otherwise; a field that may be None is nullable.
"""

from collections.abc import Collection
from datetime import datetime
from enum import Enum
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import sqlalchemy as sa

from computeapi.db.records import required
from computeapi.db.tables.types import BigInteger, Id, LongText, Text, Timestamp, metadata


class Mark(Enum):
    """A property that an annotation can give a column, besides its type and its foreign key."""

    KEY = 'primary_key'
    UNIQUE = 'unique'
    INDEX = 'index'


KEY, UNIQUE, INDEX = Mark.KEY, Mark.UNIQUE, Mark.INDEX

Number = Annotated[int, BigInteger, KEY]
"""An autoincrement primary key."""
NumberElsewhere = Annotated[int, BigInteger]
BigInt = Annotated[int, sa.BigInteger()]
ShortText = Annotated[str, Text(64)]
AnyText = Annotated[str, LongText()]
TextId = Annotated[str, Id()]
UniqueId = Annotated[str, Id(), UNIQUE]

TYPES: dict[Any, sa.types.TypeEngine[Any]] = {
    str: Text(255),
    int: sa.Integer(),
    bool: sa.Boolean(),
    float: sa.Double(),
    datetime: Timestamp(),
    # None is stored as SQL NULL, not as JSON null.
    dict: sa.JSON(none_as_null=True),
    list: sa.JSON(none_as_null=True),
}


def table(
    name: str, record: type[Any], *others: sa.schema.SchemaItem, without: Collection[str] = (), shown: bool = False
) -> sa.Table:
    """The table for these records, `without` some of their fields, with other columns and constraints.

    shown: whether its IDs are visible outside, so that none is ever reused: SQLite would reuse that of a deleted newest
    row.
    """
    hints = get_type_hints(record, include_extras=True)
    columns = [_column(field, hints[field]) for field in required(record) if field not in without]
    once: dict[str, Any] = {'sqlite_autoincrement': True} if shown else {}
    return sa.Table(name, metadata, *columns, *others, **once)


def _column(name: str, hint: Any) -> sa.Column[Any]:
    nullable = NoneType in get_args(hint)
    kind: Any = next(part for part in get_args(hint) if part is not NoneType) if nullable else hint
    kind, *facts = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    of_type = next((fact for fact in facts if isinstance(fact, sa.types.TypeEngine)), None)
    references = [fact for fact in facts if isinstance(fact, sa.ForeignKey)]
    marks: dict[str, Any] = {fact.value: True for fact in facts if isinstance(fact, Mark)}
    return sa.Column(name, of_type or TYPES[get_origin(kind) or kind], *references, nullable=nullable, **marks)
