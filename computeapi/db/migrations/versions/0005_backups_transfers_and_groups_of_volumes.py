"""Backups, transfers and groups of volumes."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import LongText, Text, Timestamp

revision = '0005'
down_revision = '0004'


def upgrade() -> None:
    op.create_table(
        'volume_backups',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(64), nullable=False),
        sa.Column('user_id', Text(64)),
        sa.Column('volume_id', Text(64), nullable=False),
        sa.Column('snapshot_id', Text(64)),
        sa.Column('parent_id', Text(64)),
        sa.Column('name', Text(255)),
        sa.Column('description', Text(255)),
        sa.Column('status', Text(32), nullable=False),
        sa.Column('size', sa.Integer(), nullable=False),
        sa.Column('container', Text(255)),
        sa.Column('availability_zone', Text(255), nullable=False),
        sa.Column('bootable', sa.Boolean(), nullable=False),
        sa.Column('data_timestamp', Timestamp(), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_volume_backups'),
    )
    with op.batch_alter_table('volume_backups', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_volume_backups_created_at'), ['created_at'])
        batch_op.create_index(batch_op.f('ix_volume_backups_parent_id'), ['parent_id'])
        batch_op.create_index(batch_op.f('ix_volume_backups_project_id'), ['project_id'])
        batch_op.create_index(batch_op.f('ix_volume_backups_volume_id'), ['volume_id'])

    op.create_table(
        'volume_group_types',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('description', Text(255)),
        sa.Column('is_public', sa.Boolean(), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_volume_group_types'),
        sa.UniqueConstraint('name', name='uq_volume_group_types_name'),
    )
    op.create_table(
        'volume_messages',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(64), nullable=False),
        sa.Column('request_id', Text(255)),
        sa.Column('resource_type', Text(32), nullable=False),
        sa.Column('resource_uuid', Text(64), nullable=False),
        sa.Column('event_id', Text(64), nullable=False),
        sa.Column('user_message', Text(1024), nullable=False),
        sa.Column('message_level', Text(16), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('guaranteed_until', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_volume_messages'),
    )
    with op.batch_alter_table('volume_messages', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_volume_messages_created_at'), ['created_at'])
        batch_op.create_index(batch_op.f('ix_volume_messages_guaranteed_until'), ['guaranteed_until'])
        batch_op.create_index(batch_op.f('ix_volume_messages_project_id'), ['project_id'])

    op.create_table(
        'volume_qos',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('consumer', Text(16), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_volume_qos'),
        sa.UniqueConstraint('name', name='uq_volume_qos_name'),
    )
    op.create_table(
        'volume_quota_classes',
        sa.Column('class_name', Text(255), nullable=False),
        sa.Column('name', Text(64), nullable=False),
        sa.Column('limit', sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint('class_name', 'name', name='pk_volume_quota_classes'),
    )
    op.create_table(
        'volume_backup_image_metadata',
        sa.Column('owner_id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('value', LongText(), nullable=False),
        sa.ForeignKeyConstraint(
            ['owner_id'], ['volume_backups.id'], name='fk_volume_backup_image_metadata_owner_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('owner_id', 'name', name='pk_volume_backup_image_metadata'),
    )
    op.create_table(
        'volume_backup_metadata',
        sa.Column('owner_id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('value', LongText(), nullable=False),
        sa.ForeignKeyConstraint(
            ['owner_id'], ['volume_backups.id'], name='fk_volume_backup_metadata_owner_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('owner_id', 'name', name='pk_volume_backup_metadata'),
    )
    op.create_table(
        'volume_group_type_specs',
        sa.Column('owner_id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('value', LongText(), nullable=False),
        sa.ForeignKeyConstraint(
            ['owner_id'], ['volume_group_types.id'], name='fk_volume_group_type_specs_owner_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('owner_id', 'name', name='pk_volume_group_type_specs'),
    )
    op.create_table(
        'volume_groups',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(64), nullable=False),
        sa.Column('user_id', Text(64)),
        sa.Column('name', Text(255)),
        sa.Column('description', Text(255)),
        sa.Column('status', Text(32), nullable=False),
        sa.Column('availability_zone', Text(255), nullable=False),
        sa.Column('group_type', Text(64), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        sa.ForeignKeyConstraint(['group_type'], ['volume_group_types.id'], name='fk_volume_groups_group_type'),
        sa.PrimaryKeyConstraint('id', name='pk_volume_groups'),
    )
    with op.batch_alter_table('volume_groups', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_volume_groups_created_at'), ['created_at'])
        batch_op.create_index(batch_op.f('ix_volume_groups_group_type'), ['group_type'])
        batch_op.create_index(batch_op.f('ix_volume_groups_project_id'), ['project_id'])

    op.create_table(
        'volume_qos_specs',
        sa.Column('owner_id', Text(64), nullable=False),
        sa.Column('name', Text(255), nullable=False),
        sa.Column('value', LongText(), nullable=False),
        sa.ForeignKeyConstraint(
            ['owner_id'], ['volume_qos.id'], name='fk_volume_qos_specs_owner_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('owner_id', 'name', name='pk_volume_qos_specs'),
    )
    op.create_table(
        'volume_group_volume_types',
        sa.Column('group_id', Text(64), nullable=False),
        sa.Column('type_id', Text(64), nullable=False),
        sa.ForeignKeyConstraint(
            ['group_id'], ['volume_groups.id'], name='fk_volume_group_volume_types_group_id', ondelete='CASCADE'
        ),
        sa.ForeignKeyConstraint(
            ['type_id'], ['volume_types.id'], name='fk_volume_group_volume_types_type_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('group_id', 'type_id', name='pk_volume_group_volume_types'),
    )
    op.create_table(
        'volume_type_encryptions',
        sa.Column('volume_type_id', Text(64), nullable=False),
        sa.Column('encryption_id', Text(64), nullable=False),
        sa.Column('provider', Text(255), nullable=False),
        sa.Column('cipher', Text(255)),
        sa.Column('key_size', sa.Integer()),
        sa.Column('control_location', Text(16), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp()),
        sa.ForeignKeyConstraint(
            ['volume_type_id'],
            ['volume_types.id'],
            name='fk_volume_type_encryptions_volume_type_id',
            ondelete='CASCADE',
        ),
        sa.PrimaryKeyConstraint('volume_type_id', name='pk_volume_type_encryptions'),
    )
    op.create_table(
        'volume_transfers',
        sa.Column('id', Text(64), nullable=False),
        sa.Column('project_id', Text(64), nullable=False),
        sa.Column('volume_id', Text(64), nullable=False),
        sa.Column('name', Text(255)),
        sa.Column('key_hash', Text(64), nullable=False),
        sa.Column('no_snapshots', sa.Boolean(), nullable=False),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.ForeignKeyConstraint(
            ['volume_id'], ['volumes.id'], name='fk_volume_transfers_volume_id', ondelete='CASCADE'
        ),
        sa.PrimaryKeyConstraint('id', name='pk_volume_transfers'),
        sa.UniqueConstraint('volume_id', name='uq_volume_transfers_volume_id'),
    )
    with op.batch_alter_table('volume_transfers', schema=None) as batch_op:
        batch_op.create_index(batch_op.f('ix_volume_transfers_project_id'), ['project_id'])

    with op.batch_alter_table('volume_types', schema=None) as batch_op:
        batch_op.add_column(sa.Column('qos_specs_id', Text(64)))
        batch_op.create_index(batch_op.f('ix_volume_types_qos_specs_id'), ['qos_specs_id'])
        batch_op.create_foreign_key(batch_op.f('fk_volume_types_qos_specs_id'), 'volume_qos', ['qos_specs_id'], ['id'])

    with op.batch_alter_table('volumes', schema=None) as batch_op:
        batch_op.add_column(sa.Column('group_id', Text(64)))
        batch_op.create_index(batch_op.f('ix_volumes_group_id'), ['group_id'])
        batch_op.create_foreign_key(batch_op.f('fk_volumes_group_id'), 'volume_groups', ['group_id'], ['id'])
