"""What clients send to change a server, as values of its columns."""

import ipaddress
from collections.abc import Container, Mapping
from typing import Any

COLUMNS = {'accessIPv4': 'access_ip_v4', 'accessIPv6': 'access_ip_v6', 'OS-DCF:diskConfig': 'disk_config'}
"""Those with other names than in bodies."""


def columns_of(given: Mapping[str, Any], known: Container[str]) -> dict[str, Any]:
    """The values in the body with known names, by column."""
    values = {COLUMNS.get(name, name): value for name, value in given.items() if name in known}
    if 'name' in values:
        values['name'] = values['name'].strip()
    if 'access_ip_v6' in values:
        values['access_ip_v6'] = canonical_ipv6(values['access_ip_v6'])
    return values


def canonical_ipv6(address: str | None) -> str | None:
    """An IPv6 address in its canonical form."""
    return address and str(ipaddress.ip_address(address))
