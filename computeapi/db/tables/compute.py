"""Tables of the compute service.  Sizes: memory in MiB, disks in GiB; ids of servers are UUIDs in text."""

from typing import Any

import sqlalchemy as sa

from computeapi.db.tables.types import BigInteger, Id, LongText, Text, Timestamp, metadata

Column, Table = sa.Column, sa.Table


def Json() -> sa.types.TypeEngine[Any]:
    """A JSON value; None is NULL."""
    return sa.JSON(none_as_null=True)


def number() -> sa.Column[int]:
    """A primary key that counts."""
    return Column('id', BigInteger, primary_key=True, autoincrement=True)


flavors = Table(
    'flavors',
    metadata,
    number(),
    Column('flavorid', Text(255), nullable=False, unique=True),
    Column('name', Text(255), nullable=False, unique=True),
    Column('description', LongText()),
    Column('memory_mb', sa.BigInteger, nullable=False),
    Column('vcpus', sa.Integer, nullable=False),
    Column('root_gb', sa.BigInteger, nullable=False),
    Column('ephemeral_gb', sa.BigInteger, nullable=False),
    Column('swap', sa.BigInteger, nullable=False),
    Column('rxtx_factor', sa.Double, nullable=False),
    Column('disabled', sa.Boolean, nullable=False),
    Column('is_public', sa.Boolean, nullable=False),
    Column('extra_specs', Json(), nullable=False),
    Column('created_at', Timestamp(), nullable=False),
    Column('updated_at', Timestamp()),
)

flavor_projects = Table(
    'flavor_projects',
    metadata,
    Column('flavor_id', BigInteger, sa.ForeignKey('flavors.id', ondelete='CASCADE'), primary_key=True),
    Column('project_id', Text(255), primary_key=True),
)

keypairs = Table(
    'keypairs',
    metadata,
    number(),
    Column('user_id', Text(255), nullable=False),
    Column('name', Text(255), nullable=False),
    Column('type', Text(16), nullable=False),
    Column('fingerprint', Text(255), nullable=False),
    Column('public_key', LongText(), nullable=False),
    Column('created_at', Timestamp(), nullable=False),
    sa.UniqueConstraint('user_id', 'name'),
)

# A limit of one project (user_id '') or of one user in it.
quotas = Table(
    'quotas',
    metadata,
    Column('project_id', Text(255), primary_key=True),
    Column('user_id', Text(255), primary_key=True, server_default=''),
    Column('resource', Text(64), primary_key=True),
    Column('hard_limit', sa.Integer, nullable=False),
)

quota_classes = Table(
    'quota_classes',
    metadata,
    Column('class_name', Text(255), primary_key=True),
    Column('resource', Text(64), primary_key=True),
    Column('hard_limit', sa.Integer, nullable=False),
)

# A row to lock while the use of a project (or of a user, for key pairs) is counted and added to.
quota_locks = Table('quota_locks', metadata, Column('project_id', Text(255), primary_key=True))

services = Table(
    'services',
    metadata,
    number(),
    Column('uuid', Id(), nullable=False, unique=True),
    Column('host', Text(255), nullable=False),
    Column('binary', Text(64), nullable=False),
    Column('disabled', sa.Boolean, nullable=False),
    Column('disabled_reason', Text(255)),
    Column('forced_down', sa.Boolean, nullable=False),
    Column('seen_at', Timestamp()),
    Column('created_at', Timestamp(), nullable=False),
    Column('updated_at', Timestamp()),
    sa.UniqueConstraint('host', 'binary'),
)

# What a compute host has; what is taken of it is the sum of its allocations.
hypervisors = Table(
    'hypervisors',
    metadata,
    number(),
    Column('uuid', Id(), nullable=False, unique=True),
    Column('host', Text(255), nullable=False),
    Column('hypervisor_hostname', Text(255), nullable=False, unique=True),
    Column('hypervisor_type', Text(64), nullable=False),
    Column('hypervisor_version', sa.Integer, nullable=False),
    Column('host_ip', Text(64), nullable=False),
    Column('cpu_info', Json(), nullable=False),
    Column('vcpus', sa.Integer, nullable=False),
    Column('memory_mb', sa.BigInteger, nullable=False),
    Column('local_gb', sa.BigInteger, nullable=False),
    Column('started_at', Timestamp(), nullable=False),
    Column('created_at', Timestamp(), nullable=False),
    Column('updated_at', Timestamp()),
    sa.Index(None, 'host'),
)

