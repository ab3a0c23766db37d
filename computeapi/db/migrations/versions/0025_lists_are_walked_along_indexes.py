"""Lists are walked along indexes."""

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import Folded, Generated, Text

revision = '0025'
down_revision = '0024'

FOLDED_NAME = Generated('lower(name)', postgresql='lower((name)::text)')
FLAVORID = Generated(
    "json_extract(flavor, '$.flavorid')",
    postgresql="(flavor ->> 'flavorid'::text)",
    mysql="json_value(flavor, '$.flavorid')",
    mariadb="json_value(flavor, '$.flavorid')",
)


def upgrade() -> None:
    with op.batch_alter_table('migrations', schema=None) as batch_op:
        batch_op.create_index('ix_migrations_created_at_id', ['created_at', 'id'])
        batch_op.create_index('ix_migrations_updated_at', ['updated_at'])

    with op.batch_alter_table('server_actions', schema=None) as batch_op:
        batch_op.create_index('ix_server_actions_server_id_id', ['server_id', 'id'])

    with op.batch_alter_table('server_tags', schema=None) as batch_op:
        batch_op.create_index('ix_server_tags_tag_server_id', ['tag', 'server_id'])

    with op.batch_alter_table('servers', schema=None) as batch_op:
        batch_op.add_column(sa.Column('folded_name', Folded(), FOLDED_NAME))
        batch_op.add_column(sa.Column('flavorid', Text(255), FLAVORID))
        batch_op.drop_index('ix_servers_host_deleted_at')
        batch_op.drop_index('ix_servers_deleted_at_vm_state')
        batch_op.create_index('ix_servers_created_at_id', ['created_at', 'id'])
        batch_op.create_index('ix_servers_deleted_at_availability_zone_id', ['deleted_at', 'availability_zone', 'id'])
        batch_op.create_index(
            'ix_servers_deleted_at_flavorid_created_at_id', ['deleted_at', 'flavorid', 'created_at', 'id']
        )
        batch_op.create_index('ix_servers_deleted_at_folded_name', ['deleted_at', 'folded_name'])
        batch_op.create_index('ix_servers_deleted_at_host_created_at_id', ['deleted_at', 'host', 'created_at', 'id'])
        batch_op.create_index('ix_servers_deleted_at_host_id', ['deleted_at', 'host', 'id'])
        batch_op.create_index('ix_servers_deleted_at_hostname_id', ['deleted_at', 'hostname', 'id'])
        batch_op.create_index(
            'ix_servers_deleted_at_image_id_created_at_id', ['deleted_at', 'image_id', 'created_at', 'id']
        )
        batch_op.create_index('ix_servers_deleted_at_image_id_id', ['deleted_at', 'image_id', 'id'])
        batch_op.create_index('ix_servers_deleted_at_launched_at_id', ['deleted_at', 'launched_at', 'id'])
        batch_op.create_index('ix_servers_deleted_at_memory_mb_id', ['deleted_at', 'memory_mb', 'id'])
        batch_op.create_index('ix_servers_deleted_at_name_id', ['deleted_at', 'name', 'id'])
        batch_op.create_index('ix_servers_deleted_at_node_id', ['deleted_at', 'node', 'id'])
        batch_op.create_index('ix_servers_deleted_at_project_id_id', ['deleted_at', 'project_id', 'id'])
        batch_op.create_index('ix_servers_deleted_at_task_state_id', ['deleted_at', 'task_state', 'id'])
        batch_op.create_index('ix_servers_deleted_at_updated_at_id', ['deleted_at', 'updated_at', 'id'])
        batch_op.create_index(
            'ix_servers_deleted_at_user_id_created_at_id', ['deleted_at', 'user_id', 'created_at', 'id']
        )
        batch_op.create_index('ix_servers_deleted_at_user_id_id', ['deleted_at', 'user_id', 'id'])
        batch_op.create_index('ix_servers_deleted_at_uuid_id', ['deleted_at', 'uuid', 'id'])
        batch_op.create_index(
            'ix_servers_deleted_at_vm_state_created_at_id', ['deleted_at', 'vm_state', 'created_at', 'id']
        )
        batch_op.create_index('ix_servers_deleted_at_vm_state_id', ['deleted_at', 'vm_state', 'id'])
        batch_op.create_index('ix_servers_project_id_created_at_id', ['project_id', 'created_at', 'id'])
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_access_ip_v4_id',
            ['project_id', 'deleted_at', 'access_ip_v4', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_access_ip_v6_id',
            ['project_id', 'deleted_at', 'access_ip_v6', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_availability_zone_id',
            ['project_id', 'deleted_at', 'availability_zone', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_config_drive_id',
            ['project_id', 'deleted_at', 'config_drive', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_disk_config_id',
            ['project_id', 'deleted_at', 'disk_config', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_flavorid_created_at_id',
            ['project_id', 'deleted_at', 'flavorid', 'created_at', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_folded_name', ['project_id', 'deleted_at', 'folded_name']
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_host_created_at_id',
            ['project_id', 'deleted_at', 'host', 'created_at', 'id'],
        )
        batch_op.create_index('ix_servers_project_id_deleted_at_host_id', ['project_id', 'deleted_at', 'host', 'id'])
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_hostname_id', ['project_id', 'deleted_at', 'hostname', 'id']
        )
        batch_op.create_index('ix_servers_project_id_deleted_at_id', ['project_id', 'deleted_at', 'id'])
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_image_id_created_at_id',
            ['project_id', 'deleted_at', 'image_id', 'created_at', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_image_id_id', ['project_id', 'deleted_at', 'image_id', 'id']
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_key_name_id', ['project_id', 'deleted_at', 'key_name', 'id']
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_launch_index_id',
            ['project_id', 'deleted_at', 'launch_index', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_launched_at_id',
            ['project_id', 'deleted_at', 'launched_at', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_locked_by_id', ['project_id', 'deleted_at', 'locked_by', 'id']
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_memory_mb_id', ['project_id', 'deleted_at', 'memory_mb', 'id']
        )
        batch_op.create_index('ix_servers_project_id_deleted_at_name_id', ['project_id', 'deleted_at', 'name', 'id'])
        batch_op.create_index('ix_servers_project_id_deleted_at_node_id', ['project_id', 'deleted_at', 'node', 'id'])
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_power_state_id',
            ['project_id', 'deleted_at', 'power_state', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_progress_id', ['project_id', 'deleted_at', 'progress', 'id']
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_root_device_name_id',
            ['project_id', 'deleted_at', 'root_device_name', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_task_state_id',
            ['project_id', 'deleted_at', 'task_state', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_terminated_at_id',
            ['project_id', 'deleted_at', 'terminated_at', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_updated_at_id',
            ['project_id', 'deleted_at', 'updated_at', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_user_id_created_at_id',
            ['project_id', 'deleted_at', 'user_id', 'created_at', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_user_id_id', ['project_id', 'deleted_at', 'user_id', 'id']
        )
        batch_op.create_index('ix_servers_project_id_deleted_at_uuid_id', ['project_id', 'deleted_at', 'uuid', 'id'])
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_vm_state_created_at_id',
            ['project_id', 'deleted_at', 'vm_state', 'created_at', 'id'],
        )
        batch_op.create_index(
            'ix_servers_project_id_deleted_at_vm_state_id', ['project_id', 'deleted_at', 'vm_state', 'id']
        )
        batch_op.create_index('ix_servers_project_id_id', ['project_id', 'id'])
        batch_op.create_index('ix_servers_project_id_updated_at', ['project_id', 'updated_at'])
        batch_op.create_index('ix_servers_updated_at', ['updated_at'])
