"""From Neutron's documents to the words of the compute service."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from computeapi.backends.network import FloatingIP, Network, Port, SecurityGroup

Document = Mapping[str, Any]


def network(document: Document, subnets: Sequence[Document]) -> Network:
    facts = {'external': document['router:external'], 'subnets': tuple(subnets)}
    return Network(**_alike(Network, document) | facts)


def port(document: Document, network: Document, floating_ips: Sequence[str]) -> Port:
    """`network` is the document of the network that the port is on."""
    facts = {
        'network_name': network['name'],
        'mtu': network['mtu'],
        'host': document['binding:host_id'] or None,
        'floating_ips': tuple(floating_ips),
    }
    return Port(**_alike(Port, document) | facts)


def security_group(document: Document) -> SecurityGroup:
    return SecurityGroup(**_alike(SecurityGroup, document), rules=tuple(document['security_group_rules']))


def floating_ip(document: Document, network: Document) -> FloatingIP:
    """`network` is the document of the external network that the address is from."""
    facts = {
        'address': document['floating_ip_address'],
        'network_id': document['floating_network_id'],
        'network_name': network['name'],
        'fixed_address': document['fixed_ip_address'],
        'server_id': (document['port_details'] or {}).get('device_id') or None,
    }
    return FloatingIP(**_alike(FloatingIP, document) | facts)


def _alike(record: Any, document: Document) -> dict[str, Any]:
    """What the document calls as the record does; lists as tuples, for a record does not change."""
    named = {field.name: document[field.name] for field in fields(record) if field.name in document}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in named.items()}
