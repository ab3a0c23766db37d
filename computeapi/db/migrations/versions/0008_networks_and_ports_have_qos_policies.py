"""Networks and ports have qos policies."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text, Timestamp

revision = '0008'
down_revision = '0007'


def upgrade() -> None:
    op.create_table(
        'qos_policies',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', Text(255), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.Column('shared', sa.Boolean(), nullable=False),
        sa.Column('is_default', sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_qos_policies'),
    )
    with op.batch_alter_table('qos_policies', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_qos_policies_project_id'), ['project_id'])

    op.create_table(
        'qos_rules',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.Column('qos_policy_id', Text(64), nullable=False),
        sa.Column('type', Text(32), nullable=False),
        sa.Column('direction', Text(16), nullable=False),
        sa.Column('min_kbps', sa.Integer()),
        sa.Column('min_kpps', sa.Integer()),
        sa.Column('max_kbps', sa.Integer()),
        sa.Column('max_burst_kbps', sa.Integer()),
        sa.Column('dscp_mark', sa.Integer()),
        sa.ForeignKeyConstraint(
            ['qos_policy_id'], ['qos_policies.id'], name='fk_qos_rules_qos_policy_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('id', name='pk_qos_rules'),
        sa.UniqueConstraint('qos_policy_id', 'type', 'direction', name='uq_qos_rules_qos_policy_id_type_direction'),
    )
    with op.batch_alter_table('qos_rules', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_qos_rules_project_id'), ['project_id'])
        batch_op.create_index(batch_op.f('ix_qos_rules_qos_policy_id'), ['qos_policy_id'])

    with op.batch_alter_table('networks', schema=None) as batch_op:
        batch_op.add_column(sa.Column('qos_policy_id', Text(64)))
        batch_op.create_index(batch_op.f('ix_networks_qos_policy_id'), ['qos_policy_id'])

    with op.batch_alter_table('ports', schema=None) as batch_op:
        batch_op.add_column(sa.Column('qos_policy_id', Text(64)))
        batch_op.create_index(batch_op.f('ix_ports_qos_policy_id'), ['qos_policy_id'])
