"""The networks of a cloud: a Neutron."""

from computeapi.backends.network.neutron.floating_ips import NeutronFloatingIPs
from computeapi.backends.network.neutron.former import NoFormerNetworks
from computeapi.backends.network.neutron.networks import NeutronNets
from computeapi.backends.network.neutron.ports import NeutronPorts
from computeapi.backends.network.neutron.security_groups import NeutronSecurityGroups


class NeutronNetworks(NeutronNets, NeutronPorts, NeutronSecurityGroups, NeutronFloatingIPs, NoFormerNetworks):
    """The `Networks` of compute; made without asking Neutron anything."""
