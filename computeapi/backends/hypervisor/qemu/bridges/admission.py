"""Decides which subnets can be on the host: those whose addresses nothing else here uses."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Network

from computeapi.backends.hypervisor.qemu.bridges.wires import Segment, Subnet, Wire, Wiring

Way = tuple[IPv4Network, str]
"""A network that the host reaches, and the link by which it does."""


def admitted(
    wanted: Wiring, known: Collection[str], ways: Sequence[Way], within: Sequence[IPv4Network]
) -> tuple[Wiring, dict[str, str]]:
    """The desired wiring without the subnets that cannot be here, and the reasons, by subnet ID.

    known: IDs of subnets that were here before, which take precedence.  within: the networks in which subnets must
    lie."""
    ours = {segment.bridge for segment in wanted.segments.values()}
    others = [way for way in ways if way[1] not in ours]
    taken: list[Way] = []
    refused = {}
    for way, subnet in sorted(_offered(wanted), key=lambda each: (each[0] not in ways, each[1].id not in known)):
        # A subnet that is already on its bridge stays, even if a conflicting route or a changed option came later.
        problem = _overlap(way, taken) or (None if way in ways else _intrusion(way, others, within))
        if problem is None:
            taken.append(way)
        else:
            refused[subnet.id] = problem
    return _without(wanted, refused), refused


def _offered(wanted: Wiring) -> Iterator[tuple[Way, Subnet]]:
    for segment in wanted.segments.values():
        for subnet in segment.subnets:
            yield (subnet.network, segment.bridge), subnet


def _overlap(way: Way, taken: Sequence[Way]) -> str | None:
    network, bridge = way
    if any(network.overlaps(other) and bridge != by for other, by in taken):
        return f'Two networks of the host overlap at {network}.'
    return None


def _intrusion(way: Way, others: Sequence[Way], within: Sequence[IPv4Network]) -> str | None:
    network = way[0]
    if not any(network.subnet_of(each) for each in within):
        return f'Subnets of guests may not be at {network} on this host.'
    for other, by in others:
        if network.overlaps(other):
            return f'The host has a way to {network} already, by {by}.'
    return None


def _without(wanted: Wiring, refused: Mapping[str, str]) -> Wiring:
    segments = {network_id: _segment(segment, refused) for network_id, segment in wanted.segments.items()}
    return Wiring(segments, [_wire(wire, refused) for wire in wanted.wires])


def _segment(segment: Segment, refused: Mapping[str, str]) -> Segment:
    return replace(segment, subnets=tuple(subnet for subnet in segment.subnets if subnet.id not in refused))


def _wire(wire: Wire, refused: Mapping[str, str]) -> Wire:
    """Its rules apply to every address that it uses; but the host uses no address that may be somebody else's."""
    addresses = tuple(each for each in wire.addresses if each[0] not in refused)
    held = {address for _, address in addresses}
    return replace(wire, addresses=addresses, floating=tuple(each for each in wire.floating if each[1] in held))
