"""Backups have the metadata of their volumes."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import LongText, Text

revision = '0035'
down_revision = '0034'


def upgrade() -> None:
    op.create_table(
        'volume_backup_volume_metadata',
        sa.Column('owner_id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('value', LongText(), nullable=False),
        sa.ForeignKeyConstraint(
            ['owner_id'], ['volume_backups.id'], name='fk_volume_backup_volume_metadata_owner_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('owner_id', 'name', name='pk_volume_backup_volume_metadata'),
    )
