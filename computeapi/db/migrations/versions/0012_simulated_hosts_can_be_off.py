"""Simulated hosts can be off."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text, Timestamp

revision = '0012'
down_revision = '0011'


def upgrade() -> None:
    op.create_table(
        'hosts_off',
        sa.Column('host', Text(255), nullable=False),
        sa.Column('since', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('host', name='pk_hosts_off'),
    )
