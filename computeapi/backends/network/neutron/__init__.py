"""The networks of a Neutron."""

from typing import NoReturn

from computeapi.backends.network.neutron.floating_ips import NeutronFloatingIPs
from computeapi.backends.network.neutron.networks import NeutronNets
from computeapi.backends.network.neutron.ports import NeutronPorts
from computeapi.backends.network.neutron.security_groups import NeutronSecurityGroups
from computeapi.errors import NotSupported


class NeutronNetworks(NeutronNets, NeutronPorts, NeutronSecurityGroups, NeutronFloatingIPs):
    """Implements compute's `Networks`; creating it sends no request to Neutron."""

    def nothing(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotSupported('The network service of this cloud does not support this.')

    # The operations of nova-network that a Neutron does not have.
    fixed_ip = reserve_fixed_ip = unreserve_fixed_ip = nothing
    pool_addresses = add_pool_addresses = remove_pool_addresses = nothing
    dns_domains = set_dns_domain = delete_dns_domain = nothing
    dns_entries = set_dns_entry = delete_dns_entry = nothing
