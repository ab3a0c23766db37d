"""Measure the CPU time of GETs behind uwsgi, and the throughput of one and two processes; see README.md.

python benchmarks/behind_uwsgi.py [--database URL] [--rounds 5] [--calls 100] [--page 50] [--clients 16] [--seconds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from calibration import LOOP, REFERENCE, calibration
from databases import database
from load import answer, free_port, load, running, shipped
from processes import cpu_seconds, listening_at
from sample_cloud import SampleCloud

BASELINE = 'version'
"""The request that the others are compared with: it needs no database."""
CALIBRATION = 'calibration'
CONCURRENCY = 4


class Uwsgi:
    """A running uwsgi. token: for its requests; keep_alive: whether clients reuse their connections."""

    def __init__(self, url: str, token: str, pids: Sequence[int], keep_alive: bool):
        self.url, self.token, self.pids, self.keep_alive = url, token, pids, keep_alive

    def cost(self, path: str, version: str, calls: int) -> float:
        """Seconds of CPU time per request, of all processes together."""
        before = cpu_seconds(self.pids)
        asyncio.run(self._request(path, version, calls))
        return (cpu_seconds(self.pids) - before) / calls

    async def _request(self, path: str, version: str, calls: int) -> None:
        """Send that many requests from a few concurrent clients: a service that sleeps between any two requests finds
        its CPU caches cold, which makes each of them slower."""
        remaining = iter(range(calls))
        lines = [
            f'GET /v2.1{path} HTTP/1.1',
            f'Host: {urlsplit(self.url).netloc}',
            f'X-Auth-Token: {self.token}',
            f'OpenStack-API-Version: compute {version}',
        ]
        request = ''.join(f'{line}\r\n' for line in [*lines, '']).encode()
        await asyncio.gather(*[self._client(path, request, remaining) for _ in range(CONCURRENCY)])

    async def _client(self, path: str, request: bytes, remaining: Iterator[int]) -> None:
        parts, writer = urlsplit(self.url), None
        for _ in remaining:
            if writer is None:
                reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            writer.write(request)
            status = await answer(reader)
            if status != 200:
                raise SystemExit(f'{path}: {status}')
            if not self.keep_alive:
                writer.close()
                writer = None
        if writer is not None:
            writer.close()


class Throughput(NamedTuple):
    """rate: responses per second; cpu: seconds of CPU time per response."""

    rate: float
    cpu: float


@contextmanager
def uwsgi(sample_cloud: SampleCloud, folder: str, processes: int, *, router: bool = True) -> Iterator[Uwsgi]:
    """With the shipped configuration, except for the number of processes; they run no tasks."""
    port = free_port()
    environment = {**sample_cloud.environment, 'COMPUTEAPI_LISTEN': f'127.0.0.1:{port}', 'OS_DEFAULT__WORKERS': '0'}
    if not router:
        environment['COMPUTEAPI_BEHIND_PROXY'] = '1'
    command = shipped('--processes', str(processes))
    with running(command, f'http://127.0.0.1:{port}', folder, **environment) as url:
        # Each process loads its app at its first request.
        server = Uwsgi(url, sample_cloud.token, listening_at(port), keep_alive=router)
        server.cost(*sample_cloud.paths['flavor'], 500)
        yield server


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--database', help='URL of a server on which a database may be created; default: SQLite')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--calls', type=int, default=100, help='requests of each kind per round (%(default)s)')
    parser.add_argument('--page', type=int, default=50, help='servers in a list (%(default)s)')
    parser.add_argument('--clients', type=int, default=16, help='for the throughput (%(default)s)')
    parser.add_argument('--seconds', type=float, default=5, help='of load per round, for the throughput (%(default)s)')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, database(options.database, folder) as url:
        sample_cloud = SampleCloud(Path(folder), url, options.page)
        sample_cloud.close()
        with uwsgi(sample_cloud, folder, 1) as one:
            costs(one, sample_cloud, options.rounds, options.calls)
            with uwsgi(sample_cloud, folder, 1, router=False) as direct:
                costs_without_router(one, direct, sample_cloud, options.rounds, options.calls)
            with uwsgi(sample_cloud, folder, 2) as two:
                compare_throughput([one, two], options)


def costs(server: Uwsgi, sample_cloud: SampleCloud, rounds: int, calls: int) -> None:
    """Print the CPU time of each request: on this machine, scaled to the reference machine, and as a ratio to the
    baseline."""
    found = [costs_of_round(server, sample_cloud, calls) for _ in range(rounds)]
    loop = statistics.median(each[CALIBRATION] for each in found)
    print(f'{LOOP} additions take {loop:.2f} s of CPU time on this machine')
    print(f'{"CPU time in ms":27}{"measured":>11}{f"at {REFERENCE} s":>11}{"ratio":>9}')
    for name in sample_cloud.paths:
        cost = statistics.median(each[name] for each in found)
        scaled = statistics.median(each[name] / each[CALIBRATION] * REFERENCE for each in found)
        ratio = statistics.median(each[name] / each[BASELINE] for each in found)
        print(f'{name:27}{cost * 1e3:11.3f}{scaled * 1e3:11.3f}{ratio:9.1f}', flush=True)


def costs_of_round(server: Uwsgi, sample_cloud: SampleCloud, calls: int) -> dict[str, float]:
    """Seconds of CPU time per request, and of the calibration loop in the same round."""
    before = calibration()
    found = {name: server.cost(*path, calls) for name, path in sample_cloud.paths.items()}
    return found | {CALIBRATION: (before + calibration()) / 2}


def costs_without_router(router: Uwsgi, direct: Uwsgi, sample_cloud: SampleCloud, rounds: int, calls: int) -> None:
    """Print the CPU time of some requests without the router, each on a new connection, and as a ratio to that with
    the router, on persistent connections."""
    for name in (BASELINE, 'flavor', 'server'):
        pairs = [[each.cost(*sample_cloud.paths[name], calls) for each in (router, direct)] for _ in range(rounds)]
        cost = statistics.median(without for _, without in pairs)
        ratio = statistics.median(without / with_it for with_it, without in pairs)
        print(f'{name + " without router":27}{cost * 1e3:11.3f}   {ratio:.2f} of that with the router', flush=True)


def compare_throughput(sides: Sequence[Uwsgi], options: argparse.Namespace) -> None:
    """Print the throughput of one and of two processes, measured in turn. If the clients use the same CPUs, measured
    rates say little; the number of processes divided by the CPU time per response is the rate that they would reach
    with a CPU each."""
    rounds = [[throughput(each, options.clients, options.seconds) for each in sides] for _ in range(options.rounds)]
    for number, each in enumerate(zip(*rounds, strict=True), start=1):
        rate, cpu = (statistics.median(values) for values in zip(*each, strict=True))
        noun = 'process' if number == 1 else 'processes'
        print(f'{number} {noun}: {rate:.0f} responses per second, {cpu * 1e3:.3f} ms of CPU time per response')
    measured = statistics.median(two.rate / one.rate for one, two in rounds)
    possible = statistics.median(2 * one.cpu / two.cpu for one, two in rounds)
    print(f'throughput of 2 / 1 processes: {measured:.2f} measured, {possible:.2f} with a CPU for each process')


def throughput(server: Uwsgi, clients: int, seconds: float) -> Throughput:
    """The throughput with that many concurrent clients; SystemExit if a request fails."""
    before = cpu_seconds(server.pids)
    results = asyncio.run(load(server.url, clients, seconds, token=server.token))
    if results.errors:
        raise SystemExit(f'{server.url}: {dict(results.errors)}')
    count = len(results.latencies)
    return Throughput(count / seconds, (cpu_seconds(server.pids) - before) / count)


if __name__ == '__main__':
    main()
