"""Projects have default types of volumes."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text

revision = '0037'
down_revision = '0036'


def upgrade() -> None:
    op.create_table(
        'volume_default_types',
        sa.Column('project_id', Text(64), nullable=False),
        sa.Column('type_id', Text(64), nullable=False),
        sa.ForeignKeyConstraint(['type_id'], ['volume_types.id'], name='fk_volume_default_types_type_id'),
        sa.PrimaryKeyConstraint('project_id', name='pk_volume_default_types'),
    )
    op.create_index('ix_volume_default_types_type_id', 'volume_default_types', ['type_id'])
