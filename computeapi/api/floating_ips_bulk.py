"""/os-floating-ips-bulk: the addresses for floating IPs, until 2.35."""

from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.gone import PROXIES
from computeapi.api.types import NONEMPTY, NULLABLE_STRING, STRING
from computeapi.errors import FloatingIPNotFound, NotFound
from computeapi.web.contract import ADMIN, Field, Policy, View, attr
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.schemas import array, closed, lone, whole

POLICY = Policy('os_compute_api:os-floating-ips-bulk', ADMIN, 'List, add and remove the addresses of floating IPs')

ADDED = closed({'ip_range': STRING, 'pool': NONEMPTY, 'interface': NONEMPTY}, ['ip_range'])

ADDRESS = View(
    {
        'address': Field(STRING, attr('address')),
        'pool': Field(STRING, attr('pool')),
        'interface': Field(NULLABLE_STRING, attr('interface')),
        'project_id': Field(NULLABLE_STRING, attr('project_id')),
        'fixed_ip': Field(NULLABLE_STRING, attr('fixed_address')),
        'instance_uuid': Field(NULLABLE_STRING, attr('server_id')),
    }
)
ADDRESSES = {'floating_ip_info': array(ADDRESS)}


class FloatingIPsBulk(ComputeController):
    """The addresses of floating IP pools, managed in bulk."""

    path = '/os-floating-ips-bulk'
    versions = PROXIES

    @operation('GET', policy=POLICY, response=ADDRESSES, errors=(501,))
    def index(self, req: Request) -> dict[str, Any]:
        """List the addresses, allocated ones first; at most as many as one page of a list can have."""
        found = self.cloud.networks.pool_addresses(req.context, limit=self.cloud.max_limit)
        return {'floating_ip_info': ADDRESS.render_all(req, found)}

    @operation('GET', '/{id}', policy=POLICY, response=ADDRESSES, errors=(501,))
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """List the addresses that are associated with servers on a host."""
        found = self.cloud.networks.pool_addresses(req.context, host=id, limit=self.cloud.max_limit)
        if not found:
            raise FloatingIPNotFound(f'Floating IP not found for host {id}.')
        return {'floating_ip_info': ADDRESS.render_all(req, found)}

    @operation(
        'POST',
        policy=POLICY,
        body=lone('floating_ips_bulk_create', ADDED),
        response={'floating_ips_bulk_create': whole(dict.fromkeys(('ip_range', 'pool', 'interface'), NULLABLE_STRING))},
        errors=(403, 409, 501),
    )
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Add addresses to a pool, which is created if it does not exist."""
        requested = body['floating_ips_bulk_create']
        addresses, interface = requested['ip_range'], requested.get('interface')
        networks = self.cloud.networks
        pool = networks.add_pool_addresses(req.context, addresses, pool=requested.get('pool'), interface=interface)
        return {'floating_ips_bulk_create': {'ip_range': addresses, 'pool': pool, 'interface': interface}}

    @operation(
        'PUT',
        '/{id}',
        policy=POLICY,
        body=lone('ip_range', STRING),
        response={'floating_ips_bulk_delete': STRING},
        errors=(501,),
    )
    def update(self, req: Request, id: str, body: Any) -> dict[str, Any]:
        """Remove addresses, and the floating IPs that use them; the path of this request is called delete."""
        if id != 'delete':
            raise NotFound('Unknown action')
        self.cloud.networks.remove_pool_addresses(req.context, body['ip_range'])
        return {'floating_ips_bulk_delete': body['ip_range']}
