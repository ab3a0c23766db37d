"""IP availability: the number of addresses in networks, and how many are used."""

import ipaddress
from collections.abc import Collection

from computeapi.db import networks
from computeapi.db.network_collection import Document, Work, ids_of
from computeapi.db.records import grouped


def of_networks(work: Work, found: list[Document], versions: Collection[str] = ()) -> list[Document]:
    """The availability by network and subnet, in three queries for any number of networks. versions: count only subnets
    with these IP versions, and leave out networks without them."""
    ids = ids_of(found)
    used = networks.used_addresses(work, ids)
    subnets = networks.subnets_of(work, ids)
    if versions:
        subnets = [subnet for subnet in subnets if str(subnet['ip_version']) in versions]
    on = grouped((subnet['network_id'], subnet) for subnet in subnets)
    if versions:
        found = [network for network in found if network['id'] in on]
    return [_of_network(network, on.get(network['id'], []), used) for network in found]


def _of_network(network: Document, subnets: list[Document], used: dict[str, int]) -> Document:
    parts = [_of_subnet(subnet, used.get(subnet['id'], 0)) for subnet in subnets]
    return {
        'network_id': network['id'],
        'network_name': network['name'],
        'project_id': network['project_id'],
        'tenant_id': network['project_id'],
        'total_ips': sum(part['total_ips'] for part in parts),
        'used_ips': sum(part['used_ips'] for part in parts),
        'subnet_ip_availability': parts,
    }


def _of_subnet(subnet: Document, used: int) -> Document:
    return {
        'subnet_id': subnet['id'],
        'subnet_name': subnet['name'],
        'cidr': subnet['cidr'],
        'ip_version': subnet['ip_version'],
        'total_ips': sum(_size(pool) for pool in subnet['allocation_pools']),
        'used_ips': used,
    }


def _size(pool: Document) -> int:
    return int(ipaddress.ip_address(pool['end'])) - int(ipaddress.ip_address(pool['start'])) + 1
