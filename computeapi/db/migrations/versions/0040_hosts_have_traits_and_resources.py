"""Hosts have traits and resources that flavors and images require."""

import sqlalchemy as sa
from alembic import op

revision = '0040'
down_revision = '0039'


def upgrade() -> None:
    for table in ('hypervisors', 'declared_hosts'):
        op.add_column(table, sa.Column('traits', sa.JSON(none_as_null=True)))
        op.add_column(table, sa.Column('resources', sa.JSON(none_as_null=True)))
    op.add_column('allocations', sa.Column('flavors', sa.JSON(none_as_null=True)))
