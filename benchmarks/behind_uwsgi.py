"""What each GET costs behind uwsgi as shipped, and some without its router; and what two of its processes serve beside
one; see README.md.

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

from databases import database
from load import answer, free_port, load, running, shipped
from pace import LOOP, REFERENCE, calibration
from processes import cpu_seconds, listening_at
from things import Things

FIRST = 'version'
"""What the others are compared with: the frame alone."""
LOOPING = 'the loop'
AT_ONCE = 4


class Uwsgi:
    """A uwsgi whose processes are known. token: of who asks; keeps: whether connections are kept open."""

    def __init__(self, url: str, token: str, pids: Sequence[int], keeps: bool):
        self.url, self.token, self.pids, self.keeps = url, token, pids, keeps

    def cost(self, path: str, version: str, calls: int) -> float:
        """Seconds of the processor, of all processes together, that a request takes."""
        before = cpu_seconds(self.pids)
        asyncio.run(self._ask(path, version, calls))
        return (cpu_seconds(self.pids) - before) / calls

    async def _ask(self, path: str, version: str, calls: int) -> None:
        """So many requests by a few clients at once: a service that waits for each finds nothing where it left it."""
        waiting = iter(range(calls))
        lines = [
            f'GET /v2.1{path} HTTP/1.1',
            f'Host: {urlsplit(self.url).netloc}',
            f'X-Auth-Token: {self.token}',
            f'OpenStack-API-Version: compute {version}',
        ]
        request = ''.join(f'{line}\r\n' for line in [*lines, '']).encode()
        await asyncio.gather(*[self._client(path, request, waiting) for _ in range(AT_ONCE)])

    async def _client(self, path: str, request: bytes, waiting: Iterator[int]) -> None:
        parts, writer = urlsplit(self.url), None
        for _ in waiting:
            if writer is None:
                reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            writer.write(request)
            status = await answer(reader)
            if status != 200:
                raise SystemExit(f'{path}: {status}')
            if not self.keeps:
                writer.close()
                writer = None
        if writer is not None:
            writer.close()


class Served(NamedTuple):
    """What many clients at once were answered. rate: answers in a second; seconds: of the processor for each."""

    rate: float
    seconds: float


@contextmanager
def uwsgi(things: Things, folder: str, processes: int, *, router: bool = True) -> Iterator[Uwsgi]:
    """As shipped, but for the number of processes, none of which works beside answering."""
    port = free_port()
    environment = {**things.environment, 'COMPUTEAPI_LISTEN': f'127.0.0.1:{port}', 'OS_DEFAULT__WORKERS': '0'}
    if not router:
        environment['COMPUTEAPI_BEHIND_PROXY'] = '1'
    command = shipped('--processes', str(processes))
    with running(command, f'http://127.0.0.1:{port}', folder, **environment) as url:
        # Each process loads its app at its first request.
        made = Uwsgi(url, things.token, listening_at(port), keeps=router)
        made.cost(*things.paths['flavor'], 500)
        yield made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--database', help='a server on which a database may be made, else SQLite')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--calls', type=int, default=100, help='of each in a round (%(default)s)')
    parser.add_argument('--page', type=int, default=50, help='servers of a list (%(default)s)')
    parser.add_argument('--clients', type=int, default=16, help='at once, of one and of two processes (%(default)s)')
    parser.add_argument('--seconds', type=float, default=5, help='for which they ask in each round (%(default)s)')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, database(options.database, folder) as url:
        things = Things(Path(folder), url, options.page)
        things.close()
        with uwsgi(things, folder, 1) as one:
            costs(one, things, options.rounds, options.calls)
            with uwsgi(things, folder, 1, router=False) as direct:
                spare(one, direct, things, options.rounds, options.calls)
            with uwsgi(things, folder, 2) as two:
                compare([one, two], options)


def costs(asked: Uwsgi, things: Things, rounds: int, calls: int) -> None:
    """A line for each thing: what it takes here, where the loop takes REFERENCE, and beside the frame alone."""
    found = [costs_of_round(asked, things, calls) for _ in range(rounds)]
    loop = statistics.median(each[LOOPING] for each in found)
    print(f'{LOOP} additions take {loop:.2f} s of the processor here')
    print(f'{"milliseconds of a processor":27}{"here":>11}{f"at {REFERENCE} s":>11}{"ratio":>9}')
    for name in things.paths:
        cost = statistics.median(each[name] for each in found)
        there = statistics.median(each[name] / each[LOOPING] * REFERENCE for each in found)
        ratio = statistics.median(each[name] / each[FIRST] for each in found)
        print(f'{name:27}{cost * 1e3:11.3f}{there * 1e3:11.3f}{ratio:9.1f}', flush=True)


def costs_of_round(asked: Uwsgi, things: Things, calls: int) -> dict[str, float]:
    """Seconds of each thing, and of the loop at the same time."""
    before = calibration()
    found = {name: asked.cost(*path, calls) for name, path in things.paths.items()}
    return found | {LOOPING: (before + calibration()) / 2}


def spare(router: Uwsgi, direct: Uwsgi, things: Things, rounds: int, calls: int) -> None:
    """What some things take without the router, of clients that connect anew for each, and beside what they take with
    it, of clients that keep their connections."""
    for name in (FIRST, 'flavor', 'server'):
        pairs = [[each.cost(*things.paths[name], calls) for each in (router, direct)] for _ in range(rounds)]
        cost = statistics.median(without for _, without in pairs)
        ratio = statistics.median(without / with_it for with_it, without in pairs)
        print(f'{name + " without router":27}{cost * 1e3:11.3f}   {ratio:.2f} of that with it', flush=True)


def compare(sides: Sequence[Uwsgi], options: argparse.Namespace) -> None:
    """One process and two, in turn. On a machine where the clients have no processor of their own the rates say
    little; what a processor's second is good for, times the processes, is what they would serve with enough of them."""
    rounds = [[served(each, options.clients, options.seconds) for each in sides] for _ in range(options.rounds)]
    for number, each in enumerate(zip(*rounds, strict=True), start=1):
        rate, seconds = (statistics.median(values) for values in zip(*each, strict=True))
        print(f'{number} of its processes: {rate:7.0f} answers a second, {seconds * 1e3:.3f} ms of a processor each')
    rate = statistics.median(two.rate / one.rate for one, two in rounds)
    room = statistics.median(2 * one.seconds / two.seconds for one, two in rounds)
    print(f'two serve {rate:.2f} times what one does here, {room:.2f} times with a processor for each')


def served(asked: Uwsgi, clients: int, seconds: float) -> Served:
    """What so many clients are answered at once; SystemExit for an error."""
    before = cpu_seconds(asked.pids)
    seen = asyncio.run(load(asked.url, clients, seconds, token=asked.token))
    if seen.errors:
        raise SystemExit(f'{asked.url}: {dict(seen.errors)}')
    return Served(len(seen.seconds) / seconds, (cpu_seconds(asked.pids) - before) / len(seen.seconds))


if __name__ == '__main__':
    main()
