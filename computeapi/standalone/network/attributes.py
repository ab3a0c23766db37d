"""The attributes of each kind of resource that clients can set and see."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from computeapi import errors
from computeapi.backends.network.local.ports import MAX_ADDRESSES, MAX_OPTIONS
from computeapi.backends.network.local.resources import KINDS, MAX_TAGS
from computeapi.backends.network.local.routers import MAX_ROUTES
from computeapi.context import Context
from computeapi.db.network_collection import ACCESS_AS_SHARED, BOOLEANS
from computeapi.db.network_projects import MAX_PROJECT_LENGTH
from computeapi.db.networks import EXTERNAL
from computeapi.standalone.schema import Schema, having, optional, wrapped

MAX_ITEMS = 200
NUMBER = re.compile(r'-?[0-9]{1,10}')

BOOLEAN = {'type': 'boolean'}
NAME = {'type': 'string', 'maxLength': 255}
PROJECT = {'type': 'string', 'minLength': 1, 'maxLength': MAX_PROJECT_LENGTH}
UUID = {
    'type': 'string',
    'pattern': r'^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}\Z',
    'maxLength': 36,
}
ADDRESS = {'type': 'string', 'maxLength': 64}
TAG = {'type': 'string', 'minLength': 1, 'maxLength': 255, 'pattern': r'^[^,/]*\Z'}
TAGS = {'type': 'array', 'items': TAG, 'maxItems': MAX_TAGS}


def number(minimum: int, maximum: int) -> dict[str, Any]:
    return {'type': 'integer', 'minimum': minimum, 'maximum': maximum}


def several(item: Mapping[str, Any], max_items: int = MAX_ITEMS) -> dict[str, Any]:
    return {'type': 'array', 'items': item, 'maxItems': max_items}


def record(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return having(properties, *required, additionalProperties=False, minProperties=1)


ROUTE = record({'destination': ADDRESS, 'nexthop': ADDRESS}, 'destination', 'nexthop')
POOL = record({'start': ADDRESS, 'end': ADDRESS}, 'start', 'end')
FIXED_IP = record({'subnet_id': UUID, 'ip_address': ADDRESS})
PAIR = record({'ip_address': ADDRESS, 'mac_address': ADDRESS}, 'ip_address')
DHCP_OPTION = record(
    {'opt_name': NAME, 'opt_value': optional(NAME), 'ip_version': {'enum': [4, 6, '4', '6']}}, 'opt_name'
)
GATEWAY = optional(
    having(
        {'network_id': UUID, 'enable_snat': BOOLEAN, 'external_fixed_ips': several(FIXED_IP)},
        additionalProperties=False,
        # null and an empty object both mean no gateway.
        **{'if': {'type': 'object', 'minProperties': 1}, 'then': {'required': ['network_id']}},
    )
)
IPV6_MODE = {'enum': ['slaac', 'dhcpv6-stateful', 'dhcpv6-stateless', None]}
VNIC_TYPE = {
    'enum': ['normal', 'direct', 'direct-physical', 'macvtap', 'baremetal', 'virtio-forwarder', 'smart-nic', 'vdpa']
}
PROFILE = {'type': ['object', 'null'], 'maxProperties': MAX_ITEMS}
PROTOCOL = {'type': ['string', 'integer', 'null'], 'maxLength': 32}
PORT_NUMBER = {'type': ['integer', 'null']}

PROVIDER = {
    'provider:network_type': {'enum': ['local', 'flat', 'vlan', 'vxlan', 'gre', 'geneve']},
    'provider:physical_network': {'type': ['string', 'null'], 'maxLength': 64},
    'provider:segmentation_id': {'type': ['integer', 'null'], 'minimum': 1, 'maximum': (1 << 24) - 1},
}

EMPTY: Mapping[str, Callable[[], Any]] = {'array': list, 'object': dict}
"""What null stands for, by type."""

PREFIX_LENGTHS = ('default_prefixlen', 'min_prefixlen', 'max_prefixlen')

# Attributes of all resources, and further ones for creation.
COMMON = {'description': NAME}
NEW = {'tenant_id': PROJECT, 'project_id': PROJECT}


class NeutronResource:
    """A kind of resource: its names, and the attributes that clients can set and see.

    both: the attributes of POST and PUT.  create, update: those of only one of them; required: those that POST
    requires. privileged, hidden: what only administrators may set, and see.  texts: numbers that are shown as text.
    key, kind: the plural in documents and in URLs, if it is not the name with an s.
    """

    def __init__(
        self,
        name: str,
        *required: str,
        both: Mapping[str, Any] = {},
        create: Mapping[str, Any] = {},
        update: Mapping[str, Any] = {},
        privileged: Iterable[str] = (),
        hidden: Iterable[str] = (),
        texts: Iterable[str] = (),
        key: str | None = None,
        kind: str | None = None,
    ):
        self.name, self.key = name, key or f'{name}s'
        self.kind = kind or self.key.replace('_', '-')
        self.is_tagged = KINDS[self.kind].collection.is_tagged
        new = {**NEW, 'tags': TAGS} if self.is_tagged else NEW
        self.create = Schema(wrapped(name, {**COMMON, **new, **both, **create}, *required))
        self.update = Schema(wrapped(name, {**COMMON, **both, **update}))
        self.privileged, self.hidden, self.texts = frozenset(privileged), frozenset(hidden), frozenset(texts)
        nullable = {name: schema['type'][0] for name, schema in both.items() if 'null' in schema.get('type', ())}
        self.empty = {name: EMPTY[kind] for name, kind in nullable.items() if kind in EMPTY}
        self.types = {name: schema.get('type', ()) for name, schema in {**both, **create}.items()}

    def facts(self, context: Context, schema: Schema, document: dict[str, Any]) -> dict[str, Any]:
        """The attributes in a body, in the backend's terms."""
        document = converted(self.name, self.types, document)
        schema.check(document)
        facts = {
            name: self.empty[name]() if value is None and name in self.empty else value
            for name, value in document[self.name].items()
        }
        # Anyone may set a privileged attribute of a new resource to false, its default.
        usual = {name for name in facts if facts[name] is False} if schema is self.create else set()
        forbidden = sorted(self.privileged & facts.keys() - usual)
        if forbidden and not context.is_admin:
            raise errors.Forbidden(f'{self.name}:{forbidden[0]} is disallowed by policy')
        if 'tenant_id' in facts:
            tenant_id = facts.pop('tenant_id')
            if facts.setdefault('project_id', tenant_id) != tenant_id:
                raise errors.Invalid("'project_id' and 'tenant_id' do not match")
        return facts

    def hidden_from(self, context: Context) -> frozenset[str]:
        return frozenset() if context.is_admin else self.hidden

    def view(self, context: Context, document: Mapping[str, Any], fields: list[str]) -> dict[str, Any]:
        """The document as this caller sees it. `fields`: the only attributes to show, if any are given."""
        hidden = self.hidden_from(context)
        return {
            name: str(value) if name in self.texts else _rendered(value)
            for name, value in document.items()
            if name not in hidden and (not fields or name in fields)
        }


