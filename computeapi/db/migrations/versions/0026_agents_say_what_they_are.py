"""Agents say what they are."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text, Timestamp

revision = '0026'
down_revision = '0025'


def upgrade() -> None:
    op.create_table(
        'agents',
        sa.Column('host', Text(255), nullable=False),
        sa.Column('id', Text(64), nullable=False),
        sa.Column('release', Text(64), nullable=False),
        sa.Column('pid', sa.Integer(), nullable=False),
        sa.Column('machine', Text(255), nullable=False),
        sa.Column('capabilities', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('connector', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('started_at', Timestamp(), nullable=False),
        sa.Column('seen_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('host', name='pk_agents'),
    )
