"""Networks, their subnets, security groups, routers, ports and floating IPs."""

import hashlib
import ipaddress
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from computeapi.backends.network.local import addresses
from computeapi.db import bulk
from computeapi.db.ports import ROUTER_GATEWAY, ROUTER_INTERFACE
from computeapi.errors import Invalid
from computeapi.kit.cloud_files.content import CloudContent, Entry, Values
from computeapi.kit.cloud_files.document import CloudFileError, Place
from computeapi.kit.cloud_files.schema import PLUG, RULE, Schema

DEFAULT_GROUP = 'default'
VERSIONS = ('IPv4', 'IPv6')
UNSAID: Values = {
    'name': '',
    'description': '',
    'revision_number': 1,
    'qos_policy_id': None,
    'mac_address': None,
    'admin_state_up': True,
    'port_security_enabled': True,
    'host': '',
    'vnic_type': 'normal',
    'dns_name': '',
    'binding_profile': {},
    'allowed_address_pairs': [],
    'extra_dhcp_opts': [],
}
"""The defaults of a port."""

Fixed = Sequence[tuple[str, str]]
"""Subnets and addresses."""
Given = tuple[Fixed, Sequence[str]]
"""The addresses and security groups of a port."""


class AddressBook:
    """Which addresses are in use, and which are free.

    Addresses in the document are reserved before any other is assigned, wherever they are in it.
    """

    def __init__(self, content: CloudContent):
        self.content = content
        self.taken: dict[str, set[str]] = defaultdict(set)
        self.macs: dict[str, set[str]] = defaultdict(set)
        self._free: dict[str, Iterator[str]] = {}
        self._by_version: dict[str, Sequence[tuple[Values, bool]]] = {}
        # What the ports of the section were given.
        self.given: dict[str, Given] = {}
        for table in ('fixed_ips', 'reserved_addresses'):
            for row in bulk.rows_of(content.connection, table, ['subnet_id', 'ip_address']):
                self.taken[row['subnet_id']].add(row['ip_address'])
        for row in bulk.rows_of(content.connection, 'ports', ['network_id', 'mac_address']):
            self.macs[row['network_id']].add(row['mac_address'])
        self.subnets: dict[str, list[Values]] = defaultdict(list)
        for subnet in content.index('subnets').rows.values():
            self.subnets[subnet['network_id']].append(subnet)

    def subnet_of(self, network_id: str, address: str, place: Place) -> Values:
        for subnet in self.subnets[network_id]:
            if ipaddress.ip_address(address) in ipaddress.ip_network(subnet['cidr']):
                return subnet
        raise CloudFileError(place, f'{address} is not on any subnet of the network')

    def usual(self, network_id: str, mac: str) -> Fixed:
        """The default addresses of a port: one of each IP version."""
        given, versions = [], set()
        for subnet, stateless in self._usual(network_id):
            if stateless:
                given.append((subnet['id'], addresses.eui64(subnet['cidr'], mac)))
            elif subnet['ip_version'] not in versions and (address := self.free(subnet)):
                versions.add(subnet['ip_version'])
                given.append((subnet['id'], address))
        return given

    def _usual(self, network_id: str) -> Sequence[tuple[Values, bool]]:
        """The subnets of a network, IPv4 first, and whether their addresses are derived from MAC addresses."""
        if network_id not in self._by_version:
            subnets = sorted(self.subnets[network_id], key=lambda each: each['ip_version'])
            self._by_version[network_id] = [(subnet, addresses.is_stateless(subnet)) for subnet in subnets]
        return self._by_version[network_id]

    def free(self, subnet: Values) -> str | None:
        """A free address, which is taken now; None if the subnet has none."""
        if subnet['id'] not in self._free:
            self._free[subnet['id']] = addresses.after(subnet['allocation_pools'], subnet.get('last_address'))
        taken = self.taken[subnet['id']]
        for address in self._free[subnet['id']]:
            if address not in taken:
                taken.add(address)
                return address
        return None

    def mac(self, network_id: str, port_id: str) -> str:
        taken, end = self.macs[network_id], hashlib.sha256(port_id.encode()).digest()[:3]
        while (mac := f'{addresses.MAC_PREFIX}:{end.hex(":")}') in taken:
            end = ((int.from_bytes(end, 'big') + 1) % 2**24).to_bytes(3, 'big')
        taken.add(mac)
        return mac


def load(content: CloudContent) -> AddressBook:
    for place, entry in content.entries('networks'):
        row = content.make('networks', entry, place)
        _tag(content, row['id'], entry)
        for number, subnet in enumerate(entry.get('subnets', ())):
            _load_subnet(content, subnet, row, (*place, 'subnets', number))
    _load_security_groups(content)
    book = AddressBook(content)
    _reserve_given_addresses(content, book)
    for place, entry in content.entries('routers'):
        _load_router(content, book, entry, place)
    for place, entry in content.entries('ports'):
        row = content.make('ports', entry, place)
        book.given[row['id']] = finish_port(content, book, row, entry, place)
        _tag(content, row['id'], entry)
    return book


