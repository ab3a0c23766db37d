"""Common parts of the network resources: the version, the extensions, and errors in Neutron's format."""

from typing import Any

import webob

from computeapi import errors
from computeapi.backends.network.local import LocalNetworks
from computeapi.standalone.access import CALLER
from computeapi.standalone.network.attributes import RESOURCES
from computeapi.standalone.service import ServiceApp, ServiceController, json_response
from computeapi.versions import History
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.routing import Match

# Neutron's names of errors, where they differ from the names of our classes.
TYPES: dict[type[Exception], str] = {
    errors.NoMoreAddresses: 'IpAddressGenerationFailure',
    errors.AddressInUse: 'IpAddressAlreadyAllocated',
    errors.FloatingIPInUse: 'FloatingIPPortAlreadyAssociated',
    errors.RevisionMismatch: 'RevisionNumberConstraintFailed',
    errors.Unreachable: 'ExternalGatewayForFloatingIPNotFound',
    errors.NotFound: 'HTTPNotFound',
    errors.Conflict: 'HTTPConflict',
    errors.Invalid: 'HTTPBadRequest',
    errors.Forbidden: 'PolicyNotAuthorized',
    errors.TooLarge: 'HTTPRequestEntityTooLarge',
}


NEUTRON = History({'2.0': 'The only version; what else there is, extensions say.'})


class NeutronController(ServiceController):
    """A resource of the network service."""

    history = NEUTRON

    def __init__(self, networks: LocalNetworks):
        self.networks = networks.resources


class NeutronApp(ServiceApp):
    """Like Neutron, answers 409 when a quota is exceeded, and errors include their type."""

    service_types = ('network', 'networking')
    on_system = False
    statuses = ((errors.RevisionMismatch, 412), (errors.OverQuota, 409))

    def find(self, req: Request) -> Match | None:
        # Clients such as shade name the format of the answer in the path: /networks.json.
        return self.routes.find({**req.environ, 'PATH_INFO': req.environ['PATH_INFO'].removesuffix('.json')})

    @classmethod
    def refusal(cls, req: Request, status: int, message: str, error: Exception) -> webob.Response:
        if status == 401:
            response = json_response(401, {'error': {'code': 401, 'title': 'Unauthorized', 'message': message}})
            response.headers['WWW-Authenticate'] = f'Keystone uri="{req.host_url}/identity"'
            return response
        kind = TYPES.get(type(error), type(error).__name__)
        return json_response(status, {'NeutronError': {'type': kind, 'message': message, 'detail': ''}})


