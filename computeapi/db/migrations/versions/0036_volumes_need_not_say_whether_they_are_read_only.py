"""Volumes show whether they are read-only once somebody has said so."""

import sqlalchemy as sa
from alembic import op

revision = '0036'
down_revision = '0035'


def upgrade() -> None:
    with op.batch_alter_table('volumes', schema=None) as batch_op:
        batch_op.alter_column('readonly', existing_type=sa.Boolean(), nullable=True)
    volumes = sa.table('volumes', sa.column('readonly', sa.Boolean()))
    op.execute(volumes.update().where(sa.not_(volumes.c.readonly)).values(readonly=None))