def _tag(content: CloudContent, resource_id: str, entry: Entry) -> None:
    for tag in sorted(set(entry.get('tags', ()))):
        content.add('network_tags', resource_id=resource_id, tag=tag)


def _load_subnet(content: CloudContent, entry: Entry, network: Values, place: Place) -> None:
    try:
        prefix = addresses.parse_cidr(entry['cidr'])
        gateway = entry['gateway_ip'] if 'gateway_ip' in entry else addresses.first_host(prefix)
        pools = entry.get('allocation_pools') or addresses.default_pools(prefix, gateway)
    except (ValueError, Invalid) as error:
        raise CloudFileError((*place, 'cidr'), str(error)) from None
    row = content.make('subnets', {'project': network['project_id'] or None, **entry}, place)
    row |= {'network_id': network['id'], 'cidr': str(prefix), 'ip_version': prefix.version}
    row |= {'gateway_ip': gateway, 'allocation_pools': pools}
    _tag(content, row['id'], entry)


def _load_security_groups(content: CloudContent) -> None:
    made = []
    for place, entry in content.entries('security_groups'):
        if entry.get('name') == DEFAULT_GROUP:
            content.unique_name('security_groups', DEFAULT_GROUP, (*place, 'name'), content.project(entry, place))
        row = content.make('security_groups', entry, place)
        _tag(content, row['id'], entry)
        made.append((place, entry, row))
    for place, entry, row in made:
        if 'rules' not in entry:
            _add_default_rules(content, row)
        for number, rule in enumerate(entry.get('rules', ())):
            at = (*place, 'rules', number)
            _add_rule(content, row, content.values(RULE, rule, at, row['project_id']))


def _add_rule(content: CloudContent, group: Values, rule: Values) -> None:
    prefix = rule.get('remote_ip_prefix')
    times = {name: rule.get(name) or group['created_at'] for name in ('created_at', 'updated_at')}
    known = {
        'id': rule.get('id') or content.made_id('rules', group['id']),
        'normalized_cidr': str(ipaddress.ip_network(prefix, strict=False)) if prefix else None,
        'description': rule.get('description') or '',
        'revision_number': rule.get('revision_number', 1),
    }
    facts = ('direction', 'ethertype', 'protocol', 'port_range_min', 'port_range_max', 'remote_group_id')
    given = {name: rule.get(name) for name in facts} | {'remote_ip_prefix': prefix}
    owned = {'security_group_id': group['id'], 'project_id': group['project_id']}
    content.add('security_group_rules', **known, **given, **owned, **times)


def _add_default_rules(content: CloudContent, group: Values) -> None:
    """Add the rules of a new group."""
    for version in VERSIONS:
        _add_rule(content, group, {'direction': 'egress', 'ethertype': version})


def default_group(content: CloudContent, project_id: str) -> str:
    """The default group of a project, created if it does not exist."""
    known = content.default_groups
    if project_id not in known:
        index = content.index('security_groups')
        rows = (index.rows[group_id] for group_id in index.named.get(DEFAULT_GROUP, ()))
        found = next((row for row in rows if row['project_id'] == project_id), None)
        known[project_id] = str((found or _new_default_group(content, project_id))['id'])
    return known[project_id]


def _new_default_group(content: CloudContent, project_id: str) -> Values:
    entry = {'name': DEFAULT_GROUP, 'project': project_id, 'description': 'Default security group'}
    row = content.make('security_groups', entry, ())
    _add_default_rules(content, row)
    for version in VERSIONS:
        _add_rule(content, row, {'direction': 'ingress', 'ethertype': version, 'remote_group_id': row['id']})
    return row


def _reserve_given_addresses(content: CloudContent, book: AddressBook) -> None:
    """Reserve every address that is given in the document."""
    stated = [entry for section in ('ports', 'routers') for _, entry in content.entries(section)]
    for _, server in content.entries('servers'):
        stated += server.get('networks', ())
    for _, router in content.entries('routers'):
        stated += [*router.get('interfaces', ()), router.get('gateway', {})]
    texts = {fixed['ip_address'] for each in stated for fixed in each.get('fixed_ips', ()) if 'ip_address' in fixed}
    texts |= {entry['address'] for _, entry in content.entries('floating_ips') if entry.get('address')}
    for subnets in book.subnets.values():
        for subnet in subnets:
            # An address may be in several networks; reserving too many does no harm.
            book.taken[subnet['id']] |= texts


def finish_port(content: CloudContent, book: AddressBook, row: Values, entry: Entry, place: Place) -> Given:
    """Add what belongs to a port besides its row."""
    network_id = row['network_id']
    stated = row.get('mac_address')
    row['mac_address'] = stated or book.mac(network_id, row['id'])
    fixed = _fixed(content, book, network_id, row['mac_address'], entry, place)
    for subnet_id, address in fixed:
        content.add('fixed_ips', port_id=row['id'], subnet_id=subnet_id, ip_address=address)
    groups = _groups(content, row, entry, place)
    for group_id in groups:
        content.add('port_security_groups', port_id=row['id'], security_group_id=group_id)
    return fixed, groups


