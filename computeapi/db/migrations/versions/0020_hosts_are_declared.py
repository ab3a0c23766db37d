"""Hosts are declared."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import BigInteger, Text

revision = '0020'
down_revision = '0019'


def upgrade() -> None:
    op.create_table(
        'declared_hosts',
        sa.Column('id', BigInteger, nullable=False),
        sa.Column('host', Text(255), nullable=False),
        sa.Column('cell', Text(255), nullable=False),
        sa.Column('hypervisor_hostname', Text(255), nullable=False),
        sa.Column('hypervisor_type', Text(64), nullable=False),
        sa.Column('hypervisor_version', sa.Integer(), nullable=False),
        sa.Column('host_ip', Text(64), nullable=False),
        sa.Column('cpu_info', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('vcpus', sa.Integer(), nullable=False),
        sa.Column('memory_mb', sa.BigInteger(), nullable=False),
        sa.Column('local_gb', sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_declared_hosts'),
        sa.UniqueConstraint('host', name='uq_declared_hosts_host'),
    )
