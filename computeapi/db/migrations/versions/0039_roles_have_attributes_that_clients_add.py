"""Roles have attributes that clients add."""

import sqlalchemy as sa
from alembic import op

revision = '0039'
down_revision = '0038'

EXTRA = sa.JSON(none_as_null=True)


def upgrade() -> None:
    op.add_column('identity_roles', sa.Column('extra', EXTRA))
    op.execute(sa.table('identity_roles', sa.column('extra', EXTRA)).update().values(extra={}))
    with op.batch_alter_table('identity_roles', schema=None) as batch_op:
        batch_op.alter_column('extra', existing_type=EXTRA, nullable=False)
