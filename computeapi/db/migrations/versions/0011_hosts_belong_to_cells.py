"""Hosts belong to cells."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import BigInteger, Text

revision = '0011'
down_revision = '0010'


def upgrade() -> None:
    op.create_table(
        'cells',
        sa.Column('id', BigInteger, nullable=False),
        sa.Column('uuid', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('down', sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_cells'),
        sa.UniqueConstraint('name', name='uq_cells_name'),
        sa.UniqueConstraint('uuid', name='uq_cells_uuid'),
    )
    with op.batch_alter_table('hypervisors', schema=None) as batch_op:
        batch_op.add_column(sa.Column('cell', Text(255)))
