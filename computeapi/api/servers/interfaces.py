"""/servers/{id}/os-interface: the ports of a server; until 2.43 also /servers/{id}/os-virtual-interfaces."""

from operator import itemgetter
from typing import Any

from computeapi.api.pages import WINDOW
from computeapi.api.servers.addresses import BEFORE_NEUTRON
from computeapi.api.servers.controller import ServerController
from computeapi.api.servers.create import ATTACH_EXTERNAL
from computeapi.api.servers.schemas import ADDRESS, TAG
from computeapi.api.types import NULLABLE_STRING, STRING, UUID
from computeapi.compute.servers.interfaces import Interface
from computeapi.db.servers import Server
from computeapi.errors import Invalid
from computeapi.versions import added
from computeapi.web.contract import MEMBER_OR_ADMIN, READER_OR_ADMIN, Field, Policy, Reader, View, absent, attr
from computeapi.web.controller import operation
from computeapi.web.paging import window_of
from computeapi.web.request import Request, target_of
from computeapi.web.schemas import array, closed, lone, query, whole

LIST = Policy('os_compute_api:os-attach-interfaces:list', READER_OR_ADMIN, 'List the ports of a server')
SHOW = Policy('os_compute_api:os-attach-interfaces:show', READER_OR_ADMIN, 'Show a port of a server')
CREATE = Policy('os_compute_api:os-attach-interfaces:create', MEMBER_OR_ADMIN, 'Attach a port to a server')
DELETE = Policy('os_compute_api:os-attach-interfaces:delete', MEMBER_OR_ADMIN, 'Detach a port from a server')
LIST_VIRTUAL = Policy('os_compute_api:os-virtual-interfaces', READER_OR_ADMIN, 'List the interfaces of a server')

# ------------------------------------------------------------------ requests

ATTACH = closed(
    {
        'net_id': UUID,
        'port_id': UUID,
        'fixed_ips': {'type': 'array', 'minItems': 1, 'maxItems': 1, 'items': lone('ip_address', ADDRESS)},
        'tag': added('2.49', TAG),
    }
)

# ------------------------------------------------------------------ views


def addresses(interface: Interface) -> list[dict[str, str]]:
    return [{name: fixed[name] for name in ('subnet_id', 'ip_address')} for fixed in interface.port.fixed_ips]


INTERFACE = View(
    {
        'port_id': Field(UUID, attr('port.id')),
        'net_id': Field(UUID, attr('port.network_id')),
        'mac_addr': Field(STRING, attr('port.mac_address')),
        'port_state': Field(STRING, attr('port.status')),
        'fixed_ips': Field(
            array(whole({'subnet_id': UUID, 'ip_address': STRING})),
            addresses,
        ),
        'tag': added('2.70', Field(NULLABLE_STRING, attr('tag'))),
    }
)


def network_in_v2(req: Request) -> Reader:
    return itemgetter('network_id') if req.legacy else absent


VIRTUAL_INTERFACE = View(
    {
        'id': Field(UUID, itemgetter('port_id')),
        'mac_address': Field(STRING, itemgetter('mac_address')),
        'OS-EXT-VIF-NET:net_id': Field(UUID, network_in_v2, request=True, optional=True),
        'net_id': added('2.12', Field(UUID, itemgetter('network_id'))),
    }
)


class ServerInterfaces(ServerController):
    """The network interfaces of a server."""

    path = '/servers/{server_id}/os-interface'

    @operation('GET', policy=LIST, response={'interfaceAttachments': array(INTERFACE)})
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """List the ports of a server."""
        found = self.cloud.interfaces.list(req.context, server)
        return {'interfaceAttachments': INTERFACE.render_all(req, found)}

    @operation('GET', '/{id}', policy=SHOW, response={'interfaceAttachment': INTERFACE})
    def show(self, req: Request, server: Server, id: str) -> dict[str, Any]:
        """Show a port of a server."""
        return {'interfaceAttachment': INTERFACE.render(req, self.cloud.interfaces.get(req.context, server, id))}

    @operation(
        'POST',
        policy=CREATE,
        also=(SHOW, ATTACH_EXTERNAL),
        body=closed({'interfaceAttachment': ATTACH}),
        response={'interfaceAttachment': INTERFACE},
        errors=(403, 409, 501),
    )
    def create(self, req: Request, server: Server, body: Any) -> dict[str, Any]:
        """Attach a port to a server: an existing one, or a new one on a network."""
        req.check(SHOW, target_of(server))
        wanted = body.get('interfaceAttachment', {})
        port_id, network_id, addresses = (wanted.get(name) for name in ('port_id', 'net_id', 'fixed_ips'))
        if port_id and network_id:
            raise Invalid('Must not input both network_id and port_id')
        if addresses and not network_id:
            raise Invalid('Must input network_id when request IP address')
        interface = self.cloud.interfaces.attach(
            req.context,
            server,
            port_id=port_id,
            network_id=network_id,
            fixed_ip=addresses[0]['ip_address'] if addresses else None,
            tag=wanted.get('tag'),
            external_networks=req.allows(ATTACH_EXTERNAL),
        )
        return {'interfaceAttachment': INTERFACE.render(req, interface)}

    @operation('DELETE', '/{id}', policy=DELETE, status=202, errors=(409, 501))
    def delete(self, req: Request, server: Server, id: str) -> None:
        """Detach a port from a server."""
        self.cloud.interfaces.detach(req.context, server, id)


class VirtualInterfaces(ServerController):
    """The virtual interfaces of a server, as recorded by compute."""

    path = '/servers/{server_id}/os-virtual-interfaces'
    versions = BEFORE_NEUTRON

    @operation(
        'GET',
        policy=LIST_VIRTUAL,
        query=query(WINDOW),
        response={'virtual_interfaces': array(VIRTUAL_INTERFACE)},
    )
    def index(self, req: Request, server: Server) -> dict[str, Any]:
        """List the interfaces of a server."""
        limit, offset = window_of(req, self.cloud.max_limit)
        made = [entry for entry in server.network_info if entry['mac_address'] is not None]
        return {'virtual_interfaces': VIRTUAL_INTERFACE.render_all(req, made[offset : offset + limit])}
