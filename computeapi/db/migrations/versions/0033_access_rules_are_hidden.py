"""Access rules are hidden."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text

revision = '0033'
down_revision = '0032'


def upgrade() -> None:
    with op.batch_alter_table('share_access_rules', schema=None) as batch_op:
        batch_op.add_column(sa.Column('hidden', sa.Boolean(), server_default=sa.false(), nullable=False))
        batch_op.add_column(sa.Column('locked_by', Text(64)))

    # Most of those that are locked are for the hosts of servers.
    rules = sa.table('share_access_rules', sa.column('locked', sa.Boolean()), sa.column('hidden', sa.Boolean()))
    op.execute(rules.update().values(hidden=rules.c.locked))