# What a server, or the other side of its migration, holds of a host.
allocations = Table(
    'allocations',
    metadata,
    Column('server_id', Id(), primary_key=True),
    Column('host', Text(255), primary_key=True),
    Column('vcpus', sa.Integer, nullable=False),
    Column('memory_mb', sa.BigInteger, nullable=False),
    Column('disk_gb', sa.BigInteger, nullable=False),
    sa.Index(None, 'host'),
)

aggregates = Table(
    'aggregates',
    metadata,
    number(),
    Column('uuid', Id(), nullable=False, unique=True),
    Column('name', Text(255), nullable=False, unique=True),
    Column('metadata', Json(), nullable=False),
    Column('created_at', Timestamp(), nullable=False),
    Column('updated_at', Timestamp()),
)

aggregate_hosts = Table(
    'aggregate_hosts',
    metadata,
    Column('aggregate_id', BigInteger, sa.ForeignKey('aggregates.id', ondelete='CASCADE'), primary_key=True),
    Column('host', Text(255), primary_key=True),
)

server_groups = Table(
    'server_groups',
    metadata,
    number(),
    Column('uuid', Id(), nullable=False, unique=True),
    Column('project_id', Text(255), nullable=False, index=True),
    Column('user_id', Text(255), nullable=False),
    Column('name', Text(255), nullable=False),
    Column('policy', Text(64), nullable=False),
    Column('rules', Json(), nullable=False),
    Column('created_at', Timestamp(), nullable=False),
)

servers = Table(
    'servers',
    metadata,
    number(),
    Column('uuid', Id(), nullable=False, unique=True),
    Column('project_id', Text(255), nullable=False),
    Column('user_id', Text(255), nullable=False),
    Column('name', Text(255), nullable=False),
    Column('description', LongText()),
    Column('hostname', Text(255), nullable=False),
    # Where it is in its life.
    Column('vm_state', Text(64), nullable=False),
    Column('task_state', Text(64)),
    Column('power_state', sa.Integer, nullable=False),
    Column('progress', sa.Integer, nullable=False),
    Column('locked_by', Text(16)),
    Column('locked_reason', Text(255)),
    Column('fault', Json()),
    # Where it runs, and where it was asked to.
    Column('host', Text(255)),
    Column('node', Text(255)),
    Column('availability_zone', Text(255)),
    Column('pinned_availability_zone', Text(255)),
    Column('scheduler_hints', Json(), nullable=False),
    Column('server_group_id', Id()),
    # What it is made of; the flavor is the one it was given, whatever becomes of the original.
    Column('flavor', Json(), nullable=False),
    Column('vcpus', sa.Integer, nullable=False),
    Column('memory_mb', sa.BigInteger, nullable=False),
    Column('root_gb', sa.BigInteger, nullable=False),
    Column('ephemeral_gb', sa.BigInteger, nullable=False),
    Column('image_id', Id()),
    Column('image_properties', Json(), nullable=False),
    Column('shelved_image_id', Id()),
    Column('kernel_id', Text(255)),
    Column('ramdisk_id', Text(255)),
    Column('root_device_name', Text(255)),
    Column('config_drive', Text(16), nullable=False),
    Column('disk_config', Text(8), nullable=False),
    Column('key_name', Text(255)),
    Column('public_key', LongText()),
    Column('user_data', LongText()),
    Column('personality', Json()),
    Column('metadata', Json(), nullable=False),
    Column('trusted_image_certificates', Json()),
    Column('password', LongText()),
    # How it is reached: what the network service last said (see Server in db/servers.py).
    Column('network_info', Json(), nullable=False),
    Column('access_ip_v4', Text(64)),
    Column('access_ip_v6', Text(64)),
    # The request that made it.
    Column('reservation_id', Text(64), nullable=False),
    Column('launch_index', sa.Integer, nullable=False),
    Column('created_at', Timestamp(), nullable=False),
    Column('updated_at', Timestamp()),
    Column('launched_at', Timestamp()),
    Column('terminated_at', Timestamp()),
    Column('deleted_at', Timestamp()),
    sa.Index(None, 'project_id', 'deleted_at', 'created_at', 'id'),
    sa.Index(None, 'deleted_at', 'created_at', 'id'),
    sa.Index(None, 'host', 'deleted_at'),
    sa.Index(None, 'reservation_id'),
    sa.Index(None, 'server_group_id'),
)

server_tags = Table(
    'server_tags',
    metadata,
    Column('server_id', Id(), primary_key=True),
    Column('tag', Text(80), primary_key=True),
)

