"""Tables of the network service."""

from typing import Any

import sqlalchemy as sa

from computeapi.db.tables.types import BigInteger, Id, Text, Timestamp, metadata


def _resource(table: str, *columns: sa.schema.SchemaItem) -> sa.Table:
    """A table of resources that a project owns: the common columns, then `columns`."""
    return sa.Table(
        table,
        metadata,
        sa.Column('id', Id(), primary_key=True),
        sa.Column('project_id', Text(255), nullable=False, index=True),
        sa.Column('name', Text(255), nullable=False, default=''),
        sa.Column('description', Text(255), nullable=False, default=''),
        sa.Column('created_at', Timestamp(), nullable=False),
        sa.Column('updated_at', Timestamp(), nullable=False),
        _revision(),
        *columns,
    )


def _revision() -> sa.Column[int]:
    """The revision number, which counts the changes of the row."""
    return sa.Column('revision_number', sa.Integer(), nullable=False, default=1, server_default='1')


def _flag(name: str, default: bool) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False, default=default)


def _documents(name: str, default: type = list) -> sa.Column[Any]:
    """A JSON column that is only read and written as a whole."""
    return sa.Column(name, sa.JSON(), nullable=False, default=default)


def _reference(name: str, target: str, *, optional: bool = False, gone: str | None = None) -> sa.Column[str]:
    """The ID of another row; `gone`: the ON DELETE action; without one that row cannot be deleted."""
    return sa.Column(name, Id(), sa.ForeignKey(f'{target}.id', ondelete=gone), nullable=optional, index=True)


def _qos_policy() -> sa.Column[str]:
    """No foreign key, which would force SQLite to recreate the table; users of a policy lock it instead."""
    return sa.Column('qos_policy_id', Id(), index=True)


# A project's row is locked while something is created for it, so that quota checks are serialized.
quota_locks = sa.Table(
    'network_quota_locks',
    metadata,
    sa.Column('project_id', Text(255), primary_key=True),
)

quotas = sa.Table(
    'network_quotas',
    metadata,
    sa.Column('project_id', Text(255), primary_key=True),
    sa.Column('resource', Text(64), primary_key=True),
    sa.Column('limit', sa.Integer(), nullable=False),
)

# The servers affected by a change, until others have been notified.
notices = sa.Table(
    'network_notices',
    metadata,
    sa.Column('notice_id', Id(), primary_key=True),
    sa.Column('server_id', Text(255), primary_key=True),
)

tags = sa.Table(
    'network_tags',
    metadata,
    sa.Column('resource_id', Id(), primary_key=True),
    sa.Column('tag', Text(255), primary_key=True),
)

qos_policies = _resource('qos_policies', _flag('shared', False), _flag('is_default', False))

qos_rules = sa.Table(
    'qos_rules',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('project_id', Text(255), nullable=False, index=True),
    sa.Column('created_at', Timestamp(), nullable=False),
    sa.Column('updated_at', Timestamp(), nullable=False),
    _revision(),
    _reference('qos_policy_id', 'qos_policies', gone='CASCADE'),
    sa.Column('type', Text(32), nullable=False),
    # '' if a rule has none.
    sa.Column('direction', Text(16), nullable=False, default=''),
    sa.Column('min_kbps', sa.Integer()),
    sa.Column('min_kpps', sa.Integer()),
    sa.Column('max_kbps', sa.Integer()),
    sa.Column('max_burst_kbps', sa.Integer()),
    sa.Column('dscp_mark', sa.Integer()),
    sa.UniqueConstraint('qos_policy_id', 'type', 'direction'),
)

networks = _resource(
    'networks',
    _flag('admin_state_up', True),
    _flag('shared', False),
    _flag('external', False),
    _flag('is_default', False),
    _flag('auto_allocated', False),
    _flag('port_security_enabled', True),
    sa.Column('mtu', sa.Integer(), nullable=False, default=1500),
    _qos_policy(),
    # The provider attributes set by an administrator; they have no effect on how the network is implemented.
    sa.Column('network_type', Text(32), nullable=False, default='local', server_default='local'),
    sa.Column('physical_network', Text(64)),
    sa.Column('segmentation_id', sa.Integer()),
)

address_scopes = _resource(
    'address_scopes',
    sa.Column('ip_version', sa.Integer(), nullable=False),
    _flag('shared', False),
)

subnet_pools = _resource(
    'subnet_pools',
    sa.Column('ip_version', sa.Integer(), nullable=False),
    _documents('prefixes'),
    sa.Column('default_prefixlen', sa.Integer(), nullable=False),
    sa.Column('min_prefixlen', sa.Integer(), nullable=False),
    sa.Column('max_prefixlen', sa.Integer(), nullable=False),
    sa.Column('default_quota', sa.Integer()),
    _flag('shared', False),
    _flag('is_default', False),
    _reference('address_scope_id', 'address_scopes', optional=True),
)

# The project that an owner shares something with; `*` is everybody.
rbac_policies = _resource(
    'rbac_policies',
    sa.Column('object_type', Text(32), nullable=False),
    sa.Column('object_id', Id(), nullable=False, index=True),
    sa.Column('action', Text(32), nullable=False),
    sa.Column('target_project', Text(255), nullable=False),
    sa.UniqueConstraint('object_id', 'action', 'target_project'),
)

network_flavors = _resource(
    'network_flavors',
    sa.Column('service_type', Text(255), nullable=False),
    _flag('enabled', True),
)

network_service_profiles = _resource(
    'network_service_profiles',
    sa.Column('driver', Text(1024), nullable=False, default=''),
    sa.Column('metainfo', Text(4096), nullable=False, default=''),
    _flag('enabled', True),
)

