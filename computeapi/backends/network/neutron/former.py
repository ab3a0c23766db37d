"""The operations of nova-network that a Neutron does not have."""

from typing import NoReturn

from computeapi.errors import NotSupported


class NoFormerNetworks:
    def nothing(self, *args: object, **facts: object) -> NoReturn:
        raise NotSupported('The network service of this cloud does not support this.')

    fixed_ip = reserve_fixed_ip = unreserve_fixed_ip = nothing
    pool_addresses = add_pool_addresses = remove_pool_addresses = nothing
    dns_domains = set_dns_domain = delete_dns_domain = nothing
    dns_entries = set_dns_entry = delete_dns_entry = nothing
