"""The same requests to two endpoints in turn: how long each takes to answer, and how much of a processor.

python benchmarks/against.py http://127.0.0.1:8774/v2.1 http://127.0.0.1:18774/v2.1 --os-cloud ours --os-cloud theirs
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests
from processes import cpu_seconds, listening_at, with_children

COLLECTIONS = (
    '/',
    '/flavors',
    '/flavors/detail',
    '/os-availability-zone',
    '/limits',
    '/os-keypairs',
    '/os-server-groups',
    '/servers',
    '/servers/detail',
)
PARTS = ('', '/ips', '/metadata', '/os-interface', '/os-volume_attachments', '/os-instance-actions')
"""What is asked of one server."""


class Cost(NamedTuple):
    """What one request took, in seconds; processor: None where the processes are not known."""

    latency: float
    processor: float | None


class Side:
    """One of the two endpoints.

    pids: its processes; None: those that listen at its port.
    """

    def __init__(self, url: str, token: str | None, version: str, pids: Sequence[int] | None):
        self.url = url.rstrip('/')
        self.session = requests.Session()
        self.session.headers.update({'OpenStack-API-Version': f'compute {version}', 'Accept': 'application/json'})
        if token:
            self.session.headers['X-Auth-Token'] = token
        parts = urlsplit(url)
        port = parts.port or {'http': 80, 'https': 443}[parts.scheme]
        self.pids = listening_at(port) if pids is None else with_children(pids)

    def paths(self) -> dict[str, str]:
        """What to ask: the paths of this side, by the names that both sides have in common."""
        found = {path: path for path in COLLECTIONS}
        found |= {f'/flavors/{{id}}{part}': f'/flavors/{id}{part}' for id, part in self.first('flavors', '', SPECS)}
        found |= {f'/servers/{{id}}{part}': f'/servers/{id}{part}' for id, part in self.first('servers', *PARTS)}
        return found

    def first(self, collection: str, *parts: str) -> list[tuple[str, str]]:
        """The id of the first of a collection, if there is one, with each of these parts."""
        answer = self.session.get(f'{self.url}/{collection}?limit=1')
        answer.raise_for_status()
        return [(each['id'], part) for each in answer.json()[collection][:1] for part in parts]

    def cost(self, path: str, calls: int) -> Cost:
        """What a request takes, on the average of so many."""
        before, began = self.spent(), time.perf_counter()
        for _ in range(calls):
            self.session.get(self.url + path).raise_for_status()
        latency, after = time.perf_counter() - began, self.spent()
        return Cost(latency / calls, (after - before) / calls if self.pids else None)

    def spent(self) -> float:
        return cpu_seconds(self.pids)

    def status(self, path: str) -> int:
        return self.session.get(self.url + path).status_code


SPECS = '/os-extra_specs'


def main() -> None:
    options = arguments()
    sides = [
        Side(url, _of(tokens(options), number), options.version, _of(options.pids, number))
        for number, url in enumerate(options.urls)
    ]
    for side in sides:
        print(f'{side.url}: {f"{len(side.pids)} processes" if side.pids else "its processes are not known"}')
    print(f'{"":38}{"milliseconds to answer":>31}{"milliseconds of a processor":>36}')
    print(f'{"":38}{"first":>11}{"second":>11}{"ratio":>9}{"first":>18}{"second":>11}{"ratio":>9}')
    paths = [side.paths() for side in sides]
    for name in paths[0]:
        if name in paths[1]:
            compare(name, sides, [each[name] for each in paths], options)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('urls', nargs=2, metavar='URL', help='an endpoint, such as http://127.0.0.1:8774/v2.1')
    each = 'once for both, or once for each'
    parser.add_argument('--token', action='append', help=each)
    parser.add_argument(
        '--os-cloud', action='append', metavar='NAME', help=f'of clouds.yaml, to log in to; {each}; else by OS_*'
    )
    parser.add_argument(
        '--pids',
        action='append',
        type=numbers,
        metavar='PID,...',
        help='the processes of the first, then of the second',
    )
    parser.add_argument('--version', default='2.1', help='the microversion to ask for (%(default)s)')
    parser.add_argument('--rounds', type=int, default=9, help='in which both are asked in turn (%(default)s)')
    parser.add_argument('--calls', type=int, default=20, help='requests to each in a round (%(default)s)')
    return parser.parse_args()


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(',')]


def tokens(options: argparse.Namespace) -> list[str]:
    """Those that were given, or that clouds give."""
    if options.token:
        return list(options.token)
    import openstack

    return [openstack.connect(cloud=name).session.get_token() for name in options.os_cloud or [None]]


def _of(given: Sequence[Any] | None, number: int) -> Any:
    """What is for one side: its own, or that of both."""
    return given[min(number, len(given) - 1)] if given else None


def compare(name: str, sides: Sequence[Side], paths: Sequence[str], options: argparse.Namespace) -> None:
    """A line of the table; what either does not answer with success is not measured."""
    statuses = [side.status(path) for side, path in zip(sides, paths, strict=True)]
    if statuses != [200, 200]:
        print(f'{name:38}   answered {statuses[0]} and {statuses[1]}')
        return
    rounds = [
        [side.cost(path, options.calls) for side, path in zip(sides, paths, strict=True)] for _ in range(options.rounds)
    ]
    latencies = columns([(first.latency, second.latency) for first, second in rounds])
    known = all(side.pids for side in sides)
    processors = columns([(first.processor, second.processor) for first, second in rounds]) if known else ''
    print(f'{name:38}{latencies}       {processors}', flush=True)


def columns(pairs: Sequence[tuple[Any, Any]]) -> str:
    """The medians of both sides, in milliseconds, and that of their ratios: how many times less the first takes."""
    first, second = (statistics.median(pair[number] for pair in pairs) for number in (0, 1))
    ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
    return f'{first * 1e3:11.2f}{second * 1e3:11.2f}{ratio:9.1f}'


if __name__ == '__main__':
    main()
