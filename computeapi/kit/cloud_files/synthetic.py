"""Generates a cloud with realistic proportions: few projects have most servers, most servers run, some are years old.

The same numbers and seed generate the same cloud, relative to the time of generation.
"""

import itertools
import math
import random
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from computeapi.kit.cloud_files.content import Values
from computeapi.kit.cloud_files.schema import VERSION

T = TypeVar('T')

# Name, vCPUs, memory in MiB, disk in GiB; the most common ones first.
FLAVORS = (
    *(('general.small', 1, 2048, 20), ('general.medium', 2, 4096, 40), ('general.large', 4, 8192, 80)),
    *(('memory.medium', 2, 16384, 40), ('general.xlarge', 8, 16384, 160), ('cpu.large', 8, 8192, 40)),
    *(('memory.large', 4, 32768, 80), ('general.tiny', 1, 512, 5), ('cpu.xlarge', 16, 16384, 80)),
    *(('memory.xlarge', 8, 65536, 160), ('general.2xlarge', 16, 32768, 320), ('memory.2xlarge', 16, 131072, 320)),
)
IMAGES = ('ubuntu-24.04', 'debian-12', 'rocky-9', 'ubuntu-22.04', 'windows-2022', 'centos-7', 'alpine-3.20')
STATES = {
    'ACTIVE': 88.0,
    'SHUTOFF': 7.0,
    'ERROR': 2.0,
    'SHELVED_OFFLOADED': 1.3,
    'BUILD': 0.5,
    'SUSPENDED': 0.5,
    'PAUSED': 0.4,
    'VERIFY_RESIZE': 0.3,
}
"""In percent."""
ROLES = ('web', 'app', 'db', 'cache', 'worker', 'queue', 'build', 'proxy', 'monitor', 'gateway')
TIERS = ('prod', 'prod', 'prod', 'stage', 'dev')
FAULTS = (
    (500, 'No valid host was found. There are not enough hosts available.'),
    (500, 'Build of instance aborted: Failed to allocate the network(s), not rescheduling.'),
    (500, 'Volume did not finish being created even after we waited 187 seconds or 61 attempts.'),
)
TAGS = ('backup', 'managed', 'public', 'pci', 'temporary', 'legacy')
VOLUME_SIZES = (10, 20, 50, 100, 200, 500, 1000)
HOST_MEMORY_GIB = tuple(64 * 2**step for step in range(12))
MEDIAN_AGE_DAYS, AGE_SPREAD, OLDEST_DAYS = 90.0, 1.4, 5 * 365
# The ratio of the memory of hosts to that of servers.
ROOM = 1.5
ZONES = 3
PARTS = 2
HOSTLESS = ('ERROR', 'SHELVED_OFFLOADED')


class SyntheticHost(NamedTuple):
    name: str
    memory_mb: int


def zipf(ranks: Iterable[int], exponent: float = 1.0) -> list[float]:
    """Cumulative frequencies of these ranks; 1 is the most common."""
    return list(itertools.accumulate(1 / rank**exponent for rank in ranks))


