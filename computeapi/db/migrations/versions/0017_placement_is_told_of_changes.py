"""Placement is told of changes."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text, Timestamp

revision = '0017'
down_revision = '0016'


def upgrade() -> None:
    op.create_table(
        'placement_changes',
        sa.Column('kind', Text(16), nullable=False),
        sa.Column('id', Text(64), nullable=False),
        sa.Column('change_id', Text(64)),
        sa.Column('move_id', Text(64)),
        sa.Column('attempts', sa.Integer(), nullable=False),
        sa.Column('due_at', Timestamp()),
        sa.PrimaryKeyConstraint('kind', 'id', name='pk_placement_changes'),
    )
