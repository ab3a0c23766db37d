"""Exports networks to a document."""

from computeapi.db.network_collection import EVERYBODY
from computeapi.db.ports import ROUTER_GATEWAY, ROUTER_INTERFACE
from computeapi.kit.cloud_files.content import Values
from computeapi.kit.cloud_files.export import Beside, Export, told_of
from computeapi.kit.cloud_files.schema import PLUG, RULE, SUBNET

OF_SERVERS = 'compute:'


class Ports:
    """All ports, with their addresses and security groups."""

    def __init__(self, export: Export):
        self.export = export
        self.fixed = export.grouped('fixed_ips', 'port_id')
        self.groups = export.grouped('port_security_groups', 'port_id')
        self.by_id = {row['id']: row for row in export.rows('ports')}

    def beside(self, row: Values) -> Values:
        """The properties of a port that are not in its row."""
        subnets, groups = self.export.names('subnets'), self.export.names('security_groups')
        own = self.fixed.get(row['id'], ())
        fixed = [{'subnet': subnets[each['subnet_id']], 'ip_address': each['ip_address']} for each in own]
        held = [groups[each['security_group_id']] for each in self.groups.get(row['id'], ())]
        return {'fixed_ips': fixed, 'security_groups': held}

    def plug(self, row: Values) -> Values:
        """The connection of a router to a network."""
        facts = {'id': row['id'], 'network': self.export.called('networks', row['network_id'])}
        facts |= self.export.entry(PLUG, row)
        return facts | {'mac_address': row['mac_address'], 'fixed_ips': self.beside(row)['fixed_ips']}


def export(export: Export) -> Ports:
    """Export networks. Ports of servers are part of their servers."""
    beside = {'tags': export.tags('network_tags')}
    subnets = export.grouped('subnets', 'network_id')
    for row, entry in export.section('networks', beside=beside):
        for subnet in subnets.get(row['id'], ()):
            exported = (
                export.entry(SUBNET, subnet) | {'gateway_ip': subnet['gateway_ip']} | told_of(subnet['id'], beside)
            )
            if subnet['project_id'] == row['project_id']:
                del exported['project']
            entry.setdefault('subnets', []).append(exported)
    rules = export.grouped('security_group_rules', 'security_group_id')
    for row, entry in export.section('security_groups', beside=beside):
        entry['rules'] = [export.entry(RULE, rule) for rule in rules.get(row['id'], ())]
    ports = Ports(export)
    _export_routers(export, ports, beside)
    others = ('network:router', OF_SERVERS)
    free = [row['id'] for row in ports.by_id.values() if not row['device_owner'].startswith(others)]
    wanted = {*free, *_given(export)}
    for row, entry in export.section('ports', lambda row: row['id'] in wanted, beside=beside):
        entry |= ports.beside(row)
        if row['device_owner'].startswith(OF_SERVERS):
            # These follow from the server.
            for name in ('device_id', 'device_owner', 'host'):
                entry.pop(name, None)
    for row, entry in export.section('floating_ips', beside=beside):
        if row['port_id'] is not None and row['port_id'] not in wanted:
            entry['port'] = row['port_id']
    # Networks say themselves that they are for everybody.
    export.leaves_out('sharing of networks (RBAC)', 'rbac_policies', {'target_project': EVERYBODY})
    for what, table in {
        'subnet pools': 'subnet_pools',
        'policies of quality of service': 'qos_policies',
        'DNS domains': 'dns_domains',
    }.items():
        export.leaves_out(what, table)
    return ports


def _export_routers(export: Export, ports: Ports, beside: Beside) -> None:
    joined: dict[tuple[str, str], list[Values]] = {}
    for port in ports.by_id.values():
        joined.setdefault((port['device_id'], port['device_owner']), []).append(ports.plug(port))
    for row, entry in export.section('routers', beside=beside):
        for gateway in joined.get((row['id'], ROUTER_GATEWAY), ()):
            entry['gateway'] = gateway
        interfaces = joined.get((row['id'], ROUTER_INTERFACE), ())
        if interfaces:
            entry['interfaces'] = interfaces


def _given(export: Export) -> set[str]:
    """Ports of servers that were not created for them."""
    found = set()
    for row in export.servers():
        found |= {each['port_id'] for each in row['network_info'] if not each['created']}
    return found
