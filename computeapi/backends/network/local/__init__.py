"""The built-in network service: everything is recorded, nothing is wired."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from computeapi import errors
from computeapi.backends.network import Allocation, FloatingIP, Network, Port, SecurityGroup, owner_of, profile_of
from computeapi.backends.network.local import ports
from computeapi.backends.network.local.nova_network import LocalNovaNetworkOperations
from computeapi.context import Context
from computeapi.db import network_projects, networks, qos, routers, security_groups
from computeapi.db import ports as stored_ports
from computeapi.db.engine import repeated
from computeapi.db.network_collection import Document, Work
from computeapi.db.networks import NETWORKS
from computeapi.db.ports import PORTS
from computeapi.db.records import grouped
from computeapi.db.routers import FLOATING_IPS
from computeapi.db.security_groups import GROUPS

MADE_PORTS = uuid.UUID('6d8f0f4e-53d6-4f27-9a34-52f3b8d6f0a1')

# The names that compute's proxy APIs use for resources with quotas.
QUOTA_NAMES = {
    'floatingip': 'floating_ips',
    'network': 'networks',
    'port': 'ports',
    'security_group': 'security_groups',
    'security_group_rule': 'security_group_rules',
}


class LocalNetworks(LocalNovaNetworkOperations):
    """Implements compute's `Networks`; `resources` is the same service as the REST API sees it."""

    def populate(self, context: Context, *, shared: bool = True) -> None:
        """Create an external network `public` and, behind a router, a network `private` in the caller's project.
        Idempotent."""
        self.resources.populate(context, shared=shared)

    def recover(self) -> None:
        """Send the notifications that processes stored but did not send before they died."""
        self.resources.notifications.send_pending()

    # Networks

    def networks(self, context: Context, ids: Iterable[str] | None = None) -> list[Network]:
        with self.reading(context) as work:
            found = networks.usable_networks(work) if ids is None else networks.named_networks(work, ids)
            return _networks(work, found)

    def network(self, context: Context, network_id: str) -> Network:
        with self.reading(context) as work:
            return _networks(work, [NETWORKS.get(work, network_id)])[0]

    def auto_network(self, context: Context) -> Network:
        if not context.project_id:
            raise errors.Invalid('A network can be allocated for a project only.')
        usable = self.networks(context)
        if len(usable) > 1:
            raise errors.MultipleNetworks()
        if usable:
            return usable[0]
        return self.network(context, self.resources.auto_topology(context, context.project_id))

    def check_auto_network(self, context: Context) -> None:
        self.resources.check_auto_topology(context)

    # Ports

    def port(self, context: Context, port_id: str) -> Port:
        with self.reading(context) as work:
            return _port(work, port_id)

    def ports(
        self,
        context: Context,
        *,
        ids: Iterable[str] | None = None,
        addresses: Iterable[str] | None = None,
        server_ids: Iterable[str] | None = None,
        key: str | None = None,
        floating: bool = False,
    ) -> list[Port]:
        with self.reading(context) as work:
            if ids is not None:
                return _ports(work, PORTS.find(work, id=list(ids)))
            if addresses is not None:
                holding = [f'ip_address={address}' for address in addresses]
                return _ports(work, PORTS.find(work, filters={'fixed_ips': holding}))
            held = PORTS.find(work, device_id=list(server_ids or ()))
            if key is not None:
                held = [port for port in held if port['id'] == _made_id(port['device_id'], key)]
            return _ports(work, held)

    @repeated
    def create_port(
        self,
        context: Context,
        network_id: str,
        *,
        server_id: str,
        project_id: str | None = None,
        host: str | None = None,
        zone: str | None = None,
        name: str = '',
        fixed_ip: str | None = None,
        security_groups: Sequence[str] = (),
        hostname: str | None = None,
        key: str | None = None,
    ) -> Port:
        port_id = None if key is None else _made_id(server_id, key)
        facts: Document = {
            'network_id': network_id,
            'device_id': server_id,
            'device_owner': owner_of(zone),
            'binding:host_id': host or '',
            'name': name,
            'dns_name': hostname or '',
            'fixed_ips': [{'ip_address': fixed_ip}] if fixed_ip else None,
            'security_groups': list(security_groups) or None,
            'id': port_id,
            **({'project_id': project_id} if project_id else {}),
        }
        with self.changing(context) as work:
            there = [] if port_id is None else PORTS.find(work, id=port_id)
            if there:
                return _ports(work, there)[0]
            return _port(work, ports.create(work, facts))

    @repeated
    def bind_port(
        self,
        context: Context,
        port_id: str,
        *,
        server_id: str,
        host: str | None,
        zone: str | None = None,
        hostname: str | None = None,
        allocation: Allocation | None = None,
    ) -> Port:
        with self.changing(context) as work:
            profile = profile_of(PORTS.get(work, port_id)['binding:profile'], allocation)
            binding = {'device_owner': owner_of(zone), 'host': host or '', 'binding_profile': profile}
            if not stored_ports.take_port(work, port_id, server_id, binding):
                raise errors.PortInUse(id=port_id)
            return _port(work, port_id)

    def add_binding(self, context: Context, port_id: str, host: str, *, allocation: Allocation | None = None) -> bool:
        """Nothing is wired, so a port is ready on every host."""
        with self.reading(context) as work:
            PORTS.get(work, port_id)
        return False

    @repeated
    def activate_binding(self, context: Context, port_id: str, host: str) -> None:
        with self.changing(context) as work:
            ports.update(work, port_id, {'binding:host_id': host})

    def delete_binding(self, context: Context, port_id: str, host: str) -> None:
        return

    @repeated
    def unbind_port(self, context: Context, port_id: str) -> None:
        with self.changing(context) as work:
            for port in PORTS.find(work, id=port_id):
                free = {'device_id': '', 'device_owner': '', 'binding:host_id': ''}
                profile = profile_of(port['binding:profile'])
                # It can be a port of another project on a network of the caller's.
                ports.update(work.elevated(), port_id, {**free, 'binding:profile': profile})

    @repeated
    def delete_port(self, context: Context, port_id: str) -> None:
        with self.changing(context) as work:
            if PORTS.find(work, id=port_id):
                ports.delete(work, port_id)

    @repeated
    def add_fixed_ip(self, context: Context, port_id: str) -> Port:
        with self.changing(context) as work:
            ports.add_address(work, port_id)
            return _port(work, port_id)

    @repeated
    def remove_fixed_ip(self, context: Context, port_id: str, address: str) -> Port:
        with self.changing(context) as work:
            # A request that associates a floating IP with the address waits for the lock, and then finds the address
            # gone.
            PORTS.lock(work, port_id)
            ports.remove_address(work, PORTS.get(work, port_id), address)
            return _port(work, port_id)

    @repeated
    def set_port_security_groups(self, context: Context, port_id: str, group_ids: Sequence[str]) -> Port:
        with self.changing(context) as work:
            ports.update(work, port_id, {'security_groups': list(group_ids)})
            return _port(work, port_id)

    # Security groups

    def security_group_names(self, context: Context, ids: Iterable[str]) -> dict[str, str]:
        with self.reading(context) as work:
            return security_groups.names(work, ids)

    def security_groups(
        self,
        context: Context,
        *,
        ids: Iterable[str] | None = None,
        names_or_ids: Iterable[str] | None = None,
        all_projects: bool = False,
    ) -> list[SecurityGroup]:
        if ids is None:
            self.resources.ensure_default_group(context)
        project_id = context.project_id or ''
        with self.reading(context) as work:
            if ids is not None:
                found = GROUPS.find(work, id=list(ids))
            elif names_or_ids is not None:
                found = _groups_called(work, project_id, list(names_or_ids))
            elif all_projects:
                found = GROUPS.find(work)
            else:
                found = GROUPS.find(work, project_id=project_id)
        return [SecurityGroup.of(group) for group in found]

    def security_group(self, context: Context, group_id: str) -> SecurityGroup:
        return SecurityGroup.of(self.resources.get(context, 'security-groups', group_id))

    def create_security_group(self, context: Context, name: str, description: str) -> SecurityGroup:
        facts = {'name': name, 'description': description}
        return SecurityGroup.of(self.resources.create(context, 'security-groups', facts))

    def update_security_group(self, context: Context, group_id: str, **kwargs: str) -> SecurityGroup:
        return SecurityGroup.of(self.resources.update(context, 'security-groups', group_id, kwargs))

    def delete_security_group(self, context: Context, group_id: str) -> None:
        self.resources.delete(context, 'security-groups', group_id)

    def create_security_group_rule(self, context: Context, group_id: str, **kwargs: Any) -> Mapping[str, Any]:
        rule = {'direction': 'ingress', **kwargs, 'security_group_id': group_id}
        return self.resources.create(context, 'security-group-rules', rule)

    def delete_security_group_rule(self, context: Context, rule_id: str) -> None:
        self.resources.delete(context, 'security-group-rules', rule_id)

    # Floating IPs

    def floating_ips(self, context: Context, *, addresses: Iterable[str] | None = None) -> list[FloatingIP]:
        with self.reading(context) as work:
            if addresses is None:
                return _floating_ips(work, FLOATING_IPS.find(work))
            return _floating_ips(work, FLOATING_IPS.find(work, floating_ip_address=list(addresses)))

    def floating_ip(self, context: Context, floating_ip_id: str) -> FloatingIP:
        with self.reading(context) as work:
            for floating_ip in _floating_ips(work, [FLOATING_IPS.get(work, floating_ip_id)]):
                return floating_ip
        raise errors.FloatingIPNotFound(id=floating_ip_id)

    def create_floating_ip(self, context: Context, pool: str | None = None) -> FloatingIP:
        with self.reading(context) as work:
            pools = NETWORKS.find(work, external=True)
        chosen = next((network for network in pools if pool in (None, network['id'], network['name'])), None)
        if chosen is None:
            raise errors.FloatingIPPoolNotFound()
        made = self.resources.create(context, 'floatingips', {'floating_network_id': chosen['id']})
        return FloatingIP.of(made, chosen)

    def associate_floating_ip(
        self, context: Context, address: str, port_id: str, fixed_address: str | None = None
    ) -> FloatingIP:
        facts = {'port_id': port_id, 'fixed_ip_address': fixed_address}
        return self._update_floating_ip(context, address, facts)

    def disassociate_floating_ip(self, context: Context, address: str) -> FloatingIP:
        return self._update_floating_ip(context, address, {'port_id': None})

    def delete_floating_ip(self, context: Context, floating_ip_id: str) -> None:
        self.resources.delete(context, 'floatingips', floating_ip_id)

    def floating_ip_pools(self, context: Context) -> list[Network]:
        with self.reading(context) as work:
            return _networks(work, NETWORKS.find(work, external=True))

    def _update_floating_ip(self, context: Context, address: str, facts: Document) -> FloatingIP:
        found = self.floating_ips(context, addresses=[address])
        if not found:
            raise errors.FloatingIPNotFound(f'Floating IP not found for address {address}.')
        self.resources.update(context, 'floatingips', found[0].id, facts)
        return self.floating_ip(context, found[0].id)

    # Quotas

    def ports_left(self, context: Context, project_id: str) -> int | None:
        with self.reading(context) as work:
            return network_projects.left(work, project_id, 'port')

    def quotas(self, context: Context, project_id: str) -> Mapping[str, Mapping[str, int]]:
        found = self.resources.quota_details(context, project_id)
        details = ((ours, found[name]) for name, ours in QUOTA_NAMES.items())
        return {ours: {'limit': each['limit'], 'in_use': each['used']} for ours, each in details}


