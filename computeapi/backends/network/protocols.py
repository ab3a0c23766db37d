"""Protocols in the rules of security groups."""

NUMBERS = {
    'ah': 51,
    'dccp': 33,
    'egp': 8,
    'esp': 50,
    'gre': 47,
    'icmp': 1,
    'icmpv6': 58,
    'igmp': 2,
    'ipip': 4,
    'ipv6-encap': 41,
    'ipv6-frag': 44,
    'ipv6-icmp': 58,
    'ipv6-nonxt': 59,
    'ipv6-opts': 60,
    'ipv6-route': 43,
    'ospf': 89,
    'pgm': 113,
    'rsvp': 46,
    'sctp': 132,
    'tcp': 6,
    'udp': 17,
    'udplite': 136,
    'vrrp': 112,
}
"""By the names that rules may use."""

IPV6_ICMP = 'ipv6-icmp'
ICMP, ICMPV6 = NUMBERS['icmp'], NUMBERS['icmpv6']
WITH_PORTS = frozenset(NUMBERS[name] for name in ('tcp', 'udp', 'dccp', 'sctp', 'udplite'))
OF_IPV6 = frozenset(number for name, number in NUMBERS.items() if 'v6' in name)
"""Protocols that do not occur in IPv4 packets."""


def spellings(protocol: str | None) -> list[str]:
    """The names and the number by which rules can name the protocol, which is a name or a number."""
    if protocol is None:
        return []
    number = NUMBERS.get(protocol, protocol)
    return [str(number), *(name for name in NUMBERS if str(NUMBERS[name]) == str(number))]
