"""Live migrations know what is plugged."""

import sqlalchemy as sa
from alembic import op

revision = '0019'
down_revision = '0018'


def upgrade() -> None:
    with op.batch_alter_table('migrations', schema=None) as batch_op:
        batch_op.add_column(sa.Column('plugged', sa.JSON(none_as_null=True)))
