"""Security group rules in the format of the compute API: ingress by TCP, UDP or ICMP."""

import ipaddress
from collections.abc import Mapping
from typing import Any

from computeapi.errors import Invalid

ANYWHERE = '0.0.0.0/0'
MAX_PORT, MAX_ICMP = 65535, 255
PROTOCOLS = ('tcp', 'udp', 'icmp')
MAX_SHOWN_LENGTH = 64
ALL_OF = {'tcp': (1, MAX_PORT), 'udp': (1, MAX_PORT), 'icmp': (-1, -1)}


def rule_of(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A rule in the format of the network service; Invalid.

    wanted: ip_protocol, from_port and to_port, and either group_id or cidr; neither of the two means anywhere.
    """
    protocol, low, high = wanted.get('ip_protocol'), wanted.get('from_port'), wanted.get('to_port')
    if wanted.get('group_id'):
        source = {'remote_group_id': wanted['group_id'], 'ethertype': 'IPv4'}
        if low is None and high is None:
            low, high = ALL_OF.get(str(protocol).lower(), (None, None))
    else:
        source = of_network(wanted.get('cidr') or ANYWHERE)
        if not protocol or low is None or high is None:
            raise Invalid('Not enough parameters to build a valid rule.')
    if not protocol or low is None or high is None:
        return source
    return source | of_ports(protocol, low, high)


def of_network(cidr: Any) -> dict[str, Any]:
    text = str(cidr).strip()
    try:
        address = ipaddress.ip_interface(text)
        if '/' not in text:
            raise ValueError(text)
    except ValueError:
        raise Invalid(f'{str(cidr)[:MAX_SHOWN_LENGTH]} is not a valid IP network.') from None
    network = address.network
    if network.prefixlen == 0 and int(address.ip) != 0:
        raise Invalid(f'Bad prefix for network in cidr {cidr}')
    return {'remote_ip_prefix': str(address), 'ethertype': f'IPv{network.version}'}


def of_ports(protocol: Any, low: Any, high: Any) -> dict[str, Any]:
    name = str(protocol).lower()
    if name not in PROTOCOLS:
        raise Invalid(f'Invalid IP protocol {str(protocol)[:MAX_SHOWN_LENGTH]}.')
    first, last = whole(name, low), whole(name, high)
    if name == 'icmp':
        check_icmp(first, last)
        return {'protocol': name, 'port_range_min': or_any(first), 'port_range_max': or_any(last)}
    check_ports(name, first, last)
    return {'protocol': name, 'port_range_min': first, 'port_range_max': last}


def whole(protocol: str, value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        what = 'Type and Code' if protocol == 'icmp' else 'To and From ports'
        suffix = ' for ICMP protocol type' if protocol == 'icmp' else ''
        raise Invalid(f'Invalid input received: {what} must be integers{suffix}') from None


def check_ports(protocol: str, low: int, high: int) -> None:
    if low > high:
        text = 'Former value cannot be greater than the later'
    elif low < 1 or high > MAX_PORT:
        text = f'Valid {protocol.upper()} ports should be between 1-{MAX_PORT}'
    else:
        return
    raise Invalid(f'Invalid port range {low}:{high}. {text}')


def check_icmp(kind: int, code: int) -> None:
    if not (-1 <= kind <= MAX_ICMP and -1 <= code <= MAX_ICMP):
        raise Invalid(f'Invalid port range {kind}:{code}. For ICMP, the type:code must be valid')


def or_any(number: int) -> int | None:
    """Translate -1, which means any type or code, to None."""
    return None if number == -1 else number
