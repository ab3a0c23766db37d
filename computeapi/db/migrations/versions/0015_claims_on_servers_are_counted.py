"""Claims on servers are counted."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text

revision = '0015'
down_revision = '0014'


def upgrade() -> None:
    op.create_table(
        'fences',
        sa.Column('server_id', Text(64), nullable=False),
        sa.Column('token', sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint('server_id', name='pk_fences'),
    )
    with op.batch_alter_table('servers', schema=None) as batch_op:
        batch_op.add_column(sa.Column('claims', sa.Integer(), server_default='0', nullable=False))
