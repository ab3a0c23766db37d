"""/os-fixed-ips: fixed IPs, until 2.35."""

from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.gone import PROXIES
from computeapi.api.types import BOOLEAN, NULLABLE_STRING, STRING
from computeapi.compute.servers.fixed_ips import FixedAddress
from computeapi.versions import added
from computeapi.web.contract import ADMIN, Field, Policy, View, attr
from computeapi.web.controller import action, operation
from computeapi.web.request import Request

POLICY = Policy('os_compute_api:os-fixed-ips', ADMIN, 'Show, reserve and unreserve a fixed IP')

NOTHING_MORE: dict[str, Any] = {'enum': [None, 'None', {}]}


def host(found: FixedAddress) -> str | None:
    return None if found.server is None else found.server.host


def hostname(found: FixedAddress) -> str | None:
    return None if found.server is None else found.server.hostname


FIXED_IP = View(
    {
        'address': Field(STRING, attr('fixed_ip.address')),
        'cidr': Field(STRING, attr('fixed_ip.cidr')),
        'host': Field(NULLABLE_STRING, host),
        'hostname': Field(NULLABLE_STRING, hostname),
        'reserved': added('2.4', Field(BOOLEAN, attr('fixed_ip.reserved'))),
    }
)


class FixedIPs(ComputeController):
    """Fixed IP addresses."""

    path = '/os-fixed-ips'
    versions = PROXIES

    @operation('GET', '/{id}', policy=POLICY, response={'fixed_ip': FIXED_IP}, errors=(501,))
    def show(self, req: Request, id: str) -> dict[str, Any]:
        """Show a fixed IP and the server that uses it."""
        return {'fixed_ip': FIXED_IP.render(req, self.cloud.fixed_ips.get(req.context, id))}

    @action('reserve', policy=POLICY, takes=NOTHING_MORE, errors=(501,))
    def reserve(self, req: Request, id: str, body: Any) -> None:
        """Reserve a fixed IP, so that no port gets it."""
        self.cloud.networks.reserve_fixed_ip(req.context, id)

    @action('unreserve', policy=POLICY, takes=NOTHING_MORE, errors=(501,))
    def unreserve(self, req: Request, id: str, body: Any) -> None:
        """Unreserve a fixed IP, so that ports can get it again."""
        self.cloud.networks.unreserve_fixed_ip(req.context, id)