# The disks of a server: local ones, and volumes attached to it (destination_type volume).
block_devices = Table(
    'block_devices',
    metadata,
    number(),
    Column('uuid', Id(), nullable=False, unique=True),
    Column('server_id', Id(), nullable=False, index=True),
    Column('source_type', Text(16), nullable=False),
    Column('destination_type', Text(16), nullable=False),
    Column('boot_index', sa.Integer),
    Column('device_name', Text(255)),
    Column('device_type', Text(255)),
    Column('disk_bus', Text(255)),
    Column('guest_format', Text(255)),
    Column('volume_size', sa.Integer),
    Column('volume_type', Text(255)),
    Column('image_id', Id()),
    Column('snapshot_id', Id()),
    Column('volume_id', Id(), index=True),
    Column('attachment_id', Id()),
    Column('delete_on_termination', sa.Boolean, nullable=False),
    Column('tag', Text(60)),
    Column('created_at', Timestamp(), nullable=False),
)

# Who has such a token may connect to the console that it is for. It leads nowhere once the server has left `host`.
console_tokens = Table(
    'console_tokens',
    metadata,
    Column('hash', Text(64), primary_key=True),
    Column('server_id', Id(), nullable=False, index=True),
    Column('host', Text(255), nullable=False),
    Column('address', Text(255), nullable=False),
    Column('port', sa.Integer, nullable=False),
    Column('tls_port', sa.Integer),
    Column('internal_access_path', Text(255)),
    Column('expires_at', Timestamp(), nullable=False),
)

# What clients call instance actions: one row per change that was asked for.
server_actions = Table(
    'server_actions',
    metadata,
    number(),
    Column('server_id', Id(), nullable=False),
    Column('action', Text(255), nullable=False),
    Column('request_id', Text(64), nullable=False),
    Column('user_id', Text(255)),
    Column('project_id', Text(255)),
    Column('start_time', Timestamp(), nullable=False),
    Column('finish_time', Timestamp()),
    Column('updated_at', Timestamp()),
    Column('message', Text(255)),
    sa.UniqueConstraint('server_id', 'request_id'),
)

server_action_events = Table(
    'server_action_events',
    metadata,
    number(),
    Column('action_id', BigInteger, sa.ForeignKey('server_actions.id', ondelete='CASCADE'), nullable=False, index=True),
    Column('event', Text(255), nullable=False),
    Column('start_time', Timestamp(), nullable=False),
    Column('finish_time', Timestamp()),
    Column('result', Text(64)),
    Column('traceback', LongText()),
    Column('host', Text(255)),
    Column('details', Text(255)),
)

migrations = Table(
    'migrations',
    metadata,
    number(),
    Column('uuid', Id(), nullable=False, unique=True),
    Column('server_id', Id(), nullable=False, index=True),
    Column('migration_type', Text(32), nullable=False),
    Column('status', Text(64), nullable=False),
    Column('source_host', Text(255)),
    Column('source_node', Text(255)),
    Column('dest_host', Text(255)),
    Column('dest_node', Text(255)),
    Column('dest_ip', Text(64)),
    Column('old_flavor', Json()),
    Column('new_flavor', Json()),
    Column('old_vm_state', Text(64)),
    Column('user_id', Text(255)),
    Column('project_id', Text(255)),
    Column('progress', Json()),
    Column('created_at', Timestamp(), nullable=False),
    Column('updated_at', Timestamp()),
)

# Work that outlives its request. A row is claimed by setting `owner` and `lease_until`, and deleted when done.
tasks = Table(
    'tasks',
    metadata,
    number(),
    Column('kind', Text(64), nullable=False),
    Column('server_id', Id(), nullable=False, index=True),
    Column('context', Json(), nullable=False),
    Column('arguments', Json(), nullable=False),
    Column('action_id', BigInteger),
    Column('owner', Text(64)),
    Column('lease_until', Timestamp()),
    Column('not_before', Timestamp()),
    Column('attempts', sa.Integer, nullable=False),
    Column('created_at', Timestamp(), nullable=False),
)

# What the simulated hypervisor runs, so that a restart finds it again.
domains = Table(
    'domains',
    metadata,
    Column('server_id', Id(), primary_key=True),
    Column('host', Text(255), primary_key=True),
    Column('power_state', sa.Integer, nullable=False),
    Column('console_log', LongText(), nullable=False),
    Column('created_at', Timestamp(), nullable=False),
)
