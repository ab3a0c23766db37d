"""Measure what the test kit adds to a request, and what resetting a cloud between tests costs; see README.md."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from run import caller, check, ratio, report

from computeapi import config, serve
from computeapi.clock import utcnow
from computeapi.kit.cloud_files.document import CloudFileSource
from computeapi.kit.cloud_files.loading import load
from computeapi.kit.cloud_files.synthetic import SyntheticCloud
from computeapi.kit.kit import Kit
from computeapi.main import Service
from computeapi.serve.directory import Directory, opened
from computeapi.serve.hooks import ServiceHooks
from computeapi.testing import Cloud
from computeapi.web.filters import WSGIApp

FEW = 100
TOKEN = 'admin:admin'


class LoadingHooks(ServiceHooks):
    """Loads the same servers, without a kit."""

    def __init__(self, document: dict):
        self.document = document

    def begin(self, service: Service, directory: Directory) -> None:
        load(service, CloudFileSource(self.document))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--servers', type=int, default=1000)
    parser.add_argument('--rounds', type=int, default=30)
    options = parser.parse_args()
    requests(options.rounds)
    between_tests(options.servers, options.rounds)


def requests(rounds: int) -> None:
    """Send the same requests to a cloud with a kit whose tools are not in use, and to one without a kit."""
    document = cloud_file(FEW)
    one = f'/v2.1/servers?all_tenants=1&name={document["servers"][0]["name"]}&limit=1'
    with running(Kit(cloud_file=document)) as ours, running(LoadingHooks(document)) as other:
        for name, path, calls in (('server', one, 100), ('servers', '/v2.1/servers/detail?all_tenants=1', 10)):
            left, right = (caller(app, path, TOKEN) for app in (ours, other))
            check(name, left, right)
            report(name, [ratio(left, right, calls) for _ in range(rounds)], ('kit', 'none'))


def between_tests(servers: int, rounds: int) -> None:
    """Measure the CPU time of a cloud in this process, once all modules are imported."""
    with Cloud() as cloud:
        report_times('start', [cost(lambda: Cloud().__enter__().stop()) for _ in range(5)])
        report_times('reset', [cost(cloud.reset) for _ in range(rounds)])
        cloud.load(cloud_file(servers))
        report_times('snapshot', [cost(lambda number=number: cloud.snapshot(f'{number}')) for number in range(rounds)])
        report_times('restore', [cost(lambda: cloud.restore('0')) for _ in range(rounds)])


def cloud_file(servers: int) -> dict:
    return SyntheticCloud(servers, 5, 5, seed=1, now=utcnow()).document()


@contextmanager
def running(hooks: ServiceHooks) -> Iterator[WSGIApp]:
    conf = config.load(overrides={('api', 'auth_strategy'): 'none'})
    with opened(None) as directory:
        serve.configure(conf, directory)
        with serve.running(conf, directory, hooks=hooks) as (app, _):
            yield app


def cost(act: Callable[[], object]) -> float:
    begin = time.process_time()
    act()
    return time.process_time() - begin


def report_times(name: str, seconds: list[float]) -> None:
    print(f'{name:8} {statistics.median(seconds) * 1e3:7.1f} ms ({min(seconds) * 1e3:.1f} to {max(seconds) * 1e3:.1f})')


if __name__ == '__main__':
    main()
