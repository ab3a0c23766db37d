"""Use of hosts is counted."""

import sqlalchemy as sa
from alembic import op

revision = '0023'
down_revision = '0022'

HELD = 'SELECT COALESCE(SUM({}), 0) FROM allocations WHERE allocations.host = hypervisors.host'


def upgrade() -> None:
    with op.batch_alter_table('hypervisors', schema=None) as batch_op:
        batch_op.add_column(sa.Column('used_vcpus', sa.Integer(), server_default='0', nullable=False))
        batch_op.add_column(sa.Column('used_memory_mb', sa.BigInteger(), server_default='0', nullable=False))
        batch_op.add_column(sa.Column('used_disk_gb', sa.BigInteger(), server_default='0', nullable=False))
    counts = ', '.join(f'used_{name} = ({HELD.format(name)})' for name in ('vcpus', 'memory_mb', 'disk_gb'))
    op.execute(f'UPDATE hypervisors SET {counts}')
