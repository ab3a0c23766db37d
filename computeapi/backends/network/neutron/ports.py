"""The ports of a Neutron.

Ports are created as the caller, so that the quotas and policies of the project apply, and bound as this service,
because callers must not choose the host.
"""

import functools
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from computeapi import errors
from computeapi.backends.neighbour import has_token
from computeapi.backends.network import ALLOCATION, MARK, Allocation, Port, PortBinding, owner_of, profile_of
from computeapi.backends.network.neutron.client import Document, ExpiringCache, NeutronClient, is_id, shown
from computeapi.backends.network.neutron.extensions import BINDINGS, DNS, ROUTERS
from computeapi.context import Context

HOST, PROFILE = 'binding:host_id', 'binding:profile'
VIF_TYPE, VIF_DETAILS = 'binding:vif_type', 'binding:vif_details'
FAILED = 'binding_failed'
MIGRATING_TO = 'migrating_to'
MAX_TRIES = 5
QOS = ('qos_policy_id', 'qos_network_policy_id')


class NeutronPorts(NeutronClient):
    @functools.cached_property
    def on(self) -> ExpiringCache:
        """The networks of ports."""
        return ExpiringCache(lambda context, ids: self.by_id(context, 'networks', ids))

    def port(self, context: Context, port_id: str) -> Port:
        return self._described(context, [self._port(context, port_id)])[0]

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
        if ids is not None:
            found = list(self.by_id(context, 'ports', ids).values())
        elif addresses is not None:
            holding = [f'ip_address={address}' for address in addresses]
            found = self.found_by(context, 'ports', 'fixed_ips', holding)
        else:
            made_for = {} if key is None else {'description': mark(key)}
            found = self.found_by(context, 'ports', 'device_id', server_ids or (), **made_for)
        found = sorted(found, key=lambda port: port.get('created_at') or '')
        return self._described(context, found, floating=floating)

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
        before = self._made(context, server_id, key)
        made = before or self._make(
            context,
            network_id=network_id,
            device_id=server_id,
            project_id=project_id or context.project_id,
            name=name,
            fixed_ips=[{'ip_address': fixed_ip}] if fixed_ip else None,
            security_groups=list(security_groups) or None,
            description=mark(key) if key else '',
        )
        bound = self._bind(context, made, server_id, host, zone, hostname)
        # A new port has no floating IPs.
        return self._described(context, [bound], floating=before is not None)[0]

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
        for _ in range(MAX_TRIES):
            found = self._whole(context, port_id)
            try:
                bound = self._bind(context, found, server_id, host, zone, hostname, allocation)
            except errors.RevisionMismatch:
                continue
            return self._described(context, [bound], floating=True)[0]
        raise errors.PortInUse(id=port_id)

    def unbind_port(self, context: Context, port_id: str) -> None:
        facts: Document = {'device_id': '', 'device_owner': '', HOST: None}
        if DNS in self.extensions:
            facts['dns_name'] = ''
        try:
            facts[PROFILE] = own_profile(self._whole(context, port_id))
            self._update_port(context.elevated(), port_id, facts)
        except errors.PortNotFound:
            return

    def delete_port(self, context: Context, port_id: str) -> None:
        if is_id(port_id):
            with suppress(errors.NotFound):
                self.request(context, 'DELETE', f'/ports/{port_id}')

    def add_fixed_ip(self, context: Context, port_id: str) -> Port:
        port = self._port(context, port_id)
        for subnet in self.found(context.elevated(), 'subnets', network_id=port['network_id']):
            wanted = [*port['fixed_ips'], {'subnet_id': subnet['id']}]
            try:
                return self._described(context, [self._update_port(context, port_id, {'fixed_ips': wanted})])[0]
            except errors.NoMoreAddresses:
                continue
        raise errors.NoMoreAddresses()

    def remove_fixed_ip(self, context: Context, port_id: str, address: str) -> Port:
        port = self._port(context, port_id)
        left = [fixed for fixed in port['fixed_ips'] if fixed['ip_address'] != address]
        if left != port['fixed_ips']:
            port = self._update_port(context, port_id, {'fixed_ips': left})
        return self._described(context, [port])[0]

    def set_port_security_groups(self, context: Context, port_id: str, group_ids: Sequence[str]) -> Port:
        port = self._port(context, port_id)
        changed = self._update_port(context, port['id'], {'security_groups': list(group_ids)})
        return self._described(context, [changed])[0]

    # Multiple bindings of a port

    def add_binding(self, context: Context, port_id: str, host: str, *, allocation: Allocation | None = None) -> bool:
        if BINDINGS not in self.extensions:
            return False
        port, service = self._whole(context, port_id), context.elevated()
        profile = own_profile(port, allocation)
        wanted = {'host': host, 'vnic_type': port.get('binding:vnic_type', 'normal'), 'profile': profile}
        path = f'/ports/{port_id}/bindings'
        try:
            made = self.one(service, 'binding', 'POST', path, **wanted)
        except errors.PortBindingExists:
            made = self.one(service, 'binding', 'GET', f'{path}/{quote(host, safe="")}')
        going = {**staying_profile(port), MIGRATING_TO: host}
        if port.get(PROFILE) != going:
            self._update_port(service, port_id, {PROFILE: going})
        return reports_plugging(made)

    def activate_binding(self, context: Context, port_id: str, host: str) -> None:
        if BINDINGS not in self.extensions:
            self._update_port(context.elevated(), self._port(context, port_id)['id'], {HOST: host})
            return
        self._port(context, port_id)
        try:
            self.request(context.elevated(), 'PUT', f'/ports/{port_id}/bindings/{quote(host, safe="")}/activate')
        except errors.PortBindingExists:
            # It is active already.
            return

    def delete_binding(self, context: Context, port_id: str, host: str) -> None:
        if BINDINGS not in self.extensions:
            return
        service = context.elevated()
        try:
            port = self._whole(context, port_id)
            self.request(service, 'DELETE', f'/ports/{port_id}/bindings/{quote(host, safe="")}')
            if port.get(PROFILE, {}).get(MIGRATING_TO) == host:
                self._update_port(service, port_id, {PROFILE: staying_profile(port)})
        except errors.NotFound:
            return

    def binding(self, context: Context, port_id: str, host: str) -> PortBinding:
        """The binding of the port to that host, which need not be the active one; PortNotFound, NotFound."""
        port = self._port(context, port_id)
        vif_type, details = port.get(VIF_TYPE), port.get(VIF_DETAILS)
        if port.get(HOST) != host and BINDINGS in self.extensions:
            bound = self.one(context, 'binding', 'GET', f'/ports/{port_id}/bindings/{quote(host, safe="")}')
            vif_type, details = bound.get('vif_type'), bound.get('vif_details')
        network = self.on.of(context, {port['network_id']}).get(port['network_id'], {})
        facts = (port['network_id'], port['project_id'], network.get('mtu', Port.mtu))
        return PortBinding(*facts, vif_type or 'unbound', details or {})

    # Shared by the above

    def _port(self, context: Context, port_id: str) -> Document:
        """The port as the caller sees it."""
        if not is_id(port_id):
            raise errors.PortNotFound(id=port_id)
        return self.one(context, 'port', 'GET', f'/ports/{port_id}')

    def _whole(self, context: Context, port_id: str) -> Document:
        """The port with the attributes that its owner is not shown; it must be visible to the caller."""
        port = self._port(context, port_id)
        return self._port(context.elevated(), port_id) if has_token(context) else port

    def _made(self, context: Context, server_id: str, key: str | None) -> Document | None:
        """The port that was created for the server under the key, if any."""
        if key is None:
            return None
        found = self.found(context, 'ports', device_id=server_id, description=mark(key))
        return found[0] if found else None

    def _make(self, context: Context, **kwargs: Any) -> Document:
        wanted = {name: value for name, value in kwargs.items() if value not in (None, '')}
        return self.one(context, 'port', 'POST', '/ports', admin_state_up=True, **wanted)

    def _update_port(self, context: Context, port_id: str, facts: Document, revision: int | None = None) -> Document:
        """revision: the only one to change; RevisionMismatch."""
        seen = {} if revision is None else {'If-Match': f'revision_number={revision}'}
        return shown(self.request(context, 'PUT', f'/ports/{port_id}', {'port': facts}, headers=seen)['port'])

    def _bind(
        self,
        context: Context,
        port: Document,
        server_id: str,
        host: str | None,
        zone: str | None,
        hostname: str | None,
        allocation: Allocation | None = None,
    ) -> Document:
        """Set the port's device and host. RevisionMismatch if an unattached port was changed concurrently."""
        holder = port.get('device_id')
        if holder not in ('', server_id):
            raise errors.PortInUse(id=port['id'])
        service = context.elevated()
        owner = owner_of(zone) if host or not port.get('device_owner') else port['device_owner']
        facts: Document = {'device_id': server_id, 'device_owner': owner, HOST: host}
        if hostname and DNS in self.extensions:
            facts['dns_name'] = hostname
        profile = own_profile(port, allocation)
        if profile != port.get(PROFILE, {}):
            facts[PROFILE] = profile
        if holder and port.get(VIF_TYPE) != FAILED and is_so(port, facts):
            return port
        # Two servers may try to take an unattached port at the same time.
        revision = None if holder else port.get('revision_number')
        bound = self._update_port(service, port['id'], facts, revision)
        if host and bound.get(VIF_TYPE) == FAILED:
            raise errors.PortBindingFailed(id=port['id'], host=host)
        return bound

    def _described(self, context: Context, found: list[Document], *, floating: bool = False) -> list[Port]:
        """Adds to the ports what belongs to them elsewhere. Whoever can see a port may know the name of its network."""
        if not found:
            return []
        service = context.elevated()
        networks = self.on.of(service, {port['network_id'] for port in found})
        leading = self._leading(service, [port['id'] for port in found]) if floating else {}
        if has_token(context):
            found = self._with_requests(service, found)
        return [
            Port.of(port, networks[port['network_id']], leading.get(port['id'], ()))
            for port in found
            if port['network_id'] in networks
        ]

    def _leading(self, context: Context, port_ids: Iterable[str]) -> dict[str, list[str]]:
        """The floating IPs of ports."""
        found: dict[str, list[str]] = {}
        if ROUTERS in self.extensions:
            for each in self.found_by(context, 'floatingips', 'port_id', port_ids):
                found.setdefault(each['port_id'], []).append(each['floating_ip_address'])
        return found

    def _with_requests(self, service: Context, found: list[Document]) -> list[Document]:
        """Adds resource requests, which owners are not shown: only ports with a QoS policy have any."""
        asking = [port['id'] for port in found if any(port.get(name) for name in QOS)]
        seen = self.by_id(service, 'ports', asking)
        return [seen.get(port['id'], port) for port in found]


def reports_plugging(binding: Document) -> bool:
    """Whether Neutron reports when the port is connected on a host where it is not active yet: with hybrid plugging,
    the host's agent connects it as soon as its bridge exists; otherwise that may happen only after the server has
    arrived."""
    return bool(binding.get('vif_details', {}).get('ovs_hybrid_plug'))


def mark(key: str) -> str:
    """The description of a port created under a key. It must be set at creation; tags can only be added later."""
    return f'{MARK}{key}'


def is_so(port: Document, facts: Document) -> bool:
    """Whether the port already has these values, as far as its binding is visible."""
    if HOST not in port:
        return False
    return all((port.get(name) or None) == value for name, value in facts.items())


def own_profile(port: Document, allocation: Allocation | None = None) -> Document:
    """The binding profile without compute's migration target, and with the given allocation."""
    profile = profile_of(port.get(PROFILE, {}), allocation)
    return {name: value for name, value in profile.items() if name != MIGRATING_TO}


def staying_profile(port: Document) -> Document:
    """The binding profile of a port whose server is not moving."""
    return own_profile(port, port.get(PROFILE, {}).get(ALLOCATION))
