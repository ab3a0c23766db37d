"""Access rules have metadata."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import LongText, Text

revision = '0034'
down_revision = '0033'


def upgrade() -> None:
    op.create_table(
        'share_access_metadata',
        sa.Column('owner_id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('value', LongText(), nullable=False),
        sa.ForeignKeyConstraint(
            ['owner_id'], ['share_access_rules.id'], name='fk_share_access_metadata_owner_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('owner_id', 'name', name='pk_share_access_metadata'),
    )
