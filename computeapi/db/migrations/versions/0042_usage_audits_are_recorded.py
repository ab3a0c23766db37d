"""Usage audits are recorded."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import BigInteger, Timestamp

revision = '0042'
down_revision = '0041'


def upgrade() -> None:
    op.create_table(
        'usage_audits',
        sa.Column('id', BigInteger, nullable=False),
        sa.Column('begins_at', Timestamp(), nullable=False),
        sa.Column('ends_at', Timestamp(), nullable=False),
        sa.Column('last_id', BigInteger, nullable=False),
        sa.Column('counts', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('started_at', Timestamp(), nullable=False),
        sa.Column('ended_at', Timestamp()),
        sa.PrimaryKeyConstraint('id', name='pk_usage_audits'),
        sa.UniqueConstraint('begins_at', 'ends_at', name='uq_usage_audits_begins_at_ends_at'),
    )
    with op.batch_alter_table('usage_audits', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_usage_audits_ends_at'), ['ends_at'])