class SyntheticCloud:
    """The content of a cloud with these numbers of servers, projects and hosts."""

    def __init__(self, servers: int, projects: int, hosts: int, seed: int, now: datetime):
        self.servers, self.seed, self.now = servers, seed, now
        self.random = random.Random(f'inventory/{seed}')
        self.projects = [f'project-{number:04}' for number in range(1, projects + 1)]
        self.users = {name: f'user-of-{name}' for name in self.projects}
        self.networks = {name: self._networks(name) for name in self.projects}
        self.host_sizes = self._sized(hosts)
        self.parts = min(PARTS, servers, projects, hosts)

    def part(self, number: int) -> 'SyntheticPart':
        """One of `parts`, each with its own projects and hosts, so that they can be created in parallel."""
        return SyntheticPart(self, number)

    def _networks(self, project: str) -> list[str]:
        return [f'{project}-net-{number}' for number in range(self.random.choice((1, 1, 1, 2, 3)))]

    def _sized(self, hosts: int) -> list[SyntheticHost]:
        """Three sizes of hosts, with room for all servers and more."""
        ends = [0.0, *FLAVOR_WEIGHTS]
        parts = [end - begin for begin, end in itertools.pairwise(ends)]
        mean = sum(part * flavor[2] for part, flavor in zip(parts, FLAVORS, strict=True)) / sum(parts)
        needed = max(self.servers * mean * ROOM / hosts, FLAVORS[-1][2]) / 1024
        step = min(math.ceil(math.log2(max(needed / HOST_MEMORY_GIB[0], 1))), len(HOST_MEMORY_GIB) - 2)
        sizes = [HOST_MEMORY_GIB[max(step - (number % 6 == 0), 0) + (number % 6 == 5)] for number in range(hosts)]
        return [SyntheticHost(f'node-{number:04}', size * 1024) for number, size in enumerate(sizes, 1)]

    def frame(self) -> dict[str, Any]:
        """A document with everything but servers and volumes."""
        projects = [{'name': name, 'description': f'{name} of a synthetic cloud'} for name in self.projects]
        return {
            'version': VERSION,
            'seed': self.seed,
            'projects': projects,
            'users': [
                # Hashing a password for each would take longer than writing all servers, so these users cannot log in.
                {'name': user, 'password_hash': '!', 'roles': [{'role': 'member', 'project': name}]}
                for name, user in self.users.items()
            ],
            'hosts': [self._host(number, each) for number, each in enumerate(self.host_sizes)],
            'flavors': [
                {'name': name, 'id': name, 'vcpus': vcpus, 'ram': ram, 'disk': disk}
                for name, vcpus, ram, disk in FLAVORS
            ],
            'images': [
                {'name': name, 'size': self.random.randrange(2**28, 2**32), 'tags': [name.split('-')[0]]}
                for name in IMAGES
            ],
            'networks': [
                {
                    'name': name,
                    'project': project,
                    'subnets': [{'name': f'{project}-subnet-{number}', 'cidr': f'10.{64 * number}.0.0/10'}],
                }
                for project, names in self.networks.items()
                for number, name in enumerate(names)
            ],
        }

    def _host(self, number: int, host: SyntheticHost) -> dict[str, Any]:
        memory_gib = host.memory_mb // 1024
        state = {'disabled': True, 'disabled_reason': 'maintenance'} if number % 97 == 96 else {}
        return {
            'name': host.name,
            'vcpus': max(memory_gib // 4, 8),
            'memory_mb': host.memory_mb,
            'local_gb': memory_gib * 32,
            'zone': f'zone-{number % ZONES + 1}',
        } | state

    def document(self) -> dict[str, Any]:
        """The complete document, for `--load`."""
        document = self.frame()
        servers, volumes = [], []
        for number in range(self.parts):
            for some, theirs in self.part(number).chunks(1000):
                servers += some
                volumes += theirs
        return document | {'volumes': _texts(volumes), 'servers': _texts(servers)}


class SyntheticPart:
    """The servers of some of the projects, on some of the hosts."""

    def __init__(self, cloud: SyntheticCloud, number: int):
        self.now, self.users, self.networks = cloud.now, cloud.users, cloud.networks
        self.random = random.Random(f'inventory/{cloud.seed}/{number}')
        self.servers = cloud.servers // cloud.parts + (number < cloud.servers % cloud.parts)
        self.projects = cloud.projects[number :: cloud.parts]
        self.hosts = cloud.host_sizes[number :: cloud.parts]
        self.project_weights = zipf(range(number + 1, len(cloud.projects) + 1, cloud.parts), 0.9)
        self.free = [float(each.memory_mb) for each in self.hosts]
        self.counts: dict[str, int] = {}

    def chunks(self, size: int) -> Iterator[tuple[list[Values], list[Values]]]:
        """Servers and their volumes in chunks, with the oldest first in each chunk."""
        for begin in range(0, self.servers, size):
            volumes: list[Values] = []
            made = [self._server(volumes) for _ in range(min(size, self.servers - begin))]
            yield sorted(made, key=itemgetter('created_at')), volumes

    def _server(self, volumes: list[Values]) -> Values:
        chance, draw = self.random.random, self.random
        project = self._weighted(self.projects, self.project_weights)
        flavor = self._weighted(FLAVORS, FLAVOR_WEIGHTS)
        status = self._weighted(STATUSES, STATUS_WEIGHTS)
        image = self._weighted(IMAGES, IMAGE_WEIGHTS)
        role, tier = ROLES[self._below(len(ROLES))], TIERS[self._below(len(TIERS))]
        name = self._numbered(f'{tier}-{role}', project)
        days = 0.01 if status == 'BUILD' else min(draw.lognormvariate(MEDIAN, AGE_SPREAD), OLDEST_DAYS)
        created = self.now - timedelta(days=days)
        entry: Values = {
            'name': name,
            'project': project,
            'user': self.users[project],
            'flavor': flavor[0],
            'image': image,
            'status': status,
            'created_at': created,
            'launched_at': None if status in ('BUILD', 'ERROR') else created + timedelta(seconds=5 + 60 * chance()),
            'metadata': {'role': role, 'tier': tier} if chance() < 0.6 else {},
        }
        if status not in HOSTLESS:
            entry['host'] = self._place(flavor[2])
        if status == 'ERROR':
            code, message = draw.choice(FAULTS)
            entry['fault'] = {'code': code, 'message': message}
        else:
            there = self.networks[project]
            two = len(there) > 1 and chance() < 0.15
            wanted = draw.sample(there, 2) if two else [there[self._below(len(there))]]
            entry['networks'] = [{'network': name} for name in wanted]
        if chance() < 0.4:
            entry['tags'] = draw.sample(TAGS, draw.choice((1, 1, 2)))
        if status not in ('ERROR', 'BUILD') and chance() < 0.3:
            entry['disks'] = self._disks(name, project, created, volumes)
        if chance() < 0.05:
            entry['locked'] = True
        return entry

    def _weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """A random item. weights: cumulative."""
        return items[bisect(weights, self.random.random() * weights[-1])]

    def _below(self, bound: int) -> int:
        """A random number from 0 on; faster than randrange, and as uniform for small bounds."""
        return int(self.random.random() * bound)

    def _numbered(self, name: str, project: str) -> str:
        key = f'{project}/{name}'
        self.counts[key] = self.counts.get(key, 0) + 1
        return f'{name}-{self.counts[key]:04}'

    def _place(self, memory_mb: int) -> str:
        """Of two random hosts, the one with more free memory, as schedulers spread servers; of all if both are full."""
        first, second = self._below(len(self.free)), self._below(len(self.free))
        chosen = first if self.free[first] >= self.free[second] else second
        if self.free[chosen] < memory_mb:
            chosen = max(range(len(self.free)), key=self.free.__getitem__)
        self.free[chosen] -= memory_mb
        return self.hosts[chosen].name

    def _disks(self, name: str, project: str, created: datetime, volumes: list[Values]) -> list[Values]:
        disks = []
        for number in range(self.random.choice((1, 1, 1, 2, 3))):
            volume = f'{project}-{name}-data-{number}'
            size = self.random.choice(VOLUME_SIZES)
            owner = {'project': project, 'user': self.users[project]}
            volumes.append({'name': volume, **owner, 'size': size, 'created_at': created})
            disks.append({'volume': volume})
        return disks


MEDIAN = math.log(MEDIAN_AGE_DAYS)
FLAVOR_WEIGHTS, IMAGE_WEIGHTS = zipf(range(1, len(FLAVORS) + 1), 1.1), zipf(range(1, len(IMAGES) + 1))
STATUSES = list(STATES)
STATUS_WEIGHTS = list(itertools.accumulate(STATES.values()))


def _texts(entries: Sequence[Values]) -> list[Values]:
    """The entries, with times as text."""
    return [
        {name: f'{each.isoformat()}Z' if isinstance(each, datetime) else each for name, each in entry.items()}
        for entry in entries
    ]
