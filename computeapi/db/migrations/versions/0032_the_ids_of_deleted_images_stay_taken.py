"""The ids of deleted images stay taken."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text

revision = '0032'
down_revision = '0031'


def upgrade() -> None:
    op.create_table(
        'deleted_images',
        sa.Column('id', Text(64), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_deleted_images'),
    )
