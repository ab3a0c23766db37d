"""/os-floating-ips and /os-floating-ip-pools: floating IPs by way of the compute API, until 2.35."""

from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.gone import PROXIES
from computeapi.api.types import NULLABLE_STRING, STRING
from computeapi.web.contract import ANYONE, MEMBER_OR_ADMIN, READER_OR_ADMIN, Field, Policy, View, array, attr
from computeapi.web.controller import operation
from computeapi.web.request import Request

# ------------------------------------------------------------------ policies

POOLS = Policy('os_compute_api:os-floating-ip-pools', ANYONE, 'List floating IP pools')
LIST = Policy('os_compute_api:os-floating-ips:list', READER_OR_ADMIN, 'List floating IPs')
SHOW = Policy('os_compute_api:os-floating-ips:show', READER_OR_ADMIN, 'Show a floating IP')
CREATE = Policy('os_compute_api:os-floating-ips:create', MEMBER_OR_ADMIN, 'Create a floating IP')
DELETE = Policy('os_compute_api:os-floating-ips:delete', MEMBER_OR_ADMIN, 'Delete a floating IP')

# ------------------------------------------------------------------ requests

POOL = {'type': ['object', 'null'], 'properties': {'pool': NULLABLE_STRING}, 'additionalProperties': True}

# ------------------------------------------------------------------ views

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

# ------------------------------------------------------------------ controllers


class FloatingIPPools(ComputeController):
    """The networks that floating IPs are from."""

    path = '/os-floating-ip-pools'
    versions = PROXIES

    @operation('GET', policy=POOLS, response={'floating_ip_pools': array(NAMED)})
    def index(self, req: Request) -> dict[str, Any]:
        """List floating IP pools."""
        return {'floating_ip_pools': NAMED.render_all(req, self.cloud.networks.floating_ip_pools(req.context))}


class FloatingIPs(ComputeController):
    """Floating IPs, by way of the compute API."""

    path = '/os-floating-ips'
    versions = PROXIES

    @operation('GET', policy=LIST, response={'floating_ips': array(FLOATING_IP)})
    def index(self, req: Request) -> dict[str, Any]:
        """List floating IPs."""
        return {'floating_ips': FLOATING_IP.render_all(req, self.cloud.networks.floating_ips(req.context))}

    @operation('GET', '/{id}', policy=SHOW, response={'floating_ip': FLOATING_IP}, errors=(404,))
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show a floating IP."""
        return {'floating_ip': FLOATING_IP.render(req, self.cloud.networks.floating_ip(req.context, id))}

    @operation('POST', policy=CREATE, body=POOL, response={'floating_ip': FLOATING_IP}, errors=(404,))
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Create a floating IP of a pool; by default of the first one."""
        pool = (body or {}).get('pool')
        return {'floating_ip': FLOATING_IP.render(req, self.cloud.floating_ips.create(req.context, pool))}

    @operation('DELETE', '/{id}', policy=DELETE, status=202, errors=(404, 409))
    def delete(self, req: Request, id: str) -> None:
        """Delete a floating IP, whatever it leads to."""
        self.cloud.floating_ips.delete(req.context, id)
