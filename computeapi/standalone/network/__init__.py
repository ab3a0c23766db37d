"""The network service as clients know it: Neutron v2.0 on the local networks."""

from computeapi.backends.network.local import LocalNetworks
from computeapi.standalone.network.qos import QOS
from computeapi.standalone.network.quotas import NeutronQuotas
from computeapi.standalone.network.resources import COLLECTIONS
from computeapi.standalone.network.service import NeutronApp, NeutronController, NeutronInformation, version, versions
from computeapi.standalone.network.topology import (
    AutoAllocatedTopology,
    ExtraRoutes,
    FlavorProfiles,
    IPAvailability,
    RouterInterfaces,
)
from computeapi.standalone.service import Authenticate, Claims, VersionPage, mounted
from computeapi.web.filters import WSGIApp

CONTROLLERS: tuple[type[NeutronController], ...] = (
    *COLLECTIONS,
    *QOS,
    RouterInterfaces,
    ExtraRoutes,
    FlavorProfiles,
    IPAvailability,
    AutoAllocatedTopology,
    NeutronQuotas,
    NeutronInformation,
)


def neutron(networks: LocalNetworks, authenticate: Authenticate, claims: Claims = None) -> WSGIApp:
    """Neutron v2.0 as a WSGI app."""
    app = NeutronApp([kind(networks) for kind in CONTROLLERS], authenticate)
    return mounted(app.minding(claims), '/v2.0', VersionPage(app, versions), VersionPage(app, version, '/v2.0'))