def _made_id(server_id: str, key: str) -> str:
    """The ID of the server's port that is created under the key."""
    return str(uuid.uuid5(MADE_PORTS, f'{server_id}/{key}'))


def _networks(work: Work, found: list[Document]) -> list[Network]:
    ids = [network['id'] for network in found]
    subnets = grouped((subnet['network_id'], subnet) for subnet in networks.subnets_of(work, ids))
    resources = qos.asked_resources(work, {network['qos_policy_id'] for network in found})
    return [
        Network.of(network, subnets.get(network['id'], ()), _request(resources.get(network['qos_policy_id'])))
        for network in found
    ]


def _request(resources: Document | None) -> Document | None:
    return resources and qos.resource_request(resources)


def _port(work: Work, port_id: str) -> Port:
    for port in _ports(work, [PORTS.get(work, port_id)]):
        return port
    raise errors.PortNotFound(id=port_id)


def _ports(work: Work, found: list[Document]) -> list[Port]:
    """The ports with their related records, except ports that were deleted since they were found."""
    if not found:
        return []
    around = routers.around_ports(work, [port['id'] for port in found])
    return [Port.of(port, *around[port['id']]) for port in found if port['id'] in around]


def _floating_ips(work: Work, found: list[Document]) -> list[FloatingIP]:
    """The floating IPs with their networks, except those that were deleted together with them since they were found."""
    if not found:
        return []
    on = networks.wires(work, (floating_ip['floating_network_id'] for floating_ip in found))
    pairs = [(floating_ip, on.get(floating_ip['floating_network_id'])) for floating_ip in found]
    return [FloatingIP.of(floating_ip, network) for floating_ip, network in pairs if network]


def _groups_called(work: Work, project_id: str, names_or_ids: list[str]) -> list[Document]:
    """The group for each name or ID; a matching ID takes precedence over names."""
    found = security_groups.groups_called(work, project_id, names_or_ids)
    return [_group_called(found, wanted) for wanted in dict.fromkeys(names_or_ids)]


def _group_called(groups: list[Document], wanted: str) -> Document:
    fits = [group for group in groups if group['id'] == wanted] or [g for g in groups if g['name'] == wanted]
    if not fits:
        raise errors.SecurityGroupNotFound(f"Unable to find security_group with name or id '{wanted}'")
    if len(fits) > 1:
        raise errors.Conflict(
            f"Multiple security_group matches found for name '{wanted}', use an ID to be more specific."
        )
    return fits[0]
