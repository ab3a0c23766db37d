"""Lists are walked along indexes."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from computeapi.db.tables.types import CodePoints, Text

revision = '0025'
down_revision = '0024'

KEYS = (
    *('project_id', 'host', 'node', 'availability_zone', 'image_id', 'flavorid', 'user_id', 'key_name', 'vm_state'),
    *('folded_name', 'hostname', 'uuid', 'launched_at', 'updated_at', 'memory_mb', 'root_device_name', 'power_state'),
    *('launch_index', 'progress', 'config_drive', 'disk_config'),
)
SELDOM = ('task_state', 'locked_by', 'access_ip_v4', 'access_ip_v6', 'terminated_at', 'kernel_id', 'ramdisk_id')
OLD = (
    *('ix_servers_deleted_at_created_at_id', 'ix_servers_project_id_deleted_at_created_at_id'),
    *('ix_servers_deleted_at_vm_state', 'ix_servers_host_deleted_at'),
)
SERVERS = sa.table(
    'servers',
    sa.column('id', sa.Integer),
    sa.column('uuid', sa.String),
    sa.column('name', sa.String),
    sa.column('folded_name', sa.String),
    sa.column('flavor', sa.JSON),
    sa.column('flavorid', sa.String),
    sa.column('network_info', sa.JSON),
)
ADDRESSES = sa.table(
    'server_addresses',
    sa.column('server_id', sa.String),
    sa.column('address', sa.String),
    sa.column('version', sa.Integer),
)
CHUNK = 1000


def upgrade() -> None:
    op.create_table(
        'server_addresses',
        sa.Column('server_id', Text(64), nullable=False),
        sa.Column('address', CodePoints(64), nullable=False),
        sa.Column('version', sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint('server_id', 'address', name='pk_server_addresses'),
    )
    with op.batch_alter_table('servers', schema=None) as batch_op:
        batch_op.add_column(sa.Column('folded_name', CodePoints(255), server_default='', nullable=False))
        batch_op.add_column(sa.Column('flavorid', Text(255), server_default='', nullable=False))
        for name in OLD:
            batch_op.drop_index(batch_op.f(name))
    _fill(op.get_bind())

    addresses = ['version', 'address', 'server_id']
    op.create_index('ix_server_addresses_version_address_server_id', 'server_addresses', addresses)
    op.create_index('ix_migrations_created_at_id', 'migrations', ['created_at', 'id'])
    op.create_index('ix_migrations_updated_at', 'migrations', ['updated_at'])
    op.create_index('ix_server_actions_server_id_id', 'server_actions', ['server_id', 'id'])
    op.create_index('ix_server_tags_tag_server_id', 'server_tags', ['tag', 'server_id'])
    op.create_index('ix_servers_living', 'servers', ['deleted_at', 'created_at', 'id', 'project_id'])
    op.create_index('ix_servers_of_project', 'servers', ['project_id', 'id'])
    op.create_index('ix_servers_gone', 'servers', ['created_at', 'id', 'project_id'], **_where('deleted_at'))
    for key in (*KEYS, *SELDOM):
        columns = list(dict.fromkeys(['deleted_at', key, 'created_at', 'id', 'project_id']))
        op.create_index(f'ix_servers_by_{key}', 'servers', columns, **(_where(key) if key in SELDOM else {}))


def _where(present: str) -> dict[str, Any]:
    there = sa.text(f'{present} IS NOT NULL')
    return {'sqlite_where': there, 'postgresql_where': there}


def _fill(connection: sa.Connection) -> None:
    """What the new columns and the new table say of the servers that are there."""
    change = (
        sa.update(SERVERS)
        .where(SERVERS.c.id == sa.bindparam('its_id'))
        .values(folded_name=sa.bindparam('folded'), flavorid=sa.bindparam('flavor_id'))
    )
    last = 0
    while rows := connection.execute(
        sa.select(SERVERS).where(SERVERS.c.id > last).order_by(SERVERS.c.id).limit(CHUNK)
    ).all():
        last = rows[-1].id
        connection.execute(
            change,
            [
                {'its_id': row.id, 'folded': row.name.lower()[:255], 'flavor_id': row.flavor.get('flavorid', '')}
                for row in rows
            ],
        )
        if held := [address for row in rows for address in _addresses(row)]:
            connection.execute(sa.insert(ADDRESSES), held)


def _addresses(row: sa.Row[Any]) -> list[dict[str, Any]]:
    versions = {each['address']: each['version'] for entry in row.network_info for each in entry.get('addresses', ())}
    return [{'server_id': row.uuid, 'address': address, 'version': version} for address, version in versions.items()]
