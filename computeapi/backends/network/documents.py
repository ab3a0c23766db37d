"""From Neutron's documents to the words of the compute service."""

from collections.abc import Mapping, Sequence
from typing import Any

from computeapi.backends.network import FloatingIP, Network, Port, SecurityGroup

Document = Mapping[str, Any]


def network(document: Document, subnets: Sequence[Document]) -> Network:
    return Network(
        id=document['id'],
        name=document['name'],
        project_id=document['project_id'],
        shared=document['shared'],
        external=document['router:external'],
        admin_state_up=document['admin_state_up'],
        port_security_enabled=document['port_security_enabled'],
        mtu=document['mtu'],
        subnets=tuple(subnets),
        created_at=document['created_at'],
    )


def port(document: Document, network: Document, floating_ips: Sequence[str]) -> Port:
    """`network` is the document of the network that the port is on."""
    return Port(
        id=document['id'],
        network_id=document['network_id'],
        network_name=network['name'],
        project_id=document['project_id'],
        mac_address=document['mac_address'],
        name=document['name'],
        status=document['status'],
        device_id=document['device_id'],
        device_owner=document['device_owner'],
        host=document['binding:host_id'] or None,
        fixed_ips=tuple(document['fixed_ips']),
        floating_ips=tuple(floating_ips),
        security_groups=tuple(document['security_groups']),
        admin_state_up=document['admin_state_up'],
        port_security_enabled=document['port_security_enabled'],
        resource_request=document.get('resource_request'),
        mtu=network['mtu'],
    )


def security_group(document: Document) -> SecurityGroup:
    return SecurityGroup(
        id=document['id'],
        name=document['name'],
        description=document['description'],
        project_id=document['project_id'],
        rules=tuple(document['security_group_rules']),
    )


def floating_ip(document: Document, network: Document) -> FloatingIP:
    """`network` is the document of the external network that the address is from."""
    return FloatingIP(
        id=document['id'],
        address=document['floating_ip_address'],
        network_id=document['floating_network_id'],
        network_name=network['name'],
        project_id=document['project_id'],
        port_id=document['port_id'],
        fixed_address=document['fixed_ip_address'],
        server_id=(document['port_details'] or {}).get('device_id') or None,
        status=document['status'],
        tags=tuple(document['tags']),
    )
