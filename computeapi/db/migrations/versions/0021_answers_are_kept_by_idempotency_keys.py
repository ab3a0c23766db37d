"""Answers are kept by idempotency keys."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import LongText, Text, Timestamp

revision = '0021'
down_revision = '0020'


def upgrade() -> None:
    op.create_table(
        'idempotency_keys',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('user_id', Text(255), nullable=False),
        sa.Column('fingerprint', Text(64), nullable=False),
        sa.Column('holder', Text(64), nullable=False),
        sa.Column('changed', sa.Boolean(), nullable=False),
        sa.Column('lease_until', Timestamp(), nullable=False),
        sa.Column('expires_at', Timestamp(), nullable=False),
        sa.Column('answer', LongText()),
        sa.PrimaryKeyConstraint('id', name='pk_idempotency_keys'),
    )
    with op.batch_alter_table('idempotency_keys', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_idempotency_keys_expires_at'), ['expires_at'])
        batch_op.create_index(batch_op.f('ix_idempotency_keys_user_id_expires_at'), ['user_id', 'expires_at'])
