"""Tokens of consoles have a kind."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text

revision = '0006'
down_revision = '0005'


def upgrade() -> None:
    # They are valid for minutes, and clients can ask for others.
    op.execute(sa.delete(sa.table('console_tokens')))
    with op.batch_alter_table('console_tokens', schema=None) as batch_op:
        batch_op.add_column(sa.Column('kind', Text(255), nullable=False))
