"""Turns a wiring into nftables rules: which packets may leave and reach a guest, and how networks lead outside.

Not every kernel tracks connections on bridges. Instead, each port has its own sets of flows that were allowed, so that
no guest can fill up the sets of others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network, collapse_addresses
from typing import Any

from computeapi.backends.hypervisor.qemu.bridges.wires import Segment, Wire, WireRule, Wiring
from computeapi.backends.network import protocols

TABLE = 'computeapi'
METADATA, LOOPBACK = '169.254.169.254', '127.0.0.0/8'
MAX_FLOWS = 65535
# The idle timeouts of flows that RFC 5382 and RFC 4787 ask for.
TCP_SECONDS, OTHER_SECONDS = 7440, 300
# The key of a flow, in packets that the guest sends and in packets that it receives.
SENT = 'ip daddr . meta l4proto . th dport . ip saddr . th sport'
CAME = 'ip saddr . meta l4proto . th sport . ip daddr . th dport'
FLOW = 'ipv4_addr . inet_proto . inet_service . ipv4_addr . inet_service'
PAIR = 'ipv4_addr . inet_proto . ipv4_addr'
PORTS, NO_PORTS = 'meta l4proto { tcp, udp, dccp, sctp, udplite }', 'meta l4proto != { tcp, udp, dccp, sctp, udplite }'


def chains_of(tap: str) -> tuple[str, ...]:
    return f'from-{tap}', f'known-from-{tap}', f'to-{tap}', f'known-to-{tap}'


def sets_of(tap: str) -> tuple[str, ...]:
    return f'flows-{tap}', f'pairs-{tap}'


def text(lines: Iterable[str]) -> str:
    return ''.join(f'{line}\n' for line in lines)


# ------------------------------------------------------------------ guests


def guard(wiring: Wiring, there: Sequence[str], forgotten: Iterable[str]) -> str:
    """The bridge table, in place of the previous one. there: the chains and sets that it has, kind and name.

    forgotten: taps whose rules have changed: flows that the old rules allowed are checked anew."""
    lines = [f'add table bridge {TABLE}']
    for name, hook, priority in (('guests-send', 'prerouting', -300), ('guests-get', 'postrouting', 300)):
        lines.append(f'add chain bridge {TABLE} {name} {{ type filter hook {hook} priority {priority}; }}')
        lines.append(f'flush chain bridge {TABLE} {name}')
    names = {'chain guests-send', 'chain guests-get'}
    for wire in wiring.wires:
        for chain in chains_of(wire.tap):
            lines += [f'add chain bridge {TABLE} {chain}', f'flush chain bridge {TABLE} {chain}']
        for name, kind in zip(sets_of(wire.tap), (FLOW, PAIR), strict=True):
            facts = f'type {kind}; flags dynamic,timeout; size {MAX_FLOWS}; timeout {OTHER_SECONDS}s;'
            lines.append(f'add set bridge {TABLE} {name} {{ {facts} }}')
        names |= {f'chain {each}' for each in chains_of(wire.tap)} | {f'set {each}' for each in sets_of(wire.tap)}
    lines += [f'flush set bridge {TABLE} {name}' for tap in forgotten for name in sets_of(tap)]
    # Chains before sets, and chains that jump to others first.
    gone = sorted((each for each in there if each not in names), key=lambda each: (each[0] != 'c', 'known' in each))
    lines += [f'flush {each.replace(" ", f" bridge {TABLE} ")}' for each in gone]
    lines += [f'delete {each.replace(" ", f" bridge {TABLE} ")}' for each in gone]
    for wire in wiring.wires:
        lines += [f'add rule bridge {TABLE} {rule}' for rule in rules_of(wire)]
    for chain, name, to in (('guests-send', 'iifname', 'from'), ('guests-get', 'oifname', 'to')):
        for wire in wiring.wires:
            lines.append(f'add rule bridge {TABLE} {chain} {name} "{wire.tap}" goto {to}-{wire.tap}')
    return text(lines)


def rules_of(wire: Wire) -> Iterator[str]:
    out, known_out, into, known_in = chains_of(wire.tap)
    own = [IPv4Network(address) for _, address in wire.addresses]
    if not wire.is_up:
        yield from (f'{out} drop', f'{into} drop')
        return
    yield f'{out} ip daddr {METADATA} ip saddr != {among(own)} drop' if own else f'{out} ip daddr {METADATA} drop'
    if wire.rules is None:
        yield from (f'{out} accept', f'{into} accept')
        return
    yield from _spoken(wire, out)
    yield from _remembered(wire.tap, out, known_out, SENT)
    yield from (f'{out} {match} goto {known_out}' for match in matches(wire.rules, ingress=False))
    yield f'{out} drop'
    yield f'{into} ether type arp accept'
    yield f'{into} ether type != ip drop'
    yield f'{into} udp sport 67 udp dport 68 accept'
    yield f'{into} icmp type {{ destination-unreachable, time-exceeded, parameter-problem }} accept'
    # The first fragment decided: the other fragments of a packet carry no ports.
    yield f'{into} ip frag-off & 0x1fff != 0 accept'
    yield from _remembered(wire.tap, into, known_in, CAME)
    yield from (f'{into} {match} goto {known_in}' for match in matches(wire.rules, ingress=True))
    yield f'{into} drop'


def _spoken(wire: Wire, chain: str) -> Iterator[str]:
    """Anti-spoofing: a guest may send only from its own addresses."""
    macs = f'{{ {", ".join(wire.macs)} }}'
    yield f'{chain} ether saddr != {macs} drop'
    # An ARP probe for a free address has 0.0.0.0 as its sender.
    senders = among([*wire.may_use, IPv4Network('0.0.0.0/32')])
    yield f'{chain} ether type arp arp saddr ether {macs} arp saddr ip {senders} accept'
    yield f'{chain} ether type != ip drop'
    yield f'{chain} udp sport 67 udp dport 68 drop'
    yield f'{chain} ip saddr {senders} udp sport 68 udp dport 67 accept'
    yield f'{chain} ip saddr != {among(wire.may_use)} drop' if wire.may_use else f'{chain} drop'
    yield f'{chain} ip frag-off & 0x1fff != 0 accept'


def _remembered(tap: str, chain: str, known: str, flow: str) -> Iterator[str]:
    """Packets of a flow that was allowed pass, in both directions."""
    flows, pairs = sets_of(tap)
    first, second = ('ip daddr', 'ip saddr') if flow == SENT else ('ip saddr', 'ip daddr')
    pair = f'{first} . meta l4proto . {second}'
    yield f'{known} meta l4proto tcp update @{flows} {{ {flow} timeout {TCP_SECONDS}s }} accept'
    yield f'{known} {PORTS} update @{flows} {{ {flow} timeout {OTHER_SECONDS}s }} accept'
    yield f'{known} {NO_PORTS} update @{pairs} {{ {pair} timeout {OTHER_SECONDS}s }} accept'
    yield f'{known} accept'
    yield f'{chain} {PORTS} {flow} @{flows} goto {known}'
    yield f'{chain} {NO_PORTS} {pair} @{pairs} goto {known}'


def matches(rules: Iterable[WireRule], *, ingress: bool) -> Iterator[str]:
    side = 'saddr' if ingress else 'daddr'
    for rule in rules:
        if rule.ingress != ingress or rule.remotes == ():
            continue
        parts = [] if rule.remotes is None else [f'ip {side} {among(rule.remotes)}']
        if rule.protocol is not None:
            parts.append(f'meta l4proto {rule.protocol}')
        if rule.protocol == protocols.ICMP:
            parts += [f'icmp {what} {n}' for what, n in (('type', rule.first), ('code', rule.last)) if n is not None]
        elif rule.protocol in protocols.WITH_PORTS and rule.first is not None:
            parts.append(f'th dport {rule.first}-{rule.last if rule.last is not None else rule.first}')
        yield ' '.join(parts)


def among(networks: Iterable[IPv4Network]) -> str:
    """Collapsed to the fewest networks, because sets accept no overlapping elements."""
    return f'{{ {", ".join(map(str, collapse_addresses(networks)))} }}'


# ------------------------------------------------------------------ the host


def route(wiring: Wiring, metadata_port: int | None = None) -> str:
    """The host's table: what networks may reach beyond themselves, and with which source address.

    metadata_port: the port of the loopback to which the metadata address is redirected."""
    bridges = {segment.id: segment.bridge for segment in wiring.segments.values()}
    ours = f'{{ {", ".join(sorted(quoted(each) for each in bridges.values()))} }}'
    floating = sorted({pair for wire in wiring.wires for pair in wire.floating})
    inwards = [*_to_metadata(ours, metadata_port), *_inwards(floating)]
    return text(
        [
            f'add table ip {TABLE}',
            f'delete table ip {TABLE}',
            f'table ip {TABLE} {{',
            *_chain('to-host', 'filter hook input priority 0', _to_host(ours)),
            *_chain('through', 'filter hook forward priority 0', _through(wiring, ours)),
            *_chain('inwards', 'nat hook prerouting priority -100', inwards),
            *_chain('from-host', 'nat hook output priority -100', _inwards(floating)),
            *_chain('outwards', 'nat hook postrouting priority 100', _outwards(wiring, floating, ours)),
            '}',
        ]
    )


def _chain(name: str, kind: str, rules: Iterable[str]) -> Iterator[str]:
    yield f'chain {name} {{ type {kind}; policy accept;'
    yield from rules
    yield '}'


def _to_host(ours: str) -> Iterator[str]:
    """A guest reaches only those services of the host that are meant for it."""
    yield f'iifname != {ours} accept'
    yield f'ip saddr {LOOPBACK} drop'
    yield 'ct state established,related accept'
    yield f'ip daddr {LOOPBACK} ct status dnat accept'
    yield f'ip daddr {LOOPBACK} drop'
    yield 'icmp type echo-request accept'
    yield 'udp dport { 53, 67 } accept'
    yield 'tcp dport 53 accept'
    yield 'drop'


def _through(wiring: Wiring, ours: str) -> Iterator[str]:
    segments = sorted(wiring.segments.values(), key=lambda segment: segment.id)
    # A guest without port security could otherwise pass for one of another network, with its floating address.
    for segment in segments:
        own = [subnet.network for subnet in segment.subnets]
        yield f'iifname "{segment.bridge}" ' + (f'ip saddr != {among(own)} drop' if own else 'drop')
    yield 'ct state established,related accept'
    yield f'oifname {ours} ct status dnat accept'
    for segment in segments:
        beside = [other.bridge for other in segments if other.routers & segment.routers]
        if beside:
            yield f'iifname "{segment.bridge}" oifname {{ {", ".join(map(quoted, beside))} }} accept'
        if segment.way_out:
            yield f'iifname "{segment.bridge}" oifname != {ours} accept'
    yield f'iifname {ours} drop'
    yield f'oifname {ours} drop'


def _to_metadata(ours: str, port: int | None) -> Iterator[str]:
    if port is not None:
        yield f'iifname {ours} ip daddr {METADATA} tcp dport 80 dnat to 127.0.0.1:{port}'


def _inwards(floating: Sequence[tuple[Any, Any]]) -> Iterator[str]:
    yield from (f'ip daddr {outside} dnat to {inside}' for outside, inside in floating)


def _outwards(wiring: Wiring, floating: Sequence[tuple[Any, Any]], ours: str) -> Iterator[str]:
    yield from (f'ip saddr {inside} oifname != {ours} snat to {outside}' for outside, inside in floating)
    # Calls to a floating address from neighbours, or from the host with that address, seem to come from the router.
    if local := [*_local(wiring, floating)]:
        yield f'oifname {ours} ct status dnat ip saddr {among(local)} masquerade'
    for segment in wiring.segments.values():
        for subnet in segment.subnets if segment.way_out else ():
            yield f'ip saddr {subnet.network} oifname != {ours} masquerade'


def _local(wiring: Wiring, floating: Sequence[tuple[Any, Any]]) -> Iterator[IPv4Network]:
    yield from (subnet.network for segment in wiring.segments.values() for subnet in segment.subnets)
    yield from (IPv4Network(outside) for outside, _ in floating)


def quoted(name: str) -> str:
    return f'"{name}"'


def listed(found: Mapping[str, Any]) -> list[str]:
    """Kind and name of each chain and set in the output of `nft --json list table`."""
    entries = (entry for each in found['nftables'] for entry in each.items())
    return [f'{kind} {facts["name"]}' for kind, facts in entries if kind in ('chain', 'set')]


def addresses_of(segment: Segment, wiring: Wiring) -> list[str]:
    """The host's addresses on the network's bridge: those of routers, and the floating ones of guests behind it."""
    routers = [f'{each.gateway}/{each.network.prefixlen}' for each in segment.subnets if each.gateway is not None]
    return routers + [f'{outside}/32' for wire in wiring.wires_of(segment) for outside, _ in wire.floating]
