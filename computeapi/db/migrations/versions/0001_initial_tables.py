"""Initial tables."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import BigInteger, LongText, Text, Timestamp

revision = '0001'
down_revision = None


def upgrade() -> None:
    op.create_table(
        'aggregates',
        sa.Column('id', BigInteger, autoincrement=True, nullable=False),
        sa.Column('uuid', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('metadata', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp()),
        sa.PrimaryKeyConstraint('id', name='pk_aggregates'),
        sa.UniqueConstraint('name', name='uq_aggregates_name'),
        sa.UniqueConstraint('uuid', name='uq_aggregates_uuid'),
    )
    op.create_table(
        'allocations',
        sa.Column('server_id', Text(64), nullable=False),
        sa.Column('host', Text(255), nullable=False),
        sa.Column('vcpus', sa.Integer(), nullable=False),
        sa.Column('memory_mb', sa.BigInteger(), nullable=False),
        sa.Column('disk_gb', sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint('server_id', 'host', name='pk_allocations'),
    )
    op.create_index('ix_allocations_host', 'allocations', ['host'])
    op.create_table(
        'block_devices',
        sa.Column('id', BigInteger, autoincrement=True, nullable=False),
        sa.Column('uuid', Text(64), nullable=False),
        sa.Column('server_id', Text(64), nullable=False),
        sa.Column('source_type', Text(16), nullable=False),
        sa.Column('destination_type', Text(16), nullable=False),
        sa.Column('boot_index', sa.Integer()),
        sa.Column('device_name', Text(255)),
        sa.Column('device_type', Text(255)),
        sa.Column('disk_bus', Text(255)),
        sa.Column('guest_format', Text(255)),
        sa.Column('volume_size', sa.Integer()),
        sa.Column('volume_type', Text(255)),
        sa.Column('image_id', Text(64)),
        sa.Column('snapshot_id', Text(64)),
        sa.Column('volume_id', Text(64)),
        sa.Column('attachment_id', Text(64)),
        sa.Column('delete_on_termination', sa.Boolean(), nullable=False),
        sa.Column('tag', Text(60)),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_block_devices'),
        sa.UniqueConstraint('uuid', name='uq_block_devices_uuid'),
    )
    op.create_index('ix_block_devices_server_id', 'block_devices', ['server_id'])
    op.create_index('ix_block_devices_volume_id', 'block_devices', ['volume_id'])
    op.create_table(
        'console_tokens',
        sa.Column('hash', Text(64), nullable=False),
        sa.Column('server_id', Text(64), nullable=False),
        sa.Column('host', Text(255), nullable=False),
        sa.Column('address', Text(255), nullable=False),
        sa.Column('port', sa.Integer(), nullable=False),
        sa.Column('tls_port', sa.Integer()),
        sa.Column('internal_access_path', Text(255)),
        sa.Column('expires_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('hash', name='pk_console_tokens'),
    )
    op.create_index('ix_console_tokens_server_id', 'console_tokens', ['server_id'])
    op.create_table(
        'domains',
        sa.Column('server_id', Text(64), nullable=False),
        sa.Column('host', Text(255), nullable=False),
        sa.Column('power_state', sa.Integer(), nullable=False),
        sa.Column('console_log', LongText(), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('server_id', 'host', name='pk_domains'),
    )
    op.create_table(
        'flavors',
        sa.Column('id', BigInteger, autoincrement=True, nullable=False),
        sa.Column('flavorid', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', LongText()),
        sa.Column('memory_mb', sa.BigInteger(), nullable=False),
        sa.Column('vcpus', sa.Integer(), nullable=False),
        sa.Column('root_gb', sa.BigInteger(), nullable=False),
        sa.Column('ephemeral_gb', sa.BigInteger(), nullable=False),
        sa.Column('swap', sa.BigInteger(), nullable=False),
        sa.Column('rxtx_factor', sa.Double(), nullable=False),
        sa.Column('disabled', sa.Boolean(), nullable=False),
        sa.Column('is_public', sa.Boolean(), nullable=False),
        sa.Column('extra_specs', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp()),
        sa.PrimaryKeyConstraint('id', name='pk_flavors'),
        sa.UniqueConstraint('flavorid', name='uq_flavors_flavorid'),
        sa.UniqueConstraint('name', name='uq_flavors_name'),
    )
    op.create_table(
        'hypervisors',
        sa.Column('id', BigInteger, autoincrement=True, nullable=False),
        sa.Column('uuid', Text(64), nullable=False),
        sa.Column('host', Text(255), nullable=False),
        sa.Column('hypervisor_hostname', Text(255), nullable=False),
        sa.Column('hypervisor_type', Text(64), nullable=False),
        sa.Column('hypervisor_version', sa.Integer(), nullable=False),
        sa.Column('host_ip', Text(64), nullable=False),
        sa.Column('cpu_info', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('vcpus', sa.Integer(), nullable=False),
        sa.Column('memory_mb', sa.BigInteger(), nullable=False),
        sa.Column('local_gb', sa.BigInteger(), nullable=False),
        sa.Column('started_at', Timestamp(), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp()),
        sa.PrimaryKeyConstraint('id', name='pk_hypervisors'),
        sa.UniqueConstraint('hypervisor_hostname', name='uq_hypervisors_hypervisor_hostname'),
        sa.UniqueConstraint('uuid', name='uq_hypervisors_uuid'),
    )
    op.create_index('ix_hypervisors_host', 'hypervisors', ['host'])
    op.create_table(
        'identity_domains',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('name', Text(64), nullable=False),
        sa.Column('description', LongText(), nullable=False),
        sa.Column('enabled', sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_identity_domains'),
        sa.UniqueConstraint('name', name='uq_identity_domains_name'),
    )
    op.create_table(
        'identity_roles',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', LongText(), nullable=False),
        sa.Column('immutable', sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_identity_roles'),
        sa.UniqueConstraint('name', name='uq_identity_roles_name'),
    )
    op.create_table(
        'images',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('owner', Text(64)),
        sa.Column('name', Text(255)),
        sa.Column('status', Text(32), nullable=False),
        sa.Column('visibility', Text(16), nullable=False),
        sa.Column('size', BigInteger),
        sa.Column('virtual_size', BigInteger),
        sa.Column('min_disk', sa.Integer(), nullable=False),
        sa.Column('min_ram', sa.Integer(), nullable=False),
        sa.Column('disk_format', Text(32)),
        sa.Column('container_format', Text(32)),
        sa.Column('checksum', Text(32)),
        sa.Column('hash_value', Text(128)),
        sa.Column('protected', sa.Boolean(), nullable=False),
        sa.Column('hidden', sa.Boolean(), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_images'),
    )
    op.create_index('ix_images_created_at', 'images', ['created_at'])
    op.create_index('ix_images_name', 'images', ['name'])
    op.create_index('ix_images_owner', 'images', ['owner'])
    op.create_table(
        'keypairs',
        sa.Column('id', BigInteger, autoincrement=True, nullable=False),
        sa.Column('user_id', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('type', Text(16), nullable=False),
        sa.Column('fingerprint', Text(255), nullable=False),
        sa.Column('public_key', LongText(), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_keypairs'),
        sa.UniqueConstraint('user_id', 'name', name='uq_keypairs_user_id_name'),
    )
    op.create_table(
        'migrations',
        sa.Column('id', BigInteger, autoincrement=True, nullable=False),
        sa.Column('uuid', Text(64), nullable=False),
        sa.Column('server_id', Text(64), nullable=False),
        sa.Column('migration_type', Text(32), nullable=False),
        sa.Column('status', Text(64), nullable=False),
        sa.Column('source_host', Text(255)),
        sa.Column('source_node', Text(255)),
        sa.Column('dest_host', Text(255)),
        sa.Column('dest_node', Text(255)),
        sa.Column('dest_ip', Text(64)),
        sa.Column('old_flavor', sa.JSON(none_as_null=True)),
        sa.Column('new_flavor', sa.JSON(none_as_null=True)),
        sa.Column('old_vm_state', Text(64)),
        sa.Column('user_id', Text(255)),
        sa.Column('project_id', Text(255)),
        sa.Column('progress', sa.JSON(none_as_null=True)),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp()),
        sa.PrimaryKeyConstraint('id', name='pk_migrations'),
        sa.UniqueConstraint('uuid', name='uq_migrations_uuid'),
    )
    op.create_index('ix_migrations_server_id', 'migrations', ['server_id'])
    op.create_table(
        'network_notices',
        sa.Column('notice_id', Text(64), nullable=False),
        sa.Column('server_id', Text(255), nullable=False),
        sa.PrimaryKeyConstraint('notice_id', 'server_id', name='pk_network_notices'),
    )
    op.create_table(
        'network_quota_locks',
        sa.Column('project_id', Text(255), nullable=False),
        sa.PrimaryKeyConstraint('project_id', name='pk_network_quota_locks'),
    )
    op.create_table(
        'network_quotas',
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('resource', Text(64), nullable=False),
        sa.Column('limit', sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint('project_id', 'resource', name='pk_network_quotas'),
    )
    op.create_table(
        'network_tags',
        sa.Column('resource_id', Text(64), nullable=False),
        sa.Column('tag', Text(255), nullable=False),
        sa.PrimaryKeyConstraint('resource_id', 'tag', name='pk_network_tags'),
    )
    op.create_table(
        'networks',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', Text(255), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.Column('admin_state_up', sa.Boolean(), nullable=False),
        sa.Column('shared', sa.Boolean(), nullable=False),
        sa.Column('external', sa.Boolean(), nullable=False),
        sa.Column('is_default', sa.Boolean(), nullable=False),
        sa.Column('auto_allocated', sa.Boolean(), nullable=False),
        sa.Column('port_security_enabled', sa.Boolean(), nullable=False),
        sa.Column('mtu', sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_networks'),
    )
    op.create_index('ix_networks_project_id', 'networks', ['project_id'])
    op.create_table(
        'quota_classes',
        sa.Column('class_name', Text(255), nullable=False),
        sa.Column('resource', Text(64), nullable=False),
        sa.Column('hard_limit', sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint('class_name', 'resource', name='pk_quota_classes'),
    )
    op.create_table(
        'quota_locks',
        sa.Column('project_id', Text(255), nullable=False),
        sa.PrimaryKeyConstraint('project_id', name='pk_quota_locks'),
    )
    op.create_table(
        'quotas',
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('user_id', Text(255), server_default='', nullable=False),
        sa.Column('resource', Text(64), nullable=False),
        sa.Column('hard_limit', sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint('project_id', 'user_id', 'resource', name='pk_quotas'),
    )
    op.create_table(
        'routers',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', Text(255), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.Column('admin_state_up', sa.Boolean(), nullable=False),
        sa.Column('enable_snat', sa.Boolean(), nullable=False),
        sa.Column('routes', sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_routers'),
    )
    op.create_index('ix_routers_project_id', 'routers', ['project_id'])
    op.create_table(
        'security_groups',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', Text(255), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.Column('stateful', sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_security_groups'),
    )
    op.create_index('ix_security_groups_project_id', 'security_groups', ['project_id'])
    op.create_table(
        'server_actions',
        sa.Column('id', BigInteger, autoincrement=True, nullable=False),
        sa.Column('server_id', Text(64), nullable=False),
        sa.Column('action', Text(255), nullable=False),
        sa.Column('request_id', Text(64), nullable=False),
        sa.Column('user_id', Text(255)),
        sa.Column('project_id', Text(255)),
        sa.Column('start_time', Timestamp(), nullable=False),
        sa.Column('finish_time', Timestamp()),
        sa.Column('updated_at', Timestamp()),
        sa.Column('message', Text(255)),
        sa.PrimaryKeyConstraint('id', name='pk_server_actions'),
        sa.UniqueConstraint('server_id', 'request_id', name='uq_server_actions_server_id_request_id'),
    )
    op.create_table(
        'server_groups',
        sa.Column('id', BigInteger, autoincrement=True, nullable=False),
        sa.Column('uuid', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('user_id', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('policy', Text(64), nullable=False),
        sa.Column('rules', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_server_groups'),
        sa.UniqueConstraint('uuid', name='uq_server_groups_uuid'),
    )
    op.create_index('ix_server_groups_project_id', 'server_groups', ['project_id'])
    op.create_table(
        'server_tags',
        sa.Column('server_id', Text(64), nullable=False),
        sa.Column('tag', Text(80), nullable=False),
        sa.PrimaryKeyConstraint('server_id', 'tag', name='pk_server_tags'),
    )
    op.create_table(
        'servers',
        sa.Column('id', BigInteger, autoincrement=True, nullable=False),
        sa.Column('uuid', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('user_id', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', LongText()),
        sa.Column('hostname', Text(255), nullable=False),
        sa.Column('vm_state', Text(64), nullable=False),
        sa.Column('task_state', Text(64)),
        sa.Column('power_state', sa.Integer(), nullable=False),
        sa.Column('progress', sa.Integer(), nullable=False),
        sa.Column('locked_by', Text(16)),
        sa.Column('locked_reason', Text(255)),
        sa.Column('fault', sa.JSON(none_as_null=True)),
        sa.Column('host', Text(255)),
        sa.Column('node', Text(255)),
        sa.Column('availability_zone', Text(255)),
        sa.Column('pinned_availability_zone', Text(255)),
        sa.Column('scheduler_hints', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('server_group_id', Text(64)),
        sa.Column('flavor', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('vcpus', sa.Integer(), nullable=False),
        sa.Column('memory_mb', sa.BigInteger(), nullable=False),
        sa.Column('root_gb', sa.BigInteger(), nullable=False),
        sa.Column('ephemeral_gb', sa.BigInteger(), nullable=False),
        sa.Column('image_id', Text(64)),
        sa.Column('image_properties', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('shelved_image_id', Text(64)),
        sa.Column('kernel_id', Text(255)),
        sa.Column('ramdisk_id', Text(255)),
        sa.Column('root_device_name', Text(255)),
        sa.Column('config_drive', Text(16), nullable=False),
        sa.Column('disk_config', Text(8), nullable=False),
        sa.Column('key_name', Text(255)),
        sa.Column('public_key', LongText()),
        sa.Column('user_data', LongText()),
        sa.Column('personality', sa.JSON(none_as_null=True)),
        sa.Column('metadata', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('trusted_image_certificates', sa.JSON(none_as_null=True)),
        sa.Column('password', LongText()),
        sa.Column('network_info', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('access_ip_v4', Text(64)),
        sa.Column('access_ip_v6', Text(64)),
        sa.Column('reservation_id', Text(64), nullable=False),
        sa.Column('launch_index', sa.Integer(), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp()),
        sa.Column('launched_at', Timestamp()),
        sa.Column('terminated_at', Timestamp()),
        sa.Column('deleted_at', Timestamp()),
        sa.PrimaryKeyConstraint('id', name='pk_servers'),
        sa.UniqueConstraint('uuid', name='uq_servers_uuid'),
    )
    op.create_index('ix_servers_deleted_at_created_at_id', 'servers', ['deleted_at', 'created_at', 'id'])
    op.create_index('ix_servers_host_deleted_at', 'servers', ['host', 'deleted_at'])
    op.create_index(
        'ix_servers_project_id_deleted_at_created_at_id', 'servers', ['project_id', 'deleted_at', 'created_at', 'id']
    )
    op.create_index('ix_servers_reservation_id', 'servers', ['reservation_id'])
    op.create_index('ix_servers_server_group_id', 'servers', ['server_group_id'])
    op.create_table(
        'services',
        sa.Column('id', BigInteger, autoincrement=True, nullable=False),
        sa.Column('uuid', Text(64), nullable=False),
        sa.Column('host', Text(255), nullable=False),
        sa.Column('binary', Text(64), nullable=False),
        sa.Column('disabled', sa.Boolean(), nullable=False),
        sa.Column('disabled_reason', Text(255)),
        sa.Column('forced_down', sa.Boolean(), nullable=False),
        sa.Column('seen_at', Timestamp()),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp()),
        sa.PrimaryKeyConstraint('id', name='pk_services'),
        sa.UniqueConstraint('host', 'binary', name='uq_services_host_binary'),
        sa.UniqueConstraint('uuid', name='uq_services_uuid'),
    )
    op.create_table(
        'tasks',
        sa.Column('id', BigInteger, autoincrement=True, nullable=False),
        sa.Column('kind', Text(64), nullable=False),
        sa.Column('server_id', Text(64), nullable=False),
        sa.Column('host', Text(255)),
        sa.Column('context', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('arguments', sa.JSON(none_as_null=True), nullable=False),
        sa.Column('action_id', BigInteger),
        sa.Column('owner', Text(64)),
        sa.Column('lease_until', Timestamp()),
        sa.Column('not_before', Timestamp()),
        sa.Column('attempts', sa.Integer(), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_tasks'),
    )
    op.create_index('ix_tasks_server_id', 'tasks', ['server_id'])
    op.create_table(
        'volume_projects',
        sa.Column('id', Text(64), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_volume_projects'),
    )
    op.create_table(
        'volume_quotas',
        sa.Column('project_id', Text(64), nullable=False),
        sa.Column('name', Text(64), nullable=False),
        sa.Column('limit', sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint('project_id', 'name', name='pk_volume_quotas'),
    )
    op.create_table(
        'volume_types',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', Text(255)),
        sa.Column('is_public', sa.Boolean(), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_volume_types'),
        sa.UniqueConstraint('name', name='uq_volume_types_name'),
    )
    op.create_table(
        'aggregate_hosts',
        sa.Column('aggregate_id', BigInteger, nullable=False),
        sa.Column('host', Text(255), nullable=False),
        sa.ForeignKeyConstraint(
            ['aggregate_id'], ['aggregates.id'], name='fk_aggregate_hosts_aggregate_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('aggregate_id', 'host', name='pk_aggregate_hosts'),
    )
    op.create_table(
        'flavor_projects',
        sa.Column('flavor_id', BigInteger, nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.ForeignKeyConstraint(['flavor_id'], ['flavors.id'], name='fk_flavor_projects_flavor_id', ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('flavor_id', 'project_id', name='pk_flavor_projects'),
    )
    op.create_table(
        'identity_projects',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('domain_id', Text(64), nullable=False),
        sa.Column('name', Text(64), nullable=False),
        sa.Column('description', LongText(), nullable=False),
        sa.Column('enabled', sa.Boolean(), nullable=False),
        sa.Column('tags', sa.JSON(), nullable=False),
        sa.Column('extra', sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(['domain_id'], ['identity_domains.id'], name='fk_identity_projects_domain_id'),
        sa.PrimaryKeyConstraint('id', name='pk_identity_projects'),
        sa.UniqueConstraint('domain_id', 'name', name='uq_identity_projects_domain_id_name'),
    )
    op.create_table(
        'image_members',
        sa.Column('image_id', Text(64), nullable=False),
        sa.Column('member_id', Text(64), nullable=False),
        sa.Column('status', Text(16), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.ForeignKeyConstraint(['image_id'], ['images.id'], name='fk_image_members_image_id', ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('image_id', 'member_id', name='pk_image_members'),
    )
    op.create_index('ix_image_members_member_id', 'image_members', ['member_id'])
    op.create_table(
        'image_properties',
        sa.Column('owner_id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('value', LongText(), nullable=False),
        sa.ForeignKeyConstraint(['owner_id'], ['images.id'], name='fk_image_properties_owner_id', ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('owner_id', 'name', name='pk_image_properties'),
    )
    op.create_table(
        'image_tags',
        sa.Column('image_id', Text(64), nullable=False),
        sa.Column('tag', Text(255), nullable=False),
        sa.ForeignKeyConstraint(['image_id'], ['images.id'], name='fk_image_tags_image_id', ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('image_id', 'tag', name='pk_image_tags'),
    )
    op.create_table(
        'ports',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', Text(255), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.Column('network_id', Text(64), nullable=False),
        sa.Column('mac_address', Text(32), nullable=False),
        sa.Column('admin_state_up', sa.Boolean(), nullable=False),
        sa.Column('port_security_enabled', sa.Boolean(), nullable=False),
        sa.Column('device_id', Text(255), nullable=False),
        sa.Column('device_owner', Text(255), nullable=False),
        sa.Column('host', Text(255), nullable=False),
        sa.Column('vnic_type', Text(32), nullable=False),
        sa.Column('dns_name', Text(255), nullable=False),
        sa.Column('binding_profile', sa.JSON(), nullable=False),
        sa.Column('allowed_address_pairs', sa.JSON(), nullable=False),
        sa.Column('extra_dhcp_opts', sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(['network_id'], ['networks.id'], name='fk_ports_network_id'),
        sa.PrimaryKeyConstraint('id', name='pk_ports'),
        sa.UniqueConstraint('network_id', 'mac_address', name='uq_ports_network_id_mac_address'),
    )
    op.create_index('ix_ports_device_id', 'ports', ['device_id'])
    op.create_index('ix_ports_network_id', 'ports', ['network_id'])
    op.create_index('ix_ports_project_id', 'ports', ['project_id'])
    op.create_table(
        'security_group_rules',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('description', Text(255), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.Column('security_group_id', Text(64), nullable=False),
        sa.Column('direction', Text(16), nullable=False),
        sa.Column('ethertype', Text(16), nullable=False),
        sa.Column('protocol', Text(32)),
        sa.Column('port_range_min', sa.Integer()),
        sa.Column('port_range_max', sa.Integer()),
        sa.Column('remote_ip_prefix', Text(64)),
        sa.Column('normalized_cidr', Text(64)),
        sa.Column('remote_group_id', Text(64)),
        sa.ForeignKeyConstraint(
            ['remote_group_id'],
            ['security_groups.id'],
            name='fk_security_group_rules_remote_group_id',
            ondelete='CASCADE',
        ),
        sa.ForeignKeyConstraint(
            ['security_group_id'],
            ['security_groups.id'],
            name='fk_security_group_rules_security_group_id',
            ondelete='CASCADE',
        ),
        sa.PrimaryKeyConstraint('id', name='pk_security_group_rules'),
    )
    op.create_index('ix_security_group_rules_project_id', 'security_group_rules', ['project_id'])
    op.create_index('ix_security_group_rules_remote_group_id', 'security_group_rules', ['remote_group_id'])
    op.create_index('ix_security_group_rules_security_group_id', 'security_group_rules', ['security_group_id'])
    op.create_table(
        'server_action_events',
        sa.Column('id', BigInteger, autoincrement=True, nullable=False),
        sa.Column('action_id', BigInteger, nullable=False),
        sa.Column('event', Text(255), nullable=False),
        sa.Column('start_time', Timestamp(), nullable=False),
        sa.Column('finish_time', Timestamp()),
        sa.Column('result', Text(64)),
        sa.Column('traceback', LongText()),
        sa.Column('host', Text(255)),
        sa.Column('details', Text(255)),
        sa.ForeignKeyConstraint(
            ['action_id'], ['server_actions.id'], name='fk_server_action_events_action_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('id', name='pk_server_action_events'),
    )
    op.create_index('ix_server_action_events_action_id', 'server_action_events', ['action_id'])
    op.create_table(
        'subnets',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', Text(255), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.Column('network_id', Text(64), nullable=False),
        sa.Column('ip_version', sa.Integer(), nullable=False),
        sa.Column('cidr', Text(64), nullable=False),
        sa.Column('gateway_ip', Text(64)),
        sa.Column('enable_dhcp', sa.Boolean(), nullable=False),
        sa.Column('ipv6_ra_mode', Text(32)),
        sa.Column('ipv6_address_mode', Text(32)),
        sa.Column('allocation_pools', sa.JSON(), nullable=False),
        sa.Column('dns_nameservers', sa.JSON(), nullable=False),
        sa.Column('host_routes', sa.JSON(), nullable=False),
        sa.Column('last_address', Text(64)),
        sa.ForeignKeyConstraint(['network_id'], ['networks.id'], name='fk_subnets_network_id', ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('id', name='pk_subnets'),
    )
    op.create_index('ix_subnets_network_id', 'subnets', ['network_id'])
    op.create_index('ix_subnets_project_id', 'subnets', ['project_id'])
    op.create_table(
        'volume_type_projects',
        sa.Column('type_id', Text(64), nullable=False),
        sa.Column('project_id', Text(64), nullable=False),
        sa.ForeignKeyConstraint(
            ['type_id'], ['volume_types.id'], name='fk_volume_type_projects_type_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('type_id', 'project_id', name='pk_volume_type_projects'),
    )
    op.create_table(
        'volume_type_specs',
        sa.Column('owner_id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('value', LongText(), nullable=False),
        sa.ForeignKeyConstraint(
            ['owner_id'], ['volume_types.id'], name='fk_volume_type_specs_owner_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('owner_id', 'name', name='pk_volume_type_specs'),
    )
    op.create_table(
        'volumes',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(64), nullable=False),
        sa.Column('user_id', Text(64)),
        sa.Column('name', Text(255)),
        sa.Column('description', Text(255)),
        sa.Column('status', Text(32), nullable=False),
        sa.Column('size', sa.Integer(), nullable=False),
        sa.Column('availability_zone', Text(255), nullable=False),
        sa.Column('volume_type_id', Text(64), nullable=False),
        sa.Column('bootable', sa.Boolean(), nullable=False),
        sa.Column('multiattach', sa.Boolean(), nullable=False),
        sa.Column('readonly', sa.Boolean(), nullable=False),
        sa.Column('migration_status', Text(32)),
        sa.Column('snapshot_id', Text(64)),
        sa.Column('source_volume_id', Text(64)),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.ForeignKeyConstraint(['volume_type_id'], ['volume_types.id'], name='fk_volumes_volume_type_id'),
        sa.PrimaryKeyConstraint('id', name='pk_volumes'),
    )
    op.create_index('ix_volumes_created_at', 'volumes', ['created_at'])
    op.create_index('ix_volumes_project_id', 'volumes', ['project_id'])
    op.create_index('ix_volumes_volume_type_id', 'volumes', ['volume_type_id'])
    op.create_table(
        'fixed_ips',
        sa.Column('id', BigInteger, autoincrement=True, nullable=False),
        sa.Column('port_id', Text(64), nullable=False),
        sa.Column('subnet_id', Text(64), nullable=False),
        sa.Column('ip_address', Text(64), nullable=False),
        sa.ForeignKeyConstraint(['port_id'], ['ports.id'], name='fk_fixed_ips_port_id', ondelete='CASCADE'),
        sa.ForeignKeyConstraint(['subnet_id'], ['subnets.id'], name='fk_fixed_ips_subnet_id'),
        sa.PrimaryKeyConstraint('id', name='pk_fixed_ips'),
        sa.UniqueConstraint('subnet_id', 'ip_address', name='uq_fixed_ips_subnet_id_ip_address'),
    )
    op.create_index('ix_fixed_ips_port_id', 'fixed_ips', ['port_id'])
    op.create_index('ix_fixed_ips_subnet_id', 'fixed_ips', ['subnet_id'])
    op.create_table(
        'floating_ips',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(255), nullable=False),
        sa.Column('description', Text(255), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.Column('floating_network_id', Text(64), nullable=False),
        sa.Column('floating_ip_address', Text(64), nullable=False),
        sa.Column('port_id', Text(64)),
        sa.Column('fixed_ip_address', Text(64)),
        sa.ForeignKeyConstraint(['floating_network_id'], ['networks.id'], name='fk_floating_ips_floating_network_id'),
        sa.ForeignKeyConstraint(['port_id'], ['ports.id'], name='fk_floating_ips_port_id'),
        sa.PrimaryKeyConstraint('id', name='pk_floating_ips'),
        sa.UniqueConstraint(
            'floating_network_id', 'floating_ip_address', name='uq_floating_ips_floating_network_id_floating_ip_address'
        ),
        sa.UniqueConstraint('port_id', 'fixed_ip_address', name='uq_floating_ips_port_id_fixed_ip_address'),
    )
    op.create_index('ix_floating_ips_floating_ip_address', 'floating_ips', ['floating_ip_address'])
    op.create_index('ix_floating_ips_floating_network_id', 'floating_ips', ['floating_network_id'])
    op.create_index('ix_floating_ips_port_id', 'floating_ips', ['port_id'])
    op.create_index('ix_floating_ips_project_id', 'floating_ips', ['project_id'])
    op.create_table(
        'identity_users',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('domain_id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', LongText(), nullable=False),
        sa.Column('enabled', sa.Boolean(), nullable=False),
        sa.Column('password_hash', Text(64)),
        sa.Column('default_project_id', Text(64)),
        sa.Column('options', sa.JSON(), nullable=False),
        sa.Column('extra', sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ['default_project_id'],
            ['identity_projects.id'],
            name='fk_identity_users_default_project_id',
            ondelete='SET NULL',
        ),
        sa.ForeignKeyConstraint(['domain_id'], ['identity_domains.id'], name='fk_identity_users_domain_id'),
        sa.PrimaryKeyConstraint('id', name='pk_identity_users'),
        sa.UniqueConstraint('domain_id', 'name', name='uq_identity_users_domain_id_name'),
    )
    op.create_table(
        'port_security_groups',
        sa.Column('port_id', Text(64), nullable=False),
        sa.Column('security_group_id', Text(64), nullable=False),
        sa.ForeignKeyConstraint(['port_id'], ['ports.id'], name='fk_port_security_groups_port_id', ondelete='CASCADE'),
        sa.ForeignKeyConstraint(
            ['security_group_id'], ['security_groups.id'], name='fk_port_security_groups_security_group_id'
        ),
        sa.PrimaryKeyConstraint('port_id', 'security_group_id', name='pk_port_security_groups'),
    )
    op.create_index('ix_port_security_groups_security_group_id', 'port_security_groups', ['security_group_id'])
    op.create_table(
        'volume_attachments',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('volume_id', Text(64), nullable=False),
        sa.Column('server_id', Text(64)),
        sa.Column('status', Text(32), nullable=False),
        sa.Column('host', Text(255)),
        sa.Column('device', Text(255)),
        sa.Column('mode', Text(8), nullable=False),
        sa.Column('connector', LongText()),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('attached_at', Timestamp()),
        sa.ForeignKeyConstraint(
            ['volume_id'], ['volumes.id'], name='fk_volume_attachments_volume_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('id', name='pk_volume_attachments'),
    )
    op.create_index('ix_volume_attachments_server_id', 'volume_attachments', ['server_id'])
    op.create_index('ix_volume_attachments_volume_id', 'volume_attachments', ['volume_id'])
    op.create_table(
        'volume_image_metadata',
        sa.Column('owner_id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('value', LongText(), nullable=False),
        sa.ForeignKeyConstraint(
            ['owner_id'], ['volumes.id'], name='fk_volume_image_metadata_owner_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('owner_id', 'name', name='pk_volume_image_metadata'),
    )
    op.create_table(
        'volume_metadata',
        sa.Column('owner_id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('value', LongText(), nullable=False),
        sa.ForeignKeyConstraint(['owner_id'], ['volumes.id'], name='fk_volume_metadata_owner_id', ondelete='CASCADE'),
        sa.PrimaryKeyConstraint('owner_id', 'name', name='pk_volume_metadata'),
    )
    op.create_table(
        'volume_snapshots',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(64), nullable=False),
        sa.Column('user_id', Text(64)),
        sa.Column('volume_id', Text(64), nullable=False),
        sa.Column('name', Text(255)),
        sa.Column('description', Text(255)),
        sa.Column('status', Text(32), nullable=False),
        sa.Column('size', sa.Integer(), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.ForeignKeyConstraint(['volume_id'], ['volumes.id'], name='fk_volume_snapshots_volume_id'),
        sa.PrimaryKeyConstraint('id', name='pk_volume_snapshots'),
    )
    op.create_index('ix_volume_snapshots_created_at', 'volume_snapshots', ['created_at'])
    op.create_index('ix_volume_snapshots_project_id', 'volume_snapshots', ['project_id'])
    op.create_index('ix_volume_snapshots_volume_id', 'volume_snapshots', ['volume_id'])
    op.create_table(
        'identity_application_credentials',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('user_id', Text(64), nullable=False),
        sa.Column('project_id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', LongText(), nullable=False),
        sa.Column('secret_hash', Text(64), nullable=False),
        sa.Column('role_ids', sa.JSON(), nullable=False),
        sa.Column('unrestricted', sa.Boolean(), nullable=False),
        sa.Column('expires_at', Timestamp()),
        sa.ForeignKeyConstraint(
            ['project_id'],
            ['identity_projects.id'],
            name='fk_identity_application_credentials_project_id',
            ondelete='CASCADE',
        ),
        sa.ForeignKeyConstraint(
            ['user_id'], ['identity_users.id'], name='fk_identity_application_credentials_user_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('id', name='pk_identity_application_credentials'),
        sa.UniqueConstraint('user_id', 'name', name='uq_identity_application_credentials_user_id_name'),
    )
    op.create_table(
        'identity_grants',
        sa.Column('user_id', Text(64), nullable=False),
        sa.Column('target_kind', Text(16), nullable=False),
        sa.Column('target_id', Text(64), nullable=False),
        sa.Column('role_id', Text(64), nullable=False),
        sa.ForeignKeyConstraint(
            ['role_id'], ['identity_roles.id'], name='fk_identity_grants_role_id', ondelete='CASCADE'
        ),
        sa.ForeignKeyConstraint(
            ['user_id'], ['identity_users.id'], name='fk_identity_grants_user_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('user_id', 'target_kind', 'target_id', 'role_id', name='pk_identity_grants'),
    )
    op.create_index('ix_identity_grants_target_kind_target_id', 'identity_grants', ['target_kind', 'target_id'])
    op.create_table(
        'volume_snapshot_metadata',
        sa.Column('owner_id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('value', LongText(), nullable=False),
        sa.ForeignKeyConstraint(
            ['owner_id'], ['volume_snapshots.id'], name='fk_volume_snapshot_metadata_owner_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('owner_id', 'name', name='pk_volume_snapshot_metadata'),
    )
    op.create_table(
        'identity_tokens',
        sa.Column('hash', Text(64), nullable=False),
        sa.Column('user_id', Text(64), nullable=False),
        sa.Column('project_id', Text(64)),
        sa.Column('domain_id', Text(64)),
        sa.Column('system', sa.Boolean(), nullable=False),
        sa.Column('roles', sa.JSON(), nullable=False),
        sa.Column('methods', sa.JSON(), nullable=False),
        sa.Column('audit_ids', sa.JSON(), nullable=False),
        sa.Column('application_credential_id', Text(64)),
        sa.Column('issued_at', Timestamp(), nullable=False),
        sa.Column('expires_at', Timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ['application_credential_id'],
            ['identity_application_credentials.id'],
            name='fk_identity_tokens_application_credential_id',
            ondelete='CASCADE',
        ),
        sa.ForeignKeyConstraint(
            ['domain_id'], ['identity_domains.id'], name='fk_identity_tokens_domain_id', ondelete='CASCADE'
        ),
        sa.ForeignKeyConstraint(
            ['project_id'], ['identity_projects.id'], name='fk_identity_tokens_project_id', ondelete='CASCADE'
        ),
        sa.ForeignKeyConstraint(
            ['user_id'], ['identity_users.id'], name='fk_identity_tokens_user_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('hash', name='pk_identity_tokens'),
    )
    op.create_index('ix_identity_tokens_application_credential_id', 'identity_tokens', ['application_credential_id'])
    op.create_index('ix_identity_tokens_expires_at', 'identity_tokens', ['expires_at'])
    op.create_index('ix_identity_tokens_project_id', 'identity_tokens', ['project_id'])
    op.create_index('ix_identity_tokens_user_id', 'identity_tokens', ['user_id'])
