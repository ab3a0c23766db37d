"""Compare the latency and CPU time of the same requests at two endpoints, which are measured in turn.

python benchmarks/against.py http://127.0.0.1:8774/v2.1 http://127.0.0.1:18774/v2.1 --os-cloud ours --os-cloud theirs
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
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
"""Paths below `/servers/{id}`."""
SPECS = '/os-extra_specs'


class Cost(NamedTuple):
    """Seconds per request; cpu: None if the processes of the endpoint are not known."""

    latency: float
    cpu: float | None


class Side:
    """One of the two endpoints.

    pids: its processes; None: those that listen on its port.  clients: how many send requests at a time, each on its
    own connection.
    """

    def __init__(self, url: str, token: str | None, version: str, pids: Sequence[int] | None, clients: int):
        self.url = url.rstrip('/')
        headers = {'OpenStack-API-Version': f'compute {version}', 'Accept': 'application/json'}
        if token:
            headers['X-Auth-Token'] = token
        self.sessions = [requests.Session() for _ in range(clients)]
        for session in self.sessions:
            session.headers.update(headers)
        self.session, self.pool = self.sessions[0], ThreadPoolExecutor(clients)
        parts = urlsplit(url)
        port = parts.port or {'http': 80, 'https': 443}[parts.scheme]
        self.pids = listening_at(port) if pids is None else with_children(pids)

    def paths(self) -> dict[str, str]:
        """The paths to request, by names that are the same on both sides: IDs of resources differ."""
        found = {path: path for path in COLLECTIONS}
        found |= {f'/flavors/{{id}}{part}': f'/flavors/{id}{part}' for id, part in self.first('flavors', '', SPECS)}
        found |= {f'/servers/{{id}}{part}': f'/servers/{id}{part}' for id, part in self.first('servers', *PARTS)}
        return found

    def first(self, collection: str, *parts: str) -> list[tuple[str, str]]:
        """The ID of the first resource of a collection, if there is one, paired with each of these parts."""
        answer = self.session.get(f'{self.url}/{collection}?limit=1')
        answer.raise_for_status()
        return [(each['id'], part) for each in answer.json()[collection][:1] for part in parts]

    def cost(self, path: str, calls: int) -> Cost:
        """The mean cost of a request. calls: how many each client sends."""

        def latency(session: requests.Session) -> float:
            began = time.perf_counter()
            for _ in range(calls):
                session.get(self.url + path).raise_for_status()
            return (time.perf_counter() - began) / calls

        before = self.cpu_seconds()
        latencies = list(self.pool.map(latency, self.sessions))
        cpu = (self.cpu_seconds() - before) / calls / len(latencies)
        return Cost(statistics.mean(latencies), cpu if self.pids else None)

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pids)

    def status(self, path: str) -> int:
        return self.session.get(self.url + path).status_code


def main() -> None:
    options = arguments()
    sides = [
        Side(
            url,
            _for_side(tokens(options), number),
            options.version,
            _for_side(options.pids, number),
            options.clients,
        )
        for number, url in enumerate(options.urls)
    ]
    for side in sides:
        print(f'{side.url}: {f"{len(side.pids)} processes" if side.pids else "processes not known, no CPU time"}')
    print(f'{"":38}{"latency in ms":>31}{"CPU time in ms":>36}')
    print(f'{"":38}{"first":>11}{"second":>11}{"ratio":>9}{"first":>18}{"second":>11}{"ratio":>9}')
    paths = [side.paths() for side in sides]
    for name in paths[0]:
        if name in paths[1]:
            compare(name, sides, [each[name] for each in paths], options)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('urls', nargs=2, metavar='URL', help='an endpoint, such as http://127.0.0.1:8774/v2.1')
    each = 'once for both endpoints, or once for each'
    parser.add_argument('--token', action='append', help=each)
    parser.add_argument(
        '--os-cloud',
        action='append',
        metavar='NAME',
        help=f'cloud in clouds.yaml whose credentials to use, {each}; the default is the OS_* variables',
    )
    parser.add_argument(
        '--pids',
        action='append',
        type=numbers,
        metavar='PID,...',
        help=f'processes whose CPU time is measured, {each}; the default is those that listen on the port of the URL',
    )
    parser.add_argument('--version', default='2.1', help='microversion to request (%(default)s)')
    parser.add_argument('--rounds', type=int, default=9, help='number of rounds (%(default)s)')
    parser.add_argument('--calls', type=int, default=20, help='requests of each client per round (%(default)s)')
    parser.add_argument('--clients', type=int, default=1, help='concurrent clients (%(default)s)')
    return parser.parse_args()


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(',')]


def tokens(options: argparse.Namespace) -> list[str]:
    """The given tokens, or new ones from the clouds' identity services."""
    if options.token:
        return list(options.token)
    import openstack

    return [openstack.connect(cloud=name).session.get_token() for name in options.os_cloud or [None]]


def _for_side(given: Sequence[Any] | None, number: int) -> Any:
    """The value of an argument for one side: its own, or the one for both."""
    return given[min(number, len(given) - 1)] if given else None


def compare(name: str, sides: Sequence[Side], paths: Sequence[str], options: argparse.Namespace) -> None:
    """Print a line of the table; a path is measured only if both endpoints answer it with 200."""
    statuses = [side.status(path) for side, path in zip(sides, paths, strict=True)]
    if statuses != [200, 200]:
        print(f'{name:38}   answered {statuses[0]} and {statuses[1]}')
        return
    rounds = [
        [side.cost(path, options.calls) for side, path in zip(sides, paths, strict=True)] for _ in range(options.rounds)
    ]
    latencies = columns([(first.latency, second.latency) for first, second in rounds])
    known = all(side.pids for side in sides)
    cpu_times = columns([(first.cpu, second.cpu) for first, second in rounds]) if known else ''
    print(f'{name:38}{latencies}       {cpu_times}', flush=True)


def columns(pairs: Sequence[tuple[Any, Any]]) -> str:
    """The median of each side in milliseconds, and the median of their ratios: how many times less the first takes."""
    first, second = (statistics.median(pair[number] for pair in pairs) for number in (0, 1))
    ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
    return f'{first * 1e3:11.2f}{second * 1e3:11.2f}{ratio:9.1f}'


if __name__ == '__main__':
    main()