network_flavor_profiles = sa.Table(
    'network_flavor_profiles',
    metadata,
    sa.Column('flavor_id', Id(), sa.ForeignKey('network_flavors.id', ondelete='CASCADE'), primary_key=True),
    sa.Column('service_profile_id', Id(), sa.ForeignKey('network_service_profiles.id'), primary_key=True, index=True),
)

subnets = _resource(
    'subnets',
    _reference('network_id', 'networks', gone='CASCADE'),
    sa.Column('ip_version', sa.Integer(), nullable=False),
    sa.Column('cidr', Text(64), nullable=False),
    sa.Column('gateway_ip', Text(64)),
    _flag('enable_dhcp', True),
    sa.Column('ipv6_ra_mode', Text(32)),
    sa.Column('ipv6_address_mode', Text(32)),
    _documents('allocation_pools'),
    _documents('dns_nameservers'),
    _documents('host_routes'),
    # The search for a free address starts after the last one assigned, so that released ones are not reused at once.
    sa.Column('last_address', Text(64)),
    # The interface of a host on which the addresses are, according to an administrator.
    sa.Column('interface', Text(255)),
    _reference('subnetpool_id', 'subnet_pools', optional=True),
)

ports = _resource(
    'ports',
    _reference('network_id', 'networks'),
    _qos_policy(),
    sa.Column('mac_address', Text(32), nullable=False),
    _flag('admin_state_up', True),
    _flag('port_security_enabled', True),
    sa.Column('device_id', Text(255), nullable=False, default='', index=True),
    sa.Column('device_owner', Text(255), nullable=False, default=''),
    sa.Column('host', Text(255), nullable=False, default=''),
    sa.Column('vnic_type', Text(32), nullable=False, default='normal'),
    sa.Column('dns_name', Text(255), nullable=False, default=''),
    _documents('binding_profile', dict),
    _documents('allowed_address_pairs'),
    _documents('extra_dhcp_opts'),
    sa.UniqueConstraint('network_id', 'mac_address'),
)

fixed_ips = sa.Table(
    'fixed_ips',
    metadata,
    sa.Column('id', BigInteger, primary_key=True, autoincrement=True),
    _reference('port_id', 'ports', gone='CASCADE'),
    _reference('subnet_id', 'subnets'),
    sa.Column('ip_address', Text(64), nullable=False),
    sa.UniqueConstraint('subnet_id', 'ip_address'),
)

# Addresses that are not assigned to ports.
reserved_addresses = sa.Table(
    'reserved_addresses',
    metadata,
    sa.Column('subnet_id', Id(), sa.ForeignKey('subnets.id', ondelete='CASCADE'), primary_key=True),
    sa.Column('ip_address', Text(64), primary_key=True),
)

security_groups = _resource('security_groups', _flag('stateful', True))

security_group_rules = sa.Table(
    'security_group_rules',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('project_id', Text(255), nullable=False, index=True),
    sa.Column('description', Text(255), nullable=False, default=''),
    sa.Column('created_at', Timestamp(), nullable=False),
    sa.Column('updated_at', Timestamp(), nullable=False),
    _revision(),
    _reference('security_group_id', 'security_groups', gone='CASCADE'),
    sa.Column('direction', Text(16), nullable=False),
    sa.Column('ethertype', Text(16), nullable=False),
    sa.Column('protocol', Text(32)),
    sa.Column('port_range_min', sa.Integer()),
    sa.Column('port_range_max', sa.Integer()),
    sa.Column('remote_ip_prefix', Text(64)),
    sa.Column('normalized_cidr', Text(64)),
    _reference('remote_group_id', 'security_groups', optional=True, gone='CASCADE'),
)

port_security_groups = sa.Table(
    'port_security_groups',
    metadata,
    sa.Column('port_id', Id(), sa.ForeignKey('ports.id', ondelete='CASCADE'), primary_key=True),
    sa.Column('security_group_id', Id(), sa.ForeignKey('security_groups.id'), primary_key=True, index=True),
)

routers = _resource(
    'routers',
    _flag('admin_state_up', True),
    _flag('enable_snat', True),
    _documents('routes'),
)

floating_ips = sa.Table(
    'floating_ips',
    metadata,
    sa.Column('id', Id(), primary_key=True),
    sa.Column('project_id', Text(255), nullable=False, index=True),
    sa.Column('description', Text(255), nullable=False, default=''),
    sa.Column('created_at', Timestamp(), nullable=False),
    sa.Column('updated_at', Timestamp(), nullable=False),
    _revision(),
    _reference('floating_network_id', 'networks'),
    sa.Column('floating_ip_address', Text(64), nullable=False, index=True),
    _reference('port_id', 'ports', optional=True),
    sa.Column('fixed_ip_address', Text(64)),
    sa.UniqueConstraint('floating_network_id', 'floating_ip_address'),
    sa.UniqueConstraint('port_id', 'fixed_ip_address'),
)

dns_domains = sa.Table(
    'dns_domains',
    metadata,
    sa.Column('domain', Text(255), primary_key=True),
    sa.Column('scope', Text(16), nullable=False),
    # None: the domain is available to everybody.
    sa.Column('project_id', Text(255)),
    sa.Column('availability_zone', Text(255)),
)

dns_entries = sa.Table(
    'dns_entries',
    metadata,
    sa.Column('domain', Text(255), sa.ForeignKey('dns_domains.domain', ondelete='CASCADE'), primary_key=True),
    sa.Column('name', Text(255), primary_key=True),
    sa.Column('project_id', Text(255), nullable=False),
    sa.Column('ip_address', Text(64), nullable=False),
)
