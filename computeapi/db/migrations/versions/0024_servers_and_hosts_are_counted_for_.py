"""Servers and hosts are counted for operators."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text, Timestamp

revision = '0024'
down_revision = '0023'


def upgrade() -> None:
    op.create_table(
        'counts',
        sa.Column('name', Text(64), nullable=False),
        sa.Column('contents', sa.JSON(none_as_null=True)),
        sa.Column('counted_at', Timestamp()),
        sa.Column('due_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('name', name='pk_counts'),
    )
    with op.batch_alter_table('servers', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_servers_deleted_at_vm_state'), ['deleted_at', 'vm_state'])
