"""Subnet pools, sharing and revisions of networks."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Text, Timestamp

revision = '0010'
down_revision = '0009'


def upgrade() -> None:
    op.create_table(
        'address_scopes',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', Text(255), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.Column('revision_number', sa.Integer(), server_default='1', nullable=False),
        sa.Column('ip_version', sa.Integer(), nullable=False),
        sa.Column('shared', sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_address_scopes'),
    )
    with op.batch_alter_table('address_scopes', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_address_scopes_project_id'), ['project_id'])

    op.create_table(
        'network_flavors',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', Text(255), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.Column('revision_number', sa.Integer(), server_default='1', nullable=False),
        sa.Column('service_type', Text(255), nullable=False),
        sa.Column('enabled', sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_network_flavors'),
    )
    with op.batch_alter_table('network_flavors', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_network_flavors_project_id'), ['project_id'])

    op.create_table(
        'network_service_profiles',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', Text(255), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.Column('revision_number', sa.Integer(), server_default='1', nullable=False),
        sa.Column('driver', Text(1024), nullable=False),
        sa.Column('metainfo', Text(4096), nullable=False),
        sa.Column('enabled', sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_network_service_profiles'),
    )
    with op.batch_alter_table('network_service_profiles', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_network_service_profiles_project_id'), ['project_id'])

    op.create_table(
        'rbac_policies',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', Text(255), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.Column('revision_number', sa.Integer(), server_default='1', nullable=False),
        sa.Column('object_type', Text(32), nullable=False),
        sa.Column('object_id', Text(64), nullable=False),
        sa.Column('action', Text(32), nullable=False),
        sa.Column('target_project', Text(255), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_rbac_policies'),
        sa.UniqueConstraint(
            'object_id', 'action', 'target_project', name='uq_rbac_policies_object_id_action_target_project'
        ),
    )
    with op.batch_alter_table('rbac_policies', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_rbac_policies_object_id'), ['object_id'])
        batch_op.create_index(batch_op.f('ix_rbac_policies_project_id'), ['project_id'])

    op.create_table(
        'network_flavor_profiles',
        sa.Column('flavor_id', Text(64), nullable=False),
        sa.Column('service_profile_id', Text(64), nullable=False),
        sa.ForeignKeyConstraint(
            ['flavor_id'], ['network_flavors.id'], name='fk_network_flavor_profiles_flavor_id', ondelete='CASCADE'
        ),
        sa.ForeignKeyConstraint(
            ['service_profile_id'],
            ['network_service_profiles.id'],
            name='fk_network_flavor_profiles_service_profile_id',
        ),
        sa.PrimaryKeyConstraint('flavor_id', 'service_profile_id', name='pk_network_flavor_profiles'),
    )
    with op.batch_alter_table('network_flavor_profiles', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_network_flavor_profiles_service_profile_id'), ['service_profile_id'])

    op.create_table(
        'subnet_pools',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', Text(255), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.Column('revision_number', sa.Integer(), server_default='1', nullable=False),
        sa.Column('ip_version', sa.Integer(), nullable=False),
        sa.Column('prefixes', sa.JSON(), nullable=False),
        sa.Column('default_prefixlen', sa.Integer(), nullable=False),
        sa.Column('min_prefixlen', sa.Integer(), nullable=False),
        sa.Column('max_prefixlen', sa.Integer(), nullable=False),
        sa.Column('default_quota', sa.Integer()),
        sa.Column('shared', sa.Boolean(), nullable=False),
        sa.Column('is_default', sa.Boolean(), nullable=False),
        sa.Column('address_scope_id', Text(64)),
        sa.ForeignKeyConstraint(['address_scope_id'], ['address_scopes.id'], name='fk_subnet_pools_address_scope_id'),
        sa.PrimaryKeyConstraint('id', name='pk_subnet_pools'),
    )
    with op.batch_alter_table('subnet_pools', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_subnet_pools_address_scope_id'), ['address_scope_id'])
        batch_op.create_index(batch_op.f('ix_subnet_pools_project_id'), ['project_id'])

    with op.batch_alter_table('floating_ips', schema=None) as batch_op:
        batch_op.add_column(sa.Column('revision_number', sa.Integer(), server_default='1', nullable=False))

    with op.batch_alter_table('networks', schema=None) as batch_op:
        batch_op.add_column(sa.Column('revision_number', sa.Integer(), server_default='1', nullable=False))
        batch_op.add_column(sa.Column('network_type', Text(32), server_default='local', nullable=False))
        batch_op.add_column(sa.Column('physical_network', Text(64)))
        batch_op.add_column(sa.Column('segmentation_id', sa.Integer()))

    with op.batch_alter_table('ports', schema=None) as batch_op:
        batch_op.add_column(sa.Column('revision_number', sa.Integer(), server_default='1', nullable=False))

    with op.batch_alter_table('qos_policies', schema=None) as batch_op:
        batch_op.add_column(sa.Column('revision_number', sa.Integer(), server_default='1', nullable=False))

    with op.batch_alter_table('qos_rules', schema=None) as batch_op:
        batch_op.add_column(sa.Column('revision_number', sa.Integer(), server_default='1', nullable=False))

    with op.batch_alter_table('routers', schema=None) as batch_op:
        batch_op.add_column(sa.Column('revision_number', sa.Integer(), server_default='1', nullable=False))

    with op.batch_alter_table('security_group_rules', schema=None) as batch_op:
        batch_op.add_column(sa.Column('revision_number', sa.Integer(), server_default='1', nullable=False))

    with op.batch_alter_table('security_groups', schema=None) as batch_op:
        batch_op.add_column(sa.Column('revision_number', sa.Integer(), server_default='1', nullable=False))

    with op.batch_alter_table('subnets', schema=None) as batch_op:
        batch_op.add_column(sa.Column('revision_number', sa.Integer(), server_default='1', nullable=False))
        batch_op.add_column(sa.Column('subnetpool_id', Text(64)))
        batch_op.create_index(batch_op.f('ix_subnets_subnetpool_id'), ['subnetpool_id'])
        batch_op.create_foreign_key(batch_op.f('fk_subnets_subnetpool_id'), 'subnet_pools', ['subnetpool_id'], ['id'])
