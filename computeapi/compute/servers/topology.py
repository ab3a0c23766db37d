"""The NUMA topology of a server, as requested by its flavor, or else by its image."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from computeapi.db.servers import Server

MAX_NODES = 64
PAGE_SIZES = {'small': 4, 'any': 4, 'large': 2048}
PAGE_SIZE = re.compile(r'(\d{1,12})([kMGT]?)i?(?:b|bit|B)?', re.IGNORECASE)
KIB = {'': 1, 'k': 1, 'm': 2**10, 'g': 2**20, 't': 2**30}


class Node(NamedTuple):
    """siblings: the groups of its CPUs that are threads of one core."""

    vcpus: list[int]
    memory_mb: int
    siblings: list[list[int]]
    # The hosts have one node each, and pin no CPUs.
    host_node: int = 0
    cpu_pinning: Mapping[str, int] = {}


class Topology(NamedTuple):
    nodes: list[Node]
    pagesize_kb: int | None


def topology_of(server: Server) -> Topology:
    """The topology; without nodes for a server that requests none, or that is on no host."""
    properties = TopologyProperties(server)
    count = properties.nodes() if server.host is not None else 0
    threads = properties.number('cpu_threads') or 1
    nodes = []
    for index in range(count):
        vcpus = properties.vcpus(index) or share(server.vcpus, index, count)
        memory_mb = properties.number(f'numa_mem.{index}') or server.memory_mb // count
        nodes.append(Node(vcpus, memory_mb, siblings(vcpus, threads)))
    return Topology(nodes, properties.page_size() if nodes else None)


class TopologyProperties:
    """What a server's flavor, or else its image, says about CPUs and memory; invalid values are ignored."""

    def __init__(self, server: Server):
        specs, properties = server.flavor.get('extra_specs') or {}, server.image_properties
        prefixed = {f'hw:{key[3:]}': value for key, value in properties.items() if key.startswith('hw_')}
        self.texts = {key: str(value) for key, value in (prefixed | specs).items()}
        self.vcpu_count = server.vcpus

    def text(self, name: str) -> str:
        return self.texts.get(f'hw:{name}', '').strip()

    def number(self, name: str) -> int:
        text = self.text(name)
        return int(text) if text.isdecimal() and len(text) < 12 else 0

    def nodes(self) -> int:
        """The number of nodes; a page size or dedicated CPUs imply one node."""
        alone = bool(self.text('mem_page_size')) or self.text('cpu_policy') == 'dedicated'
        return min(self.number('numa_nodes') or int(alone), self.vcpu_count, MAX_NODES)

    def vcpus(self, index: int) -> list[int]:
        """The CPUs of a node, written as 0,2-4,^3."""
        chosen: set[int] = set()
        left_out: set[int] = set()
        for part in filter(None, self.text(f'numa_cpus.{index}').split(',')):
            low, _, high = part.strip().removeprefix('^').partition('-')
            if not (low.isdecimal() and (high or low).isdecimal()):
                return []
            last = min(int(high or low), self.vcpu_count - 1)
            (left_out if '^' in part else chosen).update(range(int(low), last + 1))
        return sorted(chosen - left_out)

    def page_size(self) -> int | None:
        """The page size in KiB; None if any will do."""
        text = self.text('mem_page_size')
        match = PAGE_SIZE.fullmatch(text)
        return int(match[1]) * KIB[match[2].lower()] if match else PAGE_SIZES.get(text)


def share(count: int, index: int, parts: int) -> list[int]:
    """The numbers below *count* in one of *parts* equal parts."""
    return list(range(count * index // parts, count * (index + 1) // parts))


def siblings(vcpus: list[int], threads: int) -> list[list[int]]:
    if threads < 2:
        return []
    return [vcpus[start : start + threads] for start in range(0, len(vcpus), threads)]
