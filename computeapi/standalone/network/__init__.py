"""The network service as clients know it: Neutron v2.0 on the local networks."""

from computeapi.standalone.network.quotas import QuotaRoutes
from computeapi.standalone.network.resources import ResourceRoutes
from computeapi.standalone.network.tags import TagRoutes
from computeapi.standalone.network.topology import TopologyRoutes
from computeapi.standalone.network.versions import VersionRoutes


class NetworkFace(VersionRoutes, ResourceRoutes, TagRoutes, TopologyRoutes, QuotaRoutes):
    """Neutron v2.0 as a WSGI app."""
