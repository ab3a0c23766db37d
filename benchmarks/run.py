"""Compare the service with a bare WebOb application that does the same work; see README.md."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import bare
import orjson
import population
import webob

from computeapi import config, garbage
from computeapi.main import Service
from computeapi.pipeline import load

VERSION = '2.96'
TOKEN = 'user:project'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--servers', type=int, default=1000)
    parser.add_argument('--rounds', type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        service = make_service(Path(folder))
        ids = population.fill(service, options.servers)
        compared = list(pairs(service, ids))
        garbage.begin()
        garbage.exempt_existing_objects()
        for name, ours, other, calls in compared:
            check(name, ours, other)
            report(name, [ratio(ours, other, calls) for _ in range(options.rounds)])
        service.close()


def make_service(folder: Path) -> Service:
    conf = config.load(
        overrides={
            ('api', 'auth_strategy'): 'none',
            ('api', 'max_limit'): 100_000,
            ('database', 'connection'): f'sqlite:///{folder}/benchmark.db',
            ('standalone', 'data_dir'): str(folder),
        }
    )
    return Service(conf)


def pairs(service: Service, ids: list[str]):
    app = load(service, 'compute')
    yield 'frame', caller(app, '/v2.1/versions/v2.1'), caller(bare.Frame(), '/v2.1/versions/v2.1'), 500
    one = f'/v2.1/servers/{ids[len(ids) // 2]}'
    yield 'server', caller(app, one), caller(bare.Server(service.store), one), 200
    many = '/v2.1/servers/detail'
    yield 'servers', caller(app, many), caller(bare.Servers(service.store), many), 2


def caller(app: Callable, path: str, token: str = TOKEN) -> Callable[[], bytes]:
    headers = {'X-Auth-Token': token, 'OpenStack-API-Version': f'compute {VERSION}', 'Accept': 'application/json'}
    template = webob.Request.blank(path, headers=headers).environ

    def call() -> bytes:
        environ = dict(template)
        return b''.join(app(environ, lambda status, headers, exc_info=None: None))

    return call


def check(name: str, ours: Callable[[], bytes], other: Callable[[], bytes]) -> None:
    """Exit unless both sides return the same document."""
    left, right = orjson.loads(ours()), orjson.loads(other())
    if left != right:
        raise SystemExit(f'{name}: the responses differ:\n{str(left)[:2000]}\n{str(right)[:2000]}')


def ratio(ours: Callable[[], bytes], other: Callable[[], bytes], calls: int) -> tuple[float, float, float]:
    """Seconds per call of each side, measured in turn, and their ratio."""
    first, second = seconds(ours, calls), seconds(other, calls)
    return first, second, first / second


def seconds(call: Callable[[], bytes], calls: int) -> float:
    started = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - started) / calls


def report(name: str, rounds: list[tuple[float, float, float]], sides: tuple[str, str] = ('ours', 'bare')) -> None:
    ours, other, ratios = zip(*rounds, strict=True)
    first, second = (
        f'{side} {statistics.median(each) * 1e3:9.3f} ms' for side, each in zip(sides, (ours, other), strict=True)
    )
    print(
        f'{name:8} {first}   {second}   ratio {statistics.median(ratios):5.2f} ({min(ratios):.2f} to {max(ratios):.2f})'
    )


if __name__ == '__main__':
    main()
