"""What the resources of the network service share, and Neutron's way to say no."""

import webob

from computeapi import errors
from computeapi.backends.network.local import LocalNetworks
from computeapi.standalone.service import ServiceApp, ServiceController, json_response
from computeapi.versions import History
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
