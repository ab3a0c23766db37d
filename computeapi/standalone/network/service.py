"""What the resources of the network service share: its version, its extensions, and Neutron's way to say no."""

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

# Neutron's names of errors, where they are not those of our classes.
TYPES: dict[type[Exception], str] = {
    errors.NoMoreAddresses: 'IpAddressGenerationFailure',
    errors.AddressInUse: 'IpAddressAlreadyAllocated',
    errors.FloatingIPInUse: 'FloatingIPPortAlreadyAssociated',
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
    """Neutron calls a full quota a conflict, and names the kind of an error."""

    statuses = ((errors.OverQuota, 409),)

    def refusal(self, req: Request, status: int, message: str, error: Exception) -> webob.Response:
        if status == 401:
            response = json_response(401, {'error': {'code': 401, 'title': 'Unauthorized', 'message': message}})
            response.headers['WWW-Authenticate'] = f'Keystone uri="{req.host_url}/identity"'
            return response
        kind = TYPES.get(type(error), type(error).__name__)
        return json_response(status, {'NeutronError': {'type': kind, 'message': message, 'detail': ''}})


# What of Neutron beyond networks, subnets and ports is here, by alias.
EXTENSIONS = {
    'allowed-address-pairs': 'Addresses beside its own that may be used behind a port.',
    'auto-allocated-topology': 'A network with a way out, made for a project when it asks for it.',
    'binding': 'The host that a port is on.',
    'external-net': 'Networks that lead to the outside.',
    'extra_dhcp_opt': 'DHCP options of a port.',
    'extraroute': 'Routes of a router.',
    'filter-validation': 'Filters that mean nothing are refused.',
    'fip-port-details': 'The port in the description of its floating IP.',
    'net-mtu': 'The maximum transmission unit of a network.',
    'net-mtu-writable': 'It can be chosen.',
    'pagination': 'Lists in pages.',
    'port-resource-request': 'What a port asks of the host that it is on.',
    'port-security': 'Ports and networks without security groups.',
    'project-id': 'project_id beside tenant_id.',
    'qos': 'Policies of the quality of service, and their rules.',
    'qos-bw-limit-direction': 'Limits of bandwidth in each direction.',
    'qos-default': 'The policy of the networks that a project makes.',
    'qos-pps-minimum': 'The packets that a port must be able to send or receive.',
    'qos-port-network-policy': 'The policy of the network that a port is on.',
    'quotas': 'How much each project may have.',
    'quota_details': 'How much of it is used.',
    'router': 'Routers and floating IPs.',
    'security-group': 'Security groups and their rules.',
    'sorting': 'Lists in a chosen order.',
    'standard-attr-description': 'Descriptions of everything.',
    'standard-attr-tag': 'Free-form labels of everything.',
    'standard-attr-timestamp': 'When something was made and changed.',
    'stateful-security-group': 'Security groups that do not track connections.',
}

# Neutron says when an extension came to be; all of these came with this service.
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
    """Extensions, and the lists that are empty where no agents run."""

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
    return {'alias': alias, 'name': alias, 'description': EXTENSIONS[alias], 'updated': UPDATED, 'links': []}
