"""Use of quotas is counted."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text

revision = '0022'
down_revision = '0021'

COUNTING = "FROM servers WHERE deleted_at IS NULL AND vm_state <> 'soft-delete'"
BY_OWNER = 'GROUP BY project_id, user_id'
FILL = (
    f"project_id, user_id, 'instances', COUNT(*) {COUNTING} {BY_OWNER}",
    f"project_id, user_id, 'cores', SUM(vcpus) {COUNTING} {BY_OWNER}",
    f"project_id, user_id, 'ram', SUM(memory_mb) {COUNTING} {BY_OWNER}",
    f"server_group_id, user_id, 'server_group_members', COUNT(*) {COUNTING} AND server_group_id IS NOT NULL "
    'GROUP BY server_group_id, user_id',
    f"project_id, user_id, 'server_groups', COUNT(*) FROM server_groups {BY_OWNER}",
    "'', user_id, 'key_pairs', COUNT(*) FROM keypairs GROUP BY user_id",
)


def upgrade() -> None:
    op.create_table(
        'quota_usages',
        sa.Column('holder_id', Text(255), nullable=False),
        sa.Column('user_id', Text(255), nullable=False),
        sa.Column('resource', Text(64), nullable=False),
        sa.Column('amount', sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint('holder_id', 'user_id', 'resource', name='pk_quota_usages'),
    )
    for rows in FILL:
        op.execute(f'INSERT INTO quota_usages (holder_id, user_id, resource, amount) SELECT {rows}')
