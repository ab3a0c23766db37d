"""The networks of a Neutron."""

from computeapi.backends.network.neutron.floating_ips import NeutronFloatingIPs
from computeapi.backends.network.neutron.former import NoFormerNetworks
from computeapi.backends.network.neutron.networks import NeutronNets
from computeapi.backends.network.neutron.ports import NeutronPorts
from computeapi.backends.network.neutron.security_groups import NeutronSecurityGroups


class NeutronNetworks(NeutronNets, NeutronPorts, NeutronSecurityGroups, NeutronFloatingIPs, NoFormerNetworks):
    """Implements compute's `Networks`; creating it sends no request to Neutron."""
