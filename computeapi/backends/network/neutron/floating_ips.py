"""The floating IPs of a Neutron."""

from collections.abc import Iterable
from typing import Any

from computeapi import errors
from computeapi.backends.network import FloatingIP
from computeapi.backends.network.neutron.client import Document, NeutronClient, is_id
from computeapi.backends.network.neutron.extensions import FLOATING_IP_DETAILS
from computeapi.backends.network.neutron.networks import EXTERNAL
from computeapi.context import Context

KIND = 'floatingip'


class NeutronFloatingIPs(NeutronClient):
    def floating_ips(self, context: Context, *, addresses: Iterable[str] | None = None) -> list[FloatingIP]:
        return self._floating_ips(context, self._listed(context, addresses))

    def floating_ip(self, context: Context, floating_ip_id: str) -> FloatingIP:
        if not is_id(floating_ip_id):
            raise errors.FloatingIPNotFound(id=floating_ip_id)
        found = self.one(context, KIND, 'GET', f'/floatingips/{floating_ip_id}')
        return self._floating_ips(context, [found])[0]

    def create_floating_ip(self, context: Context, pool: str | None = None) -> FloatingIP:
        pools = self.found(context, 'networks', **{EXTERNAL: True})
        chosen = next((each for each in pools if pool in (None, each['id'], each['name'])), None)
        if chosen is None:
            raise errors.FloatingIPPoolNotFound()
        made = self.one(context, KIND, 'POST', '/floatingips', floating_network_id=chosen['id'])
        return FloatingIP.of(made, chosen)

    def associate_floating_ip(
        self, context: Context, address: str, port_id: str, fixed_address: str | None = None
    ) -> FloatingIP:
        return self._lead(context, address, port_id=port_id, fixed_ip_address=fixed_address)

    def disassociate_floating_ip(self, context: Context, address: str) -> FloatingIP:
        return self._lead(context, address, port_id=None)

    def delete_floating_ip(self, context: Context, floating_ip_id: str) -> None:
        if not is_id(floating_ip_id):
            raise errors.FloatingIPNotFound(id=floating_ip_id)
        self.request(context, 'DELETE', f'/floatingips/{floating_ip_id}')

    def _listed(self, context: Context, addresses: Iterable[str] | None) -> list[Document]:
        if addresses is None:
            return self.found(context, 'floatingips', project_id=context.project_id)
        return self.found_by(context, 'floatingips', 'floating_ip_address', addresses)

    def _lead(self, context: Context, address: str, **kwargs: Any) -> FloatingIP:
        found = self._listed(context, [address])
        if not found:
            raise errors.FloatingIPNotFound(f'Floating IP not found for address {address}.')
        wanted = {name: value for name, value in kwargs.items() if value is not None or name == 'port_id'}
        changed = self.one(context, KIND, 'PUT', f'/floatingips/{found[0]["id"]}', **wanted)
        return self._floating_ips(context, [changed])[0]

    def _floating_ips(self, context: Context, found: list[Document]) -> list[FloatingIP]:
        """Adds the names of their networks, and the servers that they lead to."""
        if not found:
            return []
        service = context.elevated()
        networks = self.by_id(service, 'networks', {each['floating_network_id'] for each in found})
        if FLOATING_IP_DETAILS not in self.extensions:
            ports = self.by_id(service, 'ports', {each['port_id'] for each in found if each.get('port_id')})
            found = [each | {'port_details': ports.get(each.get('port_id', ''))} for each in found]
        return [FloatingIP.of(each, networks[each['floating_network_id']]) for each in found]
