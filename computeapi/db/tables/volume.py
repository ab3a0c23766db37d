"""Tables of the volume service."""

import sqlalchemy as sa

from computeapi.db.tables.types import Id, LongText, Text, Timestamp, metadata, pairs, resource

volume_qos = sa.Table(
    'volume_qos',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('name', Text(255), nullable=False, unique=True),
    sa.Column('consumer', Text(16), nullable=False),
    sa.Column('created_at', Timestamp(), nullable=False),
)

volume_qos_specs = pairs('volume_qos_specs', 'volume_qos.id')

volume_types = sa.Table(
    'volume_types',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('name', Text(255), nullable=False, unique=True),
    sa.Column('description', Text(255)),
    sa.Column('is_public', sa.Boolean, nullable=False),
    sa.Column('qos_specs_id', Id(), sa.ForeignKey('volume_qos.id'), index=True),
    sa.Column('created_at', Timestamp(), nullable=False),
    sa.Column('updated_at', Timestamp(), nullable=False),
)

volume_type_specs = pairs('volume_type_specs', 'volume_types.id')

volume_type_projects = sa.Table(
    'volume_type_projects',
    metadata,
    sa.Column('type_id', Id(), sa.ForeignKey('volume_types.id', ondelete='CASCADE'), primary_key=True),
    sa.Column('project_id', Id(), primary_key=True),
)

volume_default_types = sa.Table(
    'volume_default_types',
    metadata,
    sa.Column('project_id', Id(), primary_key=True),
    sa.Column('type_id', Id(), sa.ForeignKey('volume_types.id'), nullable=False, index=True),
)

volume_type_encryptions = sa.Table(
    'volume_type_encryptions',
    metadata,
    sa.Column('volume_type_id', Id(), sa.ForeignKey('volume_types.id', ondelete='CASCADE'), primary_key=True),
    sa.Column('encryption_id', Id(), nullable=False),
    sa.Column('provider', Text(255), nullable=False),
    sa.Column('cipher', Text(255)),
    sa.Column('key_size', sa.Integer),
    sa.Column('control_location', Text(16), nullable=False),
    sa.Column('created_at', Timestamp(), nullable=False),
    sa.Column('updated_at', Timestamp()),
)

volume_group_types = sa.Table(
    'volume_group_types',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('name', Text(255), nullable=False, unique=True),
    sa.Column('description', Text(255)),
    sa.Column('is_public', sa.Boolean, nullable=False),
    sa.Column('created_at', Timestamp(), nullable=False),
)

volume_group_type_specs = pairs('volume_group_type_specs', 'volume_group_types.id')

volume_groups = resource(
    'volume_groups',
    sa.Column('availability_zone', Text(255), nullable=False),
    sa.Column('group_type', Id(), sa.ForeignKey('volume_group_types.id'), nullable=False, index=True),
)

volume_group_volume_types = sa.Table(
    'volume_group_volume_types',
    metadata,
    sa.Column('group_id', Id(), sa.ForeignKey('volume_groups.id', ondelete='CASCADE'), primary_key=True),
    sa.Column('type_id', Id(), sa.ForeignKey('volume_types.id', ondelete='CASCADE'), primary_key=True),
)

volumes = resource(
    'volumes',
    sa.Column('size', sa.Integer, nullable=False),
    sa.Column('availability_zone', Text(255), nullable=False),
    sa.Column('volume_type_id', Id(), sa.ForeignKey('volume_types.id'), nullable=False, index=True),
    sa.Column('bootable', sa.Boolean, nullable=False),
    sa.Column('multiattach', sa.Boolean, nullable=False),
    sa.Column('readonly', sa.Boolean),
    sa.Column('migration_status', Text(32)),
    sa.Column('snapshot_id', Id()),
    sa.Column('source_volume_id', Id()),
    sa.Column('group_id', Id(), sa.ForeignKey('volume_groups.id'), index=True),
)

volume_metadata = pairs('volume_metadata', 'volumes.id')
volume_image_metadata = pairs('volume_image_metadata', 'volumes.id')

volume_snapshots = resource(
    'volume_snapshots',
    sa.Column('volume_id', Id(), sa.ForeignKey('volumes.id'), nullable=False, index=True),
    sa.Column('size', sa.Integer, nullable=False),
    sa.Column('progress', Text(8)),
)

volume_snapshot_metadata = pairs('volume_snapshot_metadata', 'volume_snapshots.id')

volume_attachments = sa.Table(
    'volume_attachments',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('volume_id', Id(), sa.ForeignKey('volumes.id', ondelete='CASCADE'), nullable=False, index=True),
    sa.Column('server_id', Id(), index=True),
    sa.Column('status', Text(32), nullable=False),
    sa.Column('host', Text(255)),
    sa.Column('device', Text(255)),
    sa.Column('mode', Text(8), nullable=False),
    sa.Column('connector', LongText()),
    sa.Column('created_at', Timestamp(), nullable=False),
    sa.Column('attached_at', Timestamp()),
)

volume_backups = resource(
    'volume_backups',
    sa.Column('volume_id', Id(), nullable=False, index=True),
    sa.Column('snapshot_id', Id()),
    sa.Column('parent_id', Id(), index=True),
    sa.Column('size', sa.Integer, nullable=False),
    sa.Column('container', Text(255)),
    sa.Column('availability_zone', Text(255), nullable=False),
    sa.Column('bootable', sa.Boolean, nullable=False),
    sa.Column('data_timestamp', Timestamp(), nullable=False),
)

volume_backup_metadata = pairs('volume_backup_metadata', 'volume_backups.id')
volume_backup_image_metadata = pairs('volume_backup_image_metadata', 'volume_backups.id')
volume_backup_volume_metadata = pairs('volume_backup_volume_metadata', 'volume_backups.id')

volume_transfers = sa.Table(
    'volume_transfers',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('project_id', Id(), nullable=False, index=True),
    sa.Column('volume_id', Id(), sa.ForeignKey('volumes.id', ondelete='CASCADE'), nullable=False, unique=True),
    sa.Column('name', Text(255)),
    sa.Column('key_hash', Text(64), nullable=False),
    sa.Column('no_snapshots', sa.Boolean, nullable=False),
    sa.Column('created_at', Timestamp(), nullable=False),
)

volume_messages = sa.Table(
    'volume_messages',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('project_id', Id(), nullable=False, index=True),
    sa.Column('request_id', Text(255)),
    sa.Column('resource_type', Text(32), nullable=False),
    sa.Column('resource_uuid', Id(), nullable=False),
    sa.Column('event_id', Text(64), nullable=False),
    sa.Column('user_message', Text(1024), nullable=False),
    sa.Column('message_level', Text(16), nullable=False),
    sa.Column('created_at', Timestamp(), nullable=False, index=True),
    sa.Column('guaranteed_until', Timestamp(), nullable=False, index=True),
)

volume_projects = sa.Table(
    'volume_projects',
    metadata,
    sa.Column('id', Id(), primary_key=True),
)

volume_quotas = sa.Table(
    'volume_quotas',
    metadata,
    sa.Column('project_id', Id(), primary_key=True),
    sa.Column('name', Text(64), primary_key=True),
    sa.Column('limit', sa.Integer, nullable=False),
)

volume_quota_classes = sa.Table(
    'volume_quota_classes',
    metadata,
    sa.Column('class_name', Text(255), primary_key=True),
    sa.Column('name', Text(64), primary_key=True),
    sa.Column('limit', sa.Integer, nullable=False),
)
