"""Reads networks of a real cloud for a document."""

from typing import Any

from computeapi.kit.cloud_files.clone_reader import Json, Reader, moved, named, project_of

TIMES = ('created_at', 'updated_at')
COMMON = ('id', 'name', 'description', 'tags', *TIMES)
REVISION = {'revision_number': 'revision'}
NETWORK = (*COMMON, 'shared', 'is_default', 'admin_state_up', 'port_security_enabled', 'mtu')
PROVIDER = {
    'router:external': 'external',
    'provider:network_type': 'network_type',
    'provider:physical_network': 'physical_network',
    'provider:segmentation_id': 'segmentation_id',
    **REVISION,
}
SUBNET = (
    *(*COMMON, 'cidr', 'enable_dhcp', 'allocation_pools', 'dns_nameservers', 'host_routes', 'ipv6_ra_mode'),
    'ipv6_address_mode',
)
RULE = (
    *('id', 'description', 'direction', 'ethertype', 'protocol', 'port_range_min', 'port_range_max'),
    *('remote_ip_prefix', *TIMES),
)
PORT = (
    *(*COMMON, 'mac_address', 'admin_state_up', 'port_security_enabled', 'allowed_address_pairs', 'dns_name'),
    'extra_dhcp_opts',
)
GATEWAY = 'network:router_gateway'
INTERFACES = (
    'network:router_interface',
    'network:ha_router_replicated_interface',
    'network:router_interface_distributed',
)


def ports(reader: Reader) -> list[Json]:
    return reader.all('network', '/v2.0/ports', 'ports')


def networks(reader: Reader, all_ports: list[Json]) -> dict[str, Any]:
    """The network sections; `ports` without those of servers and routers."""
    subnets: dict[str, list[Json]] = {}
    for each in reader.all('network', '/v2.0/subnets', 'subnets'):
        entry = named(each, SUBNET) | project_of(each) | moved(each, REVISION) | {'gateway_ip': each.get('gateway_ip')}
        subnets.setdefault(each['network_id'], []).append(entry)
    return {
        'networks': [
            named(each, NETWORK) | moved(each, PROVIDER) | project_of(each) | {'subnets': subnets.get(each['id'], [])}
            for each in reader.all('network', '/v2.0/networks', 'networks')
        ],
        'security_groups': [_group(each) for each in reader.all('network', '/v2.0/security-groups', 'security_groups')],
        'routers': [_router(each, all_ports) for each in reader.all('network', '/v2.0/routers', 'routers')],
        'ports': [
            port_of(each) | named(each, ('device_id', 'device_owner'))
            for each in all_ports
            if not each.get('device_owner', '').startswith(('compute:', GATEWAY, *INTERFACES))
        ],
        'floating_ips': [_floating_ip(each) for each in reader.all('network', '/v2.0/floatingips', 'floatingips')],
    }


def _group(each: Json) -> Json:
    rules = [
        named(rule, RULE) | moved(rule, {'remote_group_id': 'remote_group', **REVISION})
        for rule in each.get('security_group_rules', ())
    ]
    entry = named(each, (*COMMON, 'stateful')) | moved(each, REVISION) | project_of(each)
    return entry | {'rules': rules}


def _router(each: Json, all_ports: list[Json]) -> Json:
    entry = named(each, (*COMMON, 'admin_state_up', 'routes')) | moved(each, REVISION) | project_of(each)
    gateway = each.get('external_gateway_info') or {}
    entry['enable_snat'] = gateway.get('enable_snat', True)
    own = [port for port in all_ports if port['device_id'] == each['id']]
    plugs = [_plug(port) for port in own if port['device_owner'] in INTERFACES]
    outside = next((_plug(port) for port in own if port['device_owner'] == GATEWAY), None)
    if outside is None and gateway.get('network_id'):
        outside = {'network': gateway['network_id']}
    return entry | ({'gateway': outside} if outside else {}) | ({'interfaces': plugs} if plugs else {})


def _plug(port: Json) -> Json:
    facts = {'id': port['id'], 'network': port['network_id'], 'mac_address': port['mac_address']}
    facts |= named(port, TIMES) | moved(port, REVISION)
    return facts | {'fixed_ips': _fixed(port)}


def _fixed(port: Json) -> list[Json]:
    return [{'subnet': each['subnet_id'], 'ip_address': each['ip_address']} for each in port.get('fixed_ips', ())]


def port_of(port: Json) -> Json:
    """The properties of a port, wherever it is in the document."""
    entry = named(port, PORT) | project_of(port) | moved(port, REVISION)
    entry |= {'network': port['network_id'], 'fixed_ips': _fixed(port)}
    entry |= {'security_groups': port.get('security_groups', []), 'vnic_type': port.get('binding:vnic_type', 'normal')}
    return entry


def _floating_ip(each: Json) -> Json:
    facts = {
        'floating_network_id': 'network',
        'floating_ip_address': 'address',
        'port_id': 'port',
        'fixed_ip_address': 'fixed_address',
        **REVISION,
    }
    return named(each, ('id', 'description', 'tags', *TIMES)) | moved(each, facts) | project_of(each)
