"""${message}."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import BigInteger, LongText, Text, Timestamp

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    ${upgrades}
