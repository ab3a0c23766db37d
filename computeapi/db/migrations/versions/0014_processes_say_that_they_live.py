"""Processes say that they live."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text, Timestamp

revision = '0014'
down_revision = '0013'


def upgrade() -> None:
    op.create_table(
        'processes',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('binary', Text(64), nullable=False),
        sa.Column('host', Text(255), nullable=False),
        sa.Column('pid', sa.Integer(), nullable=False),
        sa.Column('workers', sa.Integer(), nullable=False),
        sa.Column('started_at', Timestamp(), nullable=False),
        sa.Column('seen_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_processes'),
    )
