"""API versions, and values that depend on them.

Anything that differs between versions is a step function of the version: a schema leaf, a field of a
response, a status code. Three functions make one (`added`, `removed`, `changed`), three read it
(`resolve`, `breakpoints`, `compiled`). A step has a start and no end, so neither gaps nor overlaps
can happen by accident; an intended gap is an explicit ABSENT.
"""

from __future__ import annotations

import copy
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

FORM = re.compile(r'^([1-9]\d{0,99})\.([1-9]\d{0,99}|0)$')


class APIVersionRequest(NamedTuple):
    """A version of the API, as a client requests it; ordered numerically."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> APIVersionRequest:
        """Read 'X.Y'; ValueError for anything else, leading zeros and spaces included."""
        match = FORM.fullmatch(text)
        if match is None:
            raise ValueError(text)
        return cls(int(match[1]), int(match[2]))

    def matches(self, low: APIVersionRequest, high: APIVersionRequest) -> bool:
        """Whether low <= self <= high."""
        return low <= self <= high

    @property
    def previous(self) -> APIVersionRequest:
        return self._replace(minor=self.minor - 1)

    @property
    def next(self) -> APIVersionRequest:
        return self._replace(minor=self.minor + 1)

    def __str__(self) -> str:
        return f'{self.major}.{self.minor}'


HISTORY = {
    '2.1': 'The first version: what v2 could do, with strict validation of requests.',
    '2.2': 'Key pairs have a type, ssh or x509; creating one returns 201 and deleting one 204.',
    '2.3': 'Administrators see the hostname, kernel, ramdisk, launch index, reservation, root device and user data of '
    'a server; attached volumes show whether they are deleted with it.',
    '2.4': 'Fixed IPs show whether they are reserved.',
    '2.5': 'Everyone may filter servers by IPv6 address.',
    '2.6': 'Remote consoles are a resource of their own; the four console actions are removed.',
    '2.7': 'Granting a project access to a public flavor is a conflict.',
    '2.8': 'Remote consoles support the protocol mks.',
    '2.9': 'Servers show whether they are locked.',
    '2.10': 'Administrators can manage the key pairs of other users.',
    '2.11': 'A compute service can be forced down.',
    '2.12': 'Virtual interfaces show their network.',
    '2.13': 'Server groups show their project and user.',
    '2.14': 'Evacuate detects shared storage itself and returns no password.',
    '2.15': 'Server groups have the policies soft-affinity and soft-anti-affinity.',
    '2.16': 'Servers show the status of their host.',
    '2.17': 'A crash dump can be triggered in a server.',
    '2.18': 'The project ID in the URL is optional.',
    '2.19': 'Servers have a description.',
    '2.20': 'Volumes can be attached to and detached from shelved servers.',
    '2.21': 'The actions of deleted servers remain readable.',
    '2.22': 'A running live migration can be forced to complete.',
    '2.23': 'The running migrations of a server can be listed and shown; migrations have a type.',
    '2.24': 'A running live migration can be aborted.',
    '2.25': 'Live migration detects shared storage itself; disk over-commit is removed.',
    '2.26': 'Servers have tags.',
    '2.27': 'The header OpenStack-API-Version is supported.',
    '2.28': 'The CPU description of a hypervisor is an object.',
    '2.29': 'Evacuate verifies a named host with the scheduler unless forced.',
    '2.30': 'Live migration verifies a named host with the scheduler unless forced.',
    '2.31': 'Console tokens of every type can be looked up.',
    '2.32': 'Networks and block devices of a new server can be tagged.',
    '2.33': 'Hypervisors are listed in pages; tags of block devices are lost by mistake.',
    '2.34': 'Live migration checks the hosts after the response, asynchronously.',
    '2.35': 'Key pairs are listed in pages.',
    '2.36': 'The proxies to the image, network, volume and bare metal services and the network quotas are removed.',
    '2.37': 'A new server must specify its networks, or "auto" or "none"; tags of networks are lost by mistake.',
    '2.38': 'Listing servers by an unknown status is an error.',
    '2.39': 'The proxy for image metadata is removed, and with it the quota on it.',
    '2.40': 'Usage reports are listed in pages.',
    '2.41': 'Host aggregates show a UUID.',
    '2.42': 'Networks and block devices of a new server can be tagged again.',
    '2.43': 'The os-hosts API is removed.',
    '2.44': 'Server actions no longer manage fixed and floating IPs, and virtual interfaces are no longer listed.',
    '2.45': 'createImage and createBackup return the image ID in the body instead of a Location header.',
    '2.46': 'The request ID is returned in X-OpenStack-Request-Id, too.',
    '2.47': 'A server embeds the details of its flavor instead of linking to it.',
    '2.48': 'Diagnostics have one format for all drivers.',
    '2.49': 'Network interfaces and volumes can be tagged when they are attached.',
    '2.50': 'Quota classes include server groups and lose network quotas.',
    '2.51': 'Volumes in use can be extended; the events of an action are visible to its project.',
    '2.52': 'A server can be created with tags.',
    '2.53': 'Services and hypervisors are identified by UUID.',
    '2.54': 'Rebuild can set the key pair.',
    '2.55': 'Flavors have a description and can be updated.',
    '2.56': 'A target host can be named for a cold migration.',
    '2.57': 'File injection ("personality") and its quotas are removed; rebuild takes user data.',
    '2.58': 'Instance actions are listed in pages and by time.',
    '2.59': 'Migrations are listed in pages and by time and have a UUID.',
    '2.60': 'A volume can be attached to several servers.',
    '2.61': 'Flavors show their extra specs.',
    '2.62': 'The events of an action show the host.',
    '2.63': 'Servers have trusted image certificates.',
    '2.64': 'A server group has one policy with rules.',
    '2.65': 'A live migration can be aborted before it runs.',
    '2.66': 'Servers, actions and migrations can be filtered by changes-before.',
    '2.67': 'The volume type can be chosen when a server is created on a new volume.',
    '2.68': 'Live migration and evacuation can no longer be forced.',
    '2.69': 'Servers and services of a cell that is down are listed with the information that is available.',
    '2.70': 'Attached volumes and interfaces show their tag.',
    '2.71': 'A server shows its server groups.',
    '2.72': 'A server can be created with ports that request resources.',
    '2.73': 'A server can be locked with a reason.',
    '2.74': 'A server can be created on a named host or hypervisor.',
    '2.75': 'Unknown query parameters are errors; update and rebuild return the whole server; no swap is 0.',
    '2.76': 'The power state of a bare metal server can be changed by an external event.',
    '2.77': 'A server can be unshelved to an availability zone.',
    '2.78': 'Servers show their NUMA topology.',
    '2.79': 'Attached volumes show whether they are deleted with the server, and attaching one can set it.',
    '2.80': 'Migrations show and can be filtered by user and project.',
    '2.81': 'Images can be pre-cached on the hosts of an aggregate.',
    '2.82': 'An external event reports that an accelerator was bound.',
    '2.83': 'Everyone may filter servers by more of their attributes.',
    '2.84': 'The events of an action show details.',
    '2.85': 'delete_on_termination of an attached volume can be changed.',
    '2.86': 'Known extra specs are validated.',
    '2.87': 'Servers on volumes can be rescued.',
    '2.88': 'Hypervisors no longer show their usage, and show their uptime themselves.',
    '2.89': 'Attached volumes show the IDs of the attachment and of the block device mapping.',
    '2.90': 'A server has a hostname that its owner can choose and see.',
    '2.91': 'A server can be unshelved to a host, or unpinned from its availability zone.',
    '2.92': 'Key pairs can only be imported, and their names may contain @ and dots.',
    '2.93': 'Servers on volumes can be rebuilt.',
    '2.94': 'The hostname of a server may be a fully qualified domain name.',
    '2.95': 'An evacuated server is left stopped.',
    '2.96': 'A server shows the availability zone that it is pinned to.',
    '2.97': 'Shares can be attached to a server.',
    '2.98': 'A server embeds the properties of its image.',
    '2.99': 'Remote consoles support the type spice-direct.',
    '2.100': 'A server shows its scheduler hints.',
    '2.101': 'Attaching a volume returns immediately, with 202.',
    '2.102': 'Flavors lose rxtx_factor and the disabled flag and can be filtered by name; unknown query parameters are '
    'never ignored any more.',
    '2.103': 'The os-volumes_boot API is removed.',
    '2.104': 'An update can pin a server to its availability zone, or unpin it.',
}
"""Every version of the compute API and what it changed; the only such list."""


class _Absent:
    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return 'ABSENT'


ABSENT: Any = _Absent()
"""The value of a step function where it has none: the key is left out."""


class Versioned:
    """A step function of the version, {start: value}."""

    __slots__ = ('_starts', 'steps')

    def __init__(self, steps: Mapping[APIVersionRequest, Any]):
        self.steps = tuple(sorted(steps.items(), key=lambda pair: pair[0]))
        self._starts = [start for start, _ in self.steps]

    def at(self, version: APIVersionRequest) -> Any:
        """The value at a version; ABSENT before the first step."""
        position = bisect_right(self._starts, version)
        return self.steps[position - 1][1] if position else ABSENT

    def map(self, function: Callable[[Any], Any]) -> Versioned:
        """The same steps with *function* applied to each value that is not ABSENT."""
        return Versioned({start: value if value is ABSENT else function(value) for start, value in self.steps})

    def __repr__(self) -> str:
        return f'Versioned({", ".join(f"{start}: {value!r}" for start, value in self.steps)})'


BEGINNING = APIVersionRequest(0, 0)
"""Before every version: the start of a step function that has a value from the first version on."""


class History:
    """The versions of one service, in order, and the functions that make its step functions.

    legacy: a predecessor without versions, for which a schema may state a value of its own. Values of the first version
    also apply to it.
    default: the version of a request that names none.
    """

    def __init__(self, stories: Mapping[str, str], legacy: str | None = None):
        self.stories = stories
        self.versions = tuple(map(APIVersionRequest.parse, stories))
        self.min, self.max = self.versions[0], self.versions[-1]
        self.default = self.min
        self.legacy = APIVersionRequest.parse(legacy) if legacy else self.min

    def version(self, text: str) -> APIVersionRequest:
        """Parse *text*; ValueError if it is not a version of the service."""
        if text not in self.stories:
            raise ValueError(f'{text} is not a version of this API')
        return APIVersionRequest.parse(text)

    def until(self, text: str | None) -> History:
        """The same history, ending at that version (if any); ValueError if it is malformed or before the first one."""
        history = copy.copy(self)
        if text:
            history.max = min(self.max, APIVersionRequest.parse(text))
            if history.max < self.min:
                raise ValueError(f'{text} is before the first version of this API')
        return history

    def before(self, text: str) -> str:
        """The version before that one."""
        return str(self.version(text).previous)

    def changed(self, steps: Mapping[str, Any]) -> Versioned:
        """A new value from each of these versions on; absent before the first."""
        known = {self._start(text): value for text, value in steps.items()}
        first = min(known, default=None)
        return Versioned({BEGINNING if start == first == self.min else start: known[start] for start in known})

    def added(self, version: str, value: Any) -> Versioned:
        """Absent before *version*."""
        return self.changed({version: value})

    def removed(self, version: str, value: Any) -> Versioned:
        """Absent from *version* on."""
        return self.changed({str(self.min): value, version: ABSENT})

    def _start(self, text: str) -> APIVersionRequest:
        return self.legacy if text == str(self.legacy) else self.version(text)


COMPUTE = History(HISTORY, legacy='2.0')
MIN, MAX, LEGACY = COMPUTE.min, COMPUTE.max, COMPUTE.legacy
DEFAULT_API_VERSION = COMPUTE.default
changed, added, removed, before = COMPUTE.changed, COMPUTE.added, COMPUTE.removed, COMPUTE.before


def resolve(tree: Any, version: APIVersionRequest) -> Any:
    """The plain value of *tree* at *version*: steps taken, absent parts dropped."""
    if isinstance(tree, Versioned):
        return resolve(tree.at(version), version)
    if isinstance(tree, dict):
        items = ((key, resolve(value, version)) for key, value in tree.items())
        return {key: value for key, value in items if value is not ABSENT}
    if isinstance(tree, (list, tuple)):
        return [value for value in (resolve(item, version) for item in tree) if value is not ABSENT]
    return tree


def breakpoints(tree: Any) -> set[APIVersionRequest]:
    """The versions at which *tree* changes."""
    return set(_breakpoints(tree))


def _breakpoints(tree: Any) -> Iterator[APIVersionRequest]:
    if isinstance(tree, Versioned):
        for start, value in tree.steps:
            yield start
            yield from _breakpoints(value)
    elif isinstance(tree, dict):
        for value in tree.values():
            yield from _breakpoints(value)
    elif isinstance(tree, (list, tuple)):
        for value in tree:
            yield from _breakpoints(value)


def compiled(tree: Any, compile: Callable[[Any], Any]) -> Versioned:
    """*compile* applied once to each distinct shape of *tree*, ready for `.at(version)`."""
    steps: dict[APIVersionRequest, Any] = {}
    shapes: list[tuple[Any, Any]] = []
    for start in sorted({BEGINNING} | breakpoints(tree)):
        shape = resolve(tree, start)
        known = next((result for other, result in shapes if other == shape), None)
        if known is None:
            known = ABSENT if shape is ABSENT else compile(shape)
            shapes.append((shape, known))
        steps[start] = known
    return Versioned(steps)