# The supported extensions of the core API, by alias: name and description.
EXTENSIONS = {
    'address-scope': ('Address scope', 'Scopes in which addresses do not overlap.'),
    'allowed-address-pairs': ('Allowed Address Pairs', 'Addresses beside its own that may be used behind a port.'),
    'auto-allocated-topology': (
        'Auto Allocated Topology Services',
        'A network with a way out, made for a project when it asks for it.',
    ),
    'binding': ('Port Binding', 'The host that a port is on.'),
    'default-subnetpools': ('Default Subnetpools', 'The pool of subnets that name none.'),
    'ext-gw-mode': ('Neutron L3 Configurable external gateway mode', 'Routers that do not translate addresses.'),
    'external-net': ('Neutron external network', 'Networks that lead to the outside.'),
    'extra_dhcp_opt': ('Neutron Extra DHCP options', 'DHCP options of a port.'),
    'extraroute': ('Neutron Extra Route', 'Routes of a router.'),
    'extraroute-atomic': ('Atomically add/remove extra routes', 'Routes added and removed one by one.'),
    'filter-validation': ('Filter parameters validation', 'Filters that mean nothing are refused.'),
    'fip-port-details': ('Floating IP Port Details Extension', 'The port in the description of its floating IP.'),
    'flavors': ('Neutron Service Flavors', 'Flavors of network services, and their profiles.'),
    'ip-substring-filtering': ('IP address substring filtering', 'Ports found by a part of their address.'),
    'net-mtu': ('Network MTU', 'The maximum transmission unit of a network.'),
    'net-mtu-writable': ('Network MTU (writable)', 'It can be chosen.'),
    'network-ip-availability': ('Network IP Availability', 'How many addresses are used.'),
    'pagination': ('Pagination support', 'Lists in pages.'),
    'port-security': ('Port Security', 'Ports and networks without security groups.'),
    'project-id': ('project_id field enabled', 'project_id beside tenant_id.'),
    'provider': ('Provider Network', 'How a network is made.'),
    'quota-check-limit': ('Quota engine limit check', 'Limits that must not be below what is used.'),
    'quota_details': ('Quota details management support', 'How much of it is used.'),
    'quotas': ('Quota management support', 'How much each project may have.'),
    'rbac-address-scope': ('Address scope RBAC', 'Address scopes, too.'),
    'rbac-policies': ('RBAC Policies', 'Networks shared with one project.'),
    'rbac-subnetpool': ('Subnetpool RBAC', 'Pools of addresses, too.'),
    'revision-if-match': ('If-Match constraints based on revision_number', 'Changes to what is still as it was.'),
    'router': ('Neutron L3 Router', 'Routers and floating IPs.'),
    'security-group': ('security-group', 'Security groups and their rules.'),
    'security-groups-normalized-cidr': (
        'Normalized CIDR field for security group rules',
        'The network that the addresses of a rule are in.',
    ),
    'sorting': ('Sorting support', 'Lists in a chosen order.'),
    'standard-attr-description': ('standard-attr-description', 'Descriptions of everything.'),
    'standard-attr-revisions': ('Resource revision numbers', 'How often something was changed.'),
    'standard-attr-tag': ('standard-attr-tag', 'Free-form labels of everything.'),
    'standard-attr-timestamp': ('Resource timestamps', 'When something was made and changed.'),
    'stateful-security-group': ('Stateful security group', 'Security groups that do not track connections.'),
    'subnet_allocation': ('Subnet Allocation', 'Subnets from pools of addresses.'),
    'subnet-external-network': (
        'Subnet belongs to an external network',
        'Whether the network of a subnet is one.',
    ),
    'tag-ports-during-bulk-creation': ('Tag Ports During Bulk Creation', 'Labels of several new ports at once.'),
    'port-resource-request': ('Port Resource Request', 'What a port asks of the host that it is on.'),
    'qos': ('Quality of Service', 'Policies of the quality of service, and their rules.'),
    'qos-bw-limit-direction': ('Direction for QoS bandwidth limit rule', 'Limits of bandwidth in each direction.'),
    'qos-default': ('QoS default policy', 'The policy of the networks that a project makes.'),
    'qos-pps-minimum': ('QoS minimum packet rate rule', 'The packets that a port must be able to send or receive.'),
    'qos-port-network-policy': ('QoS network policy of a port', 'The policy of the network that a port is on.'),
}

# Neutron shows when an extension was introduced; all of these were introduced with this service.
UPDATED = '2026-01-01T00:00:00-00:00'


def versions(url: str) -> dict[str, Any]:
    return {'versions': [{'id': f'v{NEUTRON.max}', 'status': 'CURRENT', 'links': _self_link(f'{url}/v2.0/')}]}


def version(url: str) -> dict[str, Any]:
    shown = [
        {'name': resource.name, 'collection': resource.kind, 'links': _self_link(f'{url}/v2.0/{resource.kind}')}
        for resource in RESOURCES
    ]
    return {'resources': shown}


def _self_link(url: str) -> list[dict[str, str]]:
    return [{'rel': 'self', 'href': url}]


class NeutronInformation(NeutronController):
    """Extensions, and lists that are empty because no agents run."""

    @operation('GET', '/extensions', policy=CALLER)
    def extensions(self, req: Request) -> dict[str, Any]:
        return {'extensions': [_extension(alias) for alias in EXTENSIONS]}

    @operation('GET', '/extensions/{alias}', policy=CALLER)
    def extension(self, req: Request, alias: str) -> dict[str, Any]:
        if alias not in EXTENSIONS:
            raise errors.NotFound(f'Extension with alias {alias} does not exist')
        return {'extension': _extension(alias)}

    @operation('GET', '/agents', policy=CALLER)
    @operation('GET', '/availability_zones', policy=CALLER)
    @operation('GET', '/service-providers', policy=CALLER)
    def nothing(self, req: Request) -> dict[str, Any]:
        return {req.operation.path.strip('/').replace('-', '_'): []}


def _extension(alias: str) -> dict[str, Any]:
    name, description = EXTENSIONS[alias]
    return {'alias': alias, 'name': name, 'description': description, 'updated': UPDATED, 'links': []}