def _fixed(content: CloudContent, book: AddressBook, network_id: str, mac: str, entry: Entry, place: Place) -> Fixed:
    if 'fixed_ips' not in entry:
        return book.usual(network_id, mac)
    found = []
    for number, wanted in enumerate(entry['fixed_ips']):
        at, address = (*place, 'fixed_ips', number), wanted.get('ip_address')
        if wanted.get('subnet'):
            subnet = content.row('subnets', content.resolve('subnets', wanted['subnet'], (*at, 'subnet')))
        elif address:
            subnet = book.subnet_of(network_id, address, at)
        else:
            raise CloudFileError(at, 'neither a subnet nor an address is given')
        address = address or book.free(subnet)
        if address is None:
            raise CloudFileError(at, 'the subnet has no free address')
        found.append((subnet['id'], address))
    return found


def _groups(content: CloudContent, row: Values, entry: Entry, place: Place) -> Sequence[str]:
    """The IDs of the security groups of a port."""
    if not row['port_security_enabled'] or row['device_owner'].startswith('network:'):
        return ()
    if 'security_groups' not in entry:
        return [default_group(content, row['project_id'])] if row['project_id'] else ()
    named = enumerate(entry['security_groups'])
    return [
        default_group(content, row['project_id'])
        if name == DEFAULT_GROUP
        else content.resolve('security_groups', name, (*place, 'security_groups', number), row['project_id'])
        for number, name in named
    ]


def new_port(content: CloudContent, port_id: str, network_id: str, facts: Values) -> Values:
    """The row of a port with default values."""
    times = {'created_at': content.now, 'updated_at': content.now}
    return {**UNSAID, 'id': port_id, 'network_id': network_id, **times, **facts}


def times_of(content: CloudContent, schema: Schema, entry: Entry, place: Place, owner: Values) -> Values:
    """The times and revision of a port; by default, its times are those of its owner."""
    stated = content.values(schema, entry, place)
    created = stated['created_at'] or owner['created_at']
    times = {'created_at': created, 'updated_at': stated['updated_at'] or created}
    return times | {'revision_number': stated['revision_number']}


def _load_router(content: CloudContent, book: AddressBook, entry: Entry, place: Place) -> None:
    row = content.make('routers', entry, place)
    _tag(content, row['id'], entry)
    gateway, interfaces = entry.get('gateway'), enumerate(entry.get('interfaces', ()))
    if gateway:
        _join(content, book, row, gateway, (*place, 'gateway'), ROUTER_GATEWAY)
    for number, interface in interfaces:
        _join(content, book, row, interface, (*place, 'interfaces', number), ROUTER_INTERFACE)


def _join(content: CloudContent, book: AddressBook, router: Values, entry: Entry, place: Place, owner: str) -> None:
    network_id = content.resolve('networks', entry['network'], (*place, 'network'), router['project_id'])
    port_id = entry.get('id') or content.made_id('ports', router['id'], network_id)
    project_id = '' if owner == ROUTER_GATEWAY else router['project_id']
    known = {'project_id': project_id, 'device_id': router['id'], 'device_owner': owner}
    row = new_port(content, port_id, network_id, known | {'mac_address': entry.get('mac_address')})
    row |= times_of(content, PLUG, entry, place, router)
    if owner == ROUTER_INTERFACE and 'fixed_ips' not in entry:
        gateways = [each for each in book.subnets[network_id] if each['gateway_ip']]
        entry = {'fixed_ips': [{'subnet': each['id'], 'ip_address': each['gateway_ip']} for each in gateways[:1]]}
    content.add_row('ports', row, place)
    finish_port(content, book, row, entry, place)


def load_floating_ips(content: CloudContent, book: AddressBook, ports_of: Mapping[str, list[Values]]) -> None:
    """ports_of: the ports of each server, in order."""
    first = {row['port_id']: row['ip_address'] for row in reversed(content.rows['fixed_ips'])}
    for place, entry in content.entries('floating_ips'):
        row = content.make('floating_ips', entry, place)
        if row['floating_ip_address'] is None:
            subnets = book.subnets[row['floating_network_id']]
            row['floating_ip_address'] = next(filter(None, map(book.free, subnets)), None)
        if row['floating_ip_address'] is None:
            raise CloudFileError((*place, 'address'), 'the network has no free address')
        if entry.get('server'):
            server_id = content.resolve('servers', entry['server'], (*place, 'server'), row['project_id'])
            if not ports_of.get(server_id):
                raise CloudFileError((*place, 'server'), 'the server has no port, or is not in this file')
            row['port_id'] = ports_of[server_id][0]['id']
        if row['port_id'] is not None:
            row['fixed_ip_address'] = row['fixed_ip_address'] or first.get(row['port_id'])
        _tag(content, row['id'], entry)
