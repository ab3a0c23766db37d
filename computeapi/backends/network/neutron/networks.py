"""The networks and quotas of a Neutron."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from computeapi import errors
from computeapi.backends.network import Network
from computeapi.backends.network.neutron.client import Document, NeutronClient
from computeapi.context import Context

EXTERNAL = 'router:external'
# The names in compute's proxy APIs of resources that have quotas.
QUOTA_NAMES = {
    'floatingip': 'floating_ips',
    'network': 'networks',
    'port': 'ports',
    'security_group': 'security_groups',
    'security_group_rule': 'security_group_rules',
}
GUARANTEES = {
    ('minimum_bandwidth', 'egress'): 'NET_BW_EGR_KILOBIT_PER_SEC',
    ('minimum_bandwidth', 'ingress'): 'NET_BW_IGR_KILOBIT_PER_SEC',
    ('minimum_packet_rate', 'any'): 'NET_PACKET_RATE_KILOPACKET_PER_SEC',
    ('minimum_packet_rate', 'egress'): 'NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC',
    ('minimum_packet_rate', 'ingress'): 'NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC',
}
"""The resource class that a QoS rule requests from a host, by its type and direction."""


class NeutronNets(NeutronClient):
    def networks(self, context: Context, ids: Iterable[str] | None = None) -> list[Network]:
        if ids is not None:
            return self._networks(context, self.by_id(context, 'networks', ids).values())
        usable = {'admin_state_up': True, EXTERNAL: False}
        own = self.found(context, 'networks', project_id=context.project_id, shared=False, **usable)
        return self._networks(context, [*own, *self.found(context, 'networks', shared=True, **usable)])

    def network(self, context: Context, network_id: str) -> Network:
        for network in self.networks(context, [network_id]):
            return network
        raise errors.NetworkNotFound(id=network_id)

    def auto_network(self, context: Context) -> Network:
        usable = self.networks(context)
        if len(usable) > 1:
            raise errors.MultipleNetworks()
        if usable:
            return usable[0]
        made = self.one(context, 'auto_allocated_topology', 'GET', topology_of(context))
        return self.network(context, made['id'])

    def check_auto_network(self, context: Context) -> None:
        self.request(context, 'GET', topology_of(context), params={'fields': 'dry-run'})

    def floating_ip_pools(self, context: Context) -> list[Network]:
        return self._networks(context, self.found(context, 'networks', **{EXTERNAL: True}))

    def ports_left(self, context: Context, project_id: str) -> int | None:
        quota = self.quotas(context, project_id)['ports']
        return None if quota['limit'] < 0 else max(0, quota['limit'] - quota['in_use'])

    def quotas(self, context: Context, project_id: str) -> Mapping[str, Mapping[str, int]]:
        body = self.one(context, 'quota', 'GET', f'/quotas/{quote(project_id, safe="")}/details')
        return {
            ours: {'limit': body[name]['limit'], 'in_use': body[name]['used']}
            for name, ours in QUOTA_NAMES.items()
            if name in body
        }

    def _networks(self, context: Context, found: Iterable[Document]) -> list[Network]:
        """Adds their subnets, including those that the caller cannot see, of shared and external networks."""
        networks = sorted(found, key=lambda network: network.get('created_at') or '')
        service = context.elevated()
        ids = [network['id'] for network in networks if network.get('subnets')]
        subnets: dict[str, list[Document]] = {}
        for subnet in self.found_by(service, 'subnets', 'network_id', ids):
            subnets.setdefault(subnet['network_id'], []).append(subnet)
        policies = {network['qos_policy_id'] for network in networks if network.get('qos_policy_id')}
        requests = {policy: self._request(service, policy) for policy in policies}
        return [
            Network.of(network, subnets.get(network['id'], ()), requests.get(network.get('qos_policy_id')))
            for network in networks
        ]

    def _request(self, service: Context, policy_id: str) -> Mapping[str, Any] | None:
        """What the ports of a network with this QoS policy request from a host."""
        rules = self.one(service, 'policy', 'GET', f'/qos/policies/{policy_id}').get('rules', ())
        found = {
            GUARANTEES[kind]: rule.get('min_kbps') or rule.get('min_kpps')
            for rule in rules
            if (kind := (rule.get('type'), rule.get('direction'))) in GUARANTEES
        }
        return {'resources': found} if found else None


def topology_of(context: Context) -> str:
    """The path of the network that Neutron allocates for the project."""
    if not context.project_id:
        raise errors.Invalid('A network can be allocated for a project only.')
    return f'/auto-allocated-topology/{context.project_id}'
