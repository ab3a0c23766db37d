"""network_data.json: the interfaces of a guest, the networks on them, and the name servers."""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any

from computeapi.backends.network import Network
from computeapi.compute.guest.facts import Guest

Subnet = Mapping[str, Any]
Found = dict[str, Any]
ANYWHERE = {4: '0.0.0.0', 6: '::'}


def network_data(guest: Guest) -> Found:
    links: list[Found] = []
    networks: list[Found] = []
    services: list[Found] = []
    for entry in guest.server.network_info:
        network = guest.networks.get(entry['network_id'])
        if network is None or not entry['addresses']:
            continue
        links.append(link(entry, network))
        for address, subnet in settings(entry, network):
            named = {'id': f'network{len(networks)}', 'link': links[-1]['id'], 'network_id': network.id}
            networks.append(named | configured(address, subnet))
            services += [each for each in name_servers(subnet) if each not in services]
    return {'links': links, 'networks': networks, 'services': services}


def link(entry: Mapping[str, Any], network: Network) -> Found:
    """An interface, with the name of its tap device on the host."""
    return {
        'id': f'tap{entry["port_id"][:11]}',
        'vif_id': entry['port_id'],
        'type': 'ovs',
        'mtu': network.mtu,
        'ethernet_mac_address': entry['mac_address'],
    }


def settings(entry: Mapping[str, Any], network: Network) -> Iterator[tuple[str, Subnet]]:
    """The first address of each IP version with its subnet; guests are given no more."""
    subnets = {subnet['id']: subnet for subnet in network.subnets}
    for version in (4, 6):
        for address in entry['addresses']:
            if address['version'] == version and address['subnet_id'] in subnets:
                yield address['address'], subnets[address['subnet_id']]
                break


def configured(address: str, subnet: Subnet) -> Found:
    """How the guest gets the address: by DHCP, by router advertisements, or statically."""
    version, mode = subnet['ip_version'], subnet.get('ipv6_address_mode')
    if subnet.get('enable_dhcp') and not mode:
        return {'type': f'ipv{version}_dhcp'}
    return {
        'type': f'ipv{version}_{mode}' if mode else f'ipv{version}',
        'ip_address': address,
        'netmask': str(ipaddress.ip_network(subnet['cidr']).netmask),
        'routes': list(routes(version, subnet)),
        'services': name_servers(subnet),
    }


def routes(version: int, subnet: Subnet) -> Iterator[Found]:
    if subnet.get('gateway_ip'):
        yield {'network': ANYWHERE[version], 'netmask': ANYWHERE[version], 'gateway': subnet['gateway_ip']}
    for route in subnet.get('host_routes') or ():
        there = ipaddress.ip_network(route['destination'])
        yield {
            'network': str(there.network_address),
            'netmask': str(there.netmask),
            'gateway': route['nexthop'],
        }


def name_servers(subnet: Subnet) -> list[Found]:
    return [{'type': 'dns', 'address': address} for address in subnet.get('dns_nameservers') or ()]