def converted(name: str, types: Mapping[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """The body {name: {...}} with numbers and booleans that were sent as text converted."""
    member = document.get(name)
    if not isinstance(member, dict):
        return document
    return {name: {key: _converted(value, types.get(key, ())) for key, value in member.items()}}


def _converted(value: Any, types: str | Sequence[str]) -> Any:
    if isinstance(value, float) and value.is_integer() and 'integer' in types:
        return int(value)
    if not isinstance(value, str) or 'string' in types:
        return value
    if 'boolean' in types:
        return BOOLEANS.get(value.lower(), value)
    if 'integer' in types and NUMBER.fullmatch(value):
        return int(value)
    return value


def _rendered(value: Any) -> Any:
    """The value with all times formatted as text."""
    if isinstance(value, datetime):
        return value.strftime('%Y-%m-%dT%H:%M:%SZ')
    if isinstance(value, list):
        return [_rendered(item) for item in value]
    if isinstance(value, dict):
        return {name: _rendered(item) for name, item in value.items()}
    return value


RESOURCES = (
    NeutronResource(
        'network',
        both={
            'name': NAME,
            'admin_state_up': BOOLEAN,
            'shared': BOOLEAN,
            'router:external': BOOLEAN,
            'is_default': BOOLEAN,
            'port_security_enabled': BOOLEAN,
            'mtu': number(0, 65535),
            'qos_policy_id': optional(UUID),
            **PROVIDER,
        },
        privileged=('shared', 'router:external', 'is_default', *PROVIDER),
        hidden=PROVIDER,
    ),
    NeutronResource(
        'subnet',
        'network_id',
        both={
            'name': NAME,
            'gateway_ip': optional(ADDRESS),
            'dns_nameservers': optional(several(ADDRESS, 5)),
            'host_routes': optional(several(ROUTE, 20)),
            'enable_dhcp': BOOLEAN,
        },
        create={
            'network_id': UUID,
            'cidr': ADDRESS,
            'allocation_pools': optional(several(POOL)),
            'subnetpool_id': optional(UUID),
            'use_default_subnetpool': BOOLEAN,
            'prefixlen': number(0, 128),
            'ip_version': {'type': 'integer', 'enum': [4, 6]},
            'ipv6_ra_mode': IPV6_MODE,
            'ipv6_address_mode': IPV6_MODE,
        },
        update={'allocation_pools': several(POOL)},
    ),
    NeutronResource(
        'port',
        'network_id',
        both={
            'name': NAME,
            'admin_state_up': BOOLEAN,
            'port_security_enabled': BOOLEAN,
            'device_id': NAME,
            'device_owner': NAME,
            'mac_address': optional(ADDRESS),
            'fixed_ips': several(FIXED_IP, MAX_ADDRESSES),
            'security_groups': {**optional(several(UUID)), 'uniqueItems': True},
            'allowed_address_pairs': optional(several(PAIR, 10)),
            'extra_dhcp_opts': optional(several(DHCP_OPTION, MAX_OPTIONS)),
            'dns_name': NAME,
            'binding:vnic_type': VNIC_TYPE,
            'binding:host_id': optional(NAME),
            'binding:profile': PROFILE,
            'qos_policy_id': optional(UUID),
        },
        create={'network_id': UUID},
        privileged=('binding:host_id', 'binding:profile'),
        hidden=(
            'binding:host_id',
            'binding:profile',
            'binding:vif_type',
            'binding:vif_details',
            'resource_request',
        ),
    ),
    NeutronResource(
        'router',
        both={
            'name': NAME,
            'admin_state_up': BOOLEAN,
            'external_gateway_info': GATEWAY,
        },
        update={'routes': optional(several(ROUTE, MAX_ROUTES))},
    ),
    NeutronResource(
        'floatingip',
        'floating_network_id',
        both={'port_id': optional(UUID), 'fixed_ip_address': optional(ADDRESS)},
        create={'floating_network_id': UUID, 'floating_ip_address': optional(ADDRESS), 'subnet_id': optional(UUID)},
        privileged=('floating_ip_address',),
    ),
    NeutronResource(
        'address_scope',
        'ip_version',
        both={'name': NAME, 'shared': BOOLEAN},
        create={'ip_version': {'type': 'integer', 'enum': [4, 6]}},
        privileged=('shared',),
    ),
    NeutronResource(
        'subnetpool',
        'prefixes',
        both={
            'name': NAME,
            'prefixes': {**several(ADDRESS), 'minItems': 1},
            **dict.fromkeys(PREFIX_LENGTHS, number(0, 128)),
            'default_quota': {'type': ['integer', 'null'], 'minimum': 0, 'maximum': 2**31 - 1},
            'address_scope_id': optional(UUID),
            'is_default': BOOLEAN,
        },
        create={'shared': BOOLEAN},
        privileged=('shared', 'is_default'),
        texts=PREFIX_LENGTHS,
    ),
    NeutronResource(
        'rbac_policy',
        'object_type',
        'object_id',
        'action',
        'target_tenant',
        both={'target_tenant': PROJECT},
        create={
            'object_type': {'enum': ['address_scope', 'network', 'qos_policy', 'subnetpool']},
            'object_id': UUID,
            'action': {'enum': [ACCESS_AS_SHARED, EXTERNAL]},
        },
        key='rbac_policies',
    ),
    NeutronResource(
        'flavor',
        'service_type',
        both={'name': NAME, 'enabled': BOOLEAN},
        create={'service_type': {'type': 'string', 'minLength': 1, 'maxLength': 255}},
        privileged=('name', 'enabled', 'description', 'service_type'),
    ),
    NeutronResource(
        'service_profile',
        both={
            'driver': {'type': 'string', 'maxLength': 1024},
            'metainfo': {'type': 'string', 'maxLength': 4096},
            'enabled': BOOLEAN,
        },
        privileged=('driver', 'metainfo', 'enabled', 'description'),
        kind='service_profiles',
    ),
    NeutronResource('security_group', both={'name': NAME, 'stateful': BOOLEAN}),
    NeutronResource(
        'security_group_rule',
        'security_group_id',
        'direction',
        create={
            'security_group_id': UUID,
            'direction': {'enum': ['ingress', 'egress']},
            'ethertype': {'type': ['string', 'null'], 'maxLength': 16},
            'protocol': PROTOCOL,
            'port_range_min': PORT_NUMBER,
            'port_range_max': PORT_NUMBER,
            'remote_ip_prefix': optional(ADDRESS),
            'remote_group_id': {'type': ['string', 'null'], 'maxLength': 64},
        },
    ),
)
"""Every kind."""
