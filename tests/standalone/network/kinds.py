"""The kinds of resources that share the same lifecycle, and the format of errors."""

UNKNOWN = '5b3f1c5e-0000-4000-8000-000000000000'

# For each kind: its name, and a body that creates one; {network} and {group} are alice's.
KINDS = {
    'networks': ('network', {}),
    'subnets': ('subnet', {'network_id': '{network}', 'cidr': '192.0.2.0/24', 'ip_version': 4}),
    'subnetpools': ('subnetpool', {'name': 'pool', 'prefixes': ['10.40.0.0/16']}),
    'ports': ('port', {'network_id': '{network}'}),
    'routers': ('router', {}),
    'floatingips': ('floatingip', {'floating_network_id': '{public}'}),
    'security-groups': ('security_group', {'name': 'web'}),
    'security-group-rules': ('security_group_rule', {'security_group_id': '{group}', 'direction': 'ingress'}),
}


def fault(response):
    assert set(response.json['NeutronError']) == {'type', 'message', 'detail'}
    return response.json['NeutronError']['type'], response.json['NeutronError']['message']
