"""What the chapters of the network face share: the service behind them, and Neutron's way to say no."""

from collections.abc import Callable

import webob

from computeapi import errors
from computeapi.backends.network.local import LocalNetworks
from computeapi.context import Context
from computeapi.standalone.face import Face, FaceRequest, status_of

# Neutron's names of errors, where they are not those of our classes.
TYPES: dict[type[errors.Error], str] = {
    errors.NoMoreAddresses: 'IpAddressGenerationFailure',
    errors.AddressInUse: 'IpAddressAlreadyAllocated',
    errors.FloatingIPInUse: 'FloatingIPPortAlreadyAssociated',
    errors.NotFound: 'HTTPNotFound',
    errors.Conflict: 'HTTPConflict',
    errors.Invalid: 'HTTPBadRequest',
    errors.Forbidden: 'PolicyNotAuthorized',
    errors.TooLarge: 'HTTPRequestEntityTooLarge',
}


class NetworkService(Face):
    """A face on local networks; readers may only read."""

    name = 'network'
    writers = frozenset({'admin', 'manager', 'member'})

    def __init__(self, networks: LocalNetworks, authenticate: Callable[[str], Context]):
        super().__init__(authenticate)
        self.networks = networks.resources

    def answer(self, req: FaceRequest) -> webob.Response:
        try:
            return super().answer(req)
        except errors.NotAuthenticated as error:
            return self.unauthorized(req, str(error))
        except errors.Error as error:
            return self.refusal(_status(error), _type(error), str(error))

    def fault(self, status: int, message: str) -> webob.Response:
        return self.refusal(status, 'HTTPBadRequest', message)

    def refusal(self, status: int, kind: str, message: str) -> webob.Response:
        return self.render((status, {'NeutronError': {'type': kind, 'message': message, 'detail': ''}}))

    def unauthorized(self, req: FaceRequest, message: str) -> webob.Response:
        response = self.render((401, {'error': {'code': 401, 'title': 'Unauthorized', 'message': message}}))
        response.headers['WWW-Authenticate'] = f'Keystone uri="{req.host_url}/identity"'
        return response


def _status(error: errors.Error) -> int:
    """Neutron calls a full quota a conflict."""
    return 409 if isinstance(error, errors.OverQuota) else status_of(error)


def _type(error: errors.Error) -> str:
    return TYPES.get(type(error), type(error).__name__)
