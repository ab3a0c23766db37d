"""Notifications wait to be sent."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import BigInteger, Id, Text, Timestamp

revision = '0041'
down_revision = '0040'


def upgrade() -> None:
    op.create_table(
        'notifications',
        sa.Column('id', BigInteger, nullable=False),
        sa.Column('message_id', Id(), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('format', Text(16), nullable=False),
        sa.Column('priority', Text(16), nullable=False),
        sa.Column('publisher_id', Text(255), nullable=False),
        sa.Column('event_type', Text(255), nullable=False),
        sa.Column('context', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('payload', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('lease_until', Timestamp(), nullable=True),
        sa.PrimaryKeyConstraint('id', name='pk_notifications'),
        sqlite_autoincrement=True,
    )
    op.create_index('ix_notifications_lease_until', 'notifications', ['lease_until'])
