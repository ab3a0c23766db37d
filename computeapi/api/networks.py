"""/os-networks, /os-tenant-networks, /os-floating-ips and /os-floating-ip-pools: until 2.35."""

from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.gone import PROXIES
from computeapi.api.types import NOTHING, NULLABLE_STRING, STRING
from computeapi.backends.network import Network, Networks
from computeapi.context import Context
from computeapi.errors import NetworkNotFound
from computeapi.web.contract import ANYONE, MEMBER_OR_ADMIN, READER_OR_ADMIN, Field, Policy, Reader, View, absent, attr
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import array

LIST = Policy('os_compute_api:os-networks:list', READER_OR_ADMIN, 'List networks')
SHOW = Policy('os_compute_api:os-networks:show', READER_OR_ADMIN, 'Show a network')
TENANT_LIST = Policy('os_compute_api:os-tenant-networks:list', READER_OR_ADMIN, "List the project's networks")
TENANT_SHOW = Policy('os_compute_api:os-tenant-networks:show', READER_OR_ADMIN, 'Show a network of the project')
POOLS = Policy('os_compute_api:os-floating-ip-pools', ANYONE, 'List floating IP pools')
LIST_FLOATING_IPS = Policy('os_compute_api:os-floating-ips:list', READER_OR_ADMIN, 'List floating IPs')
SHOW_FLOATING_IP = Policy('os_compute_api:os-floating-ips:show', READER_OR_ADMIN, 'Show a floating IP')
CREATE_FLOATING_IP = Policy('os_compute_api:os-floating-ips:create', MEMBER_OR_ADMIN, 'Create a floating IP')
DELETE_FLOATING_IP = Policy('os_compute_api:os-floating-ips:delete', MEMBER_OR_ADMIN, 'Delete a floating IP')

# ------------------------------------------------------------------ views

# Attributes of nova-network's networks; in the network service, subnets have taken their place.
FORMER = ('broadcast', 'cidr', 'cidr_v6', 'dns1', 'dns2', 'gateway', 'gateway_v6', 'netmask', 'netmask_v6')
FORMER_OF_ADMINISTRATORS = (
    'bridge', 'bridge_interface', 'created_at', 'deleted', 'deleted_at', 'dhcp_server', 'dhcp_start', 'enable_dhcp',
    'host', 'injected', 'mtu', 'multi_host', 'priority', 'project_id', 'rxtx_base', 'share_address', 'updated_at',
    'vlan', 'vpn_private_address', 'vpn_public_address', 'vpn_public_port',
)  # fmt: skip


def nothing(found: Network) -> None:
    return None


def nothing_for_administrators(req: Request) -> Reader:
    return nothing if req.context.is_admin else absent


NETWORK = View(
    {'id': Field(STRING, attr('id')), 'label': Field(STRING, attr('name'))}
    | {name: Field(NOTHING, nothing) for name in FORMER}
    | {
        name: Field(NOTHING, nothing_for_administrators, request=True, optional=True)
        for name in FORMER_OF_ADMINISTRATORS
    }
)
TENANT_NETWORK = View(
    {
        'id': Field(STRING, attr('id')),
        'label': Field(STRING, attr('name')),
        # The missing value is represented by this word.
        'cidr': Field(STRING, lambda found: 'None'),
    }
)
FLOATING_IP = View(
    {
        'id': Field(STRING, attr('id')),
        'ip': Field(STRING, attr('address')),
        'pool': Field(STRING, attr('network_name')),
        'fixed_ip': Field(NULLABLE_STRING, attr('fixed_address')),
        'instance_id': Field(NULLABLE_STRING, attr('server_id')),
    }
)
NAMED = View({'name': Field(STRING, attr('name'))})
POOL = {'type': ['object', 'null'], 'properties': {'pool': NULLABLE_STRING}, 'additionalProperties': True}


class ProxiedNetworks(ComputeController):
    """A proxy to the networks of the network service."""

    path = '/os-networks'
    versions = PROXIES

    @operation('GET', policy=LIST, response={'networks': array(NETWORK)})
    def index(self, req: Request) -> dict[str, Any]:
        """List networks."""
        return {'networks': NETWORK.render_all(req, usable(self.cloud.networks, req.context))}

    @operation('GET', '/{id}', policy=SHOW, response={'network': NETWORK})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show a network."""
        return {'network': NETWORK.render(req, found(self.cloud.networks, req.context, id))}


class TenantNetworks(ComputeController):
    """A proxy to the networks of a project."""

    path = '/os-tenant-networks'
    versions = PROXIES

    @operation('GET', policy=TENANT_LIST, response={'networks': array(TENANT_NETWORK)})
    def index(self, req: Request) -> dict[str, Any]:
        """List the project's networks."""
        return {'networks': TENANT_NETWORK.render_all(req, usable(self.cloud.networks, req.context))}

    @operation('GET', '/{id}', policy=TENANT_SHOW, response={'network': TENANT_NETWORK})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show a network of the project."""
        return {'network': TENANT_NETWORK.render(req, found(self.cloud.networks, req.context, id))}


def usable(networks: Networks, context: Context) -> list[Network]:
    """The networks that the caller can attach servers to, and external networks."""
    both = [*networks.networks(context), *networks.floating_ip_pools(context)]
    return list({each.id: each for each in both}.values())


def found(networks: Networks, context: Context, network_id: str) -> Network:
    try:
        return networks.network(context, network_id)
    except NetworkNotFound:
        raise NetworkNotFound('Network not found') from None


class FloatingIPPools(ComputeController):
    """Floating IP pools: the external networks."""

    path = '/os-floating-ip-pools'
    versions = PROXIES

    @operation('GET', policy=POOLS, response={'floating_ip_pools': array(NAMED)})
    def index(self, req: Request) -> dict[str, Any]:
        """List floating IP pools."""
        return {'floating_ip_pools': NAMED.render_all(req, self.cloud.networks.floating_ip_pools(req.context))}


class FloatingIPs(ComputeController):
    """A proxy to the floating IPs of the network service."""

    path = '/os-floating-ips'
    versions = PROXIES

    @operation('GET', policy=LIST_FLOATING_IPS, response={'floating_ips': array(FLOATING_IP)})
    def index(self, req: Request) -> dict[str, Any]:
        """List floating IPs."""
        return {'floating_ips': FLOATING_IP.render_all(req, self.cloud.networks.floating_ips(req.context))}

    @operation('GET', '/{id}', policy=SHOW_FLOATING_IP, response={'floating_ip': FLOATING_IP})
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show a floating IP."""
        return {'floating_ip': FLOATING_IP.render(req, self.cloud.networks.floating_ip(req.context, id))}

    @operation('POST', policy=CREATE_FLOATING_IP, body=POOL, response={'floating_ip': FLOATING_IP}, errors=(404,))
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Create a floating IP of a pool; by default of the first one."""
        pool = (body or {}).get('pool') or None
        return {'floating_ip': FLOATING_IP.render(req, self.cloud.floating_ips.create(req.context, pool))}

    @operation('DELETE', '/{id}', policy=DELETE_FLOATING_IP, status=202, errors=(409,))
    def delete(self, req: Request, id: str) -> None:
        """Delete a floating IP, even if it is associated."""
        self.cloud.floating_ips.delete(req.context, id)
