"""Deleted servers are archived."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import LongText, Text, Timestamp

revision = '0016'
down_revision = '0015'


def upgrade() -> None:
    op.create_table(
        'archived_servers',
        sa.Column('uuid', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('deleted_at', Timestamp(), nullable=False),
        sa.Column('archived_at', Timestamp(), nullable=False),
        sa.Column('contents', LongText(), nullable=False),
        sa.PrimaryKeyConstraint('uuid', name='pk_archived_servers'),
    )
    with op.batch_alter_table('archived_servers', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_archived_servers_deleted_at'), ['deleted_at'])
