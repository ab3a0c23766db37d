"""Measure the CPU time until the service has started, and its memory, in relation to Python's own; see README.md."""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from load import answers, free_port, load
from processes import cpu_seconds, resident_mib

ROOT = Path(__file__).parent.parent
# An empty PYTHONDONTWRITEBYTECODE has no effect: modules are compiled once, as on any machine where the service runs.
ENVIRONMENT = os.environ | {
    'PYTHONPATH': str(ROOT),
    'OS_API__AUTH_STRATEGY': 'none',
    'PYTHONDONTWRITEBYTECODE': '',
}
LIBRARIES = 'import webob, sqlalchemy'
PROGRAMS = {
    'python': ('-c', 'pass'),
    LIBRARIES: ('-c', LIBRARIES),
    'computeapi --help': ('-m', 'computeapi', '--help'),
    'computeapi control --help': ('-m', 'computeapi', 'control', '--help'),
    'import computeapi.main': ('-c', 'import computeapi.main'),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=60, help='of load, a quarter of it writes (%(default)s)')
    parser.add_argument('--clients', type=int, default=20)
    options = parser.parse_args()
    measured: dict[str, Callable[[], float]] = {
        name: lambda arguments=arguments: run_to_exit(arguments) for name, arguments in PROGRAMS.items()
    }
    measured['serve, until it answers'] = serve_until_ready
    # In turn, so that other load on the machine affects all programs of a round alike.
    rounds = [{name: measure() for name, measure in measured.items()} for _ in range(options.rounds)]
    print(f'{"":27}{"CPU time in s":>24}{"/ python":>14}{"/ libraries":>21}')
    for name in measured:
        cost = statistics.median(row[name] for row in rounds)
        python, libraries = (
            statistics.median(row[name] / row[other] for row in rounds) for other in ('python', LIBRARIES)
        )
        print(f'{name:27}{cost:24.3f}{python:14.1f}{libraries:21.2f}')
    memory(options.seconds, options.clients)


def run_to_exit(arguments: tuple[str, ...]) -> float:
    """Seconds of CPU time that Python uses with these arguments, from start to exit."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], env=ENVIRONMENT, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def serve_until_ready() -> float:
    with serving() as (_, pid):
        return cpu_seconds([pid])


@contextmanager
def serving() -> Iterator[tuple[str, int]]:
    """The URL and the process of a cloud that answers."""
    port = free_port()
    command = [sys.executable, '-m', 'computeapi', 'serve', '--quiet', '--in-memory', '--port', str(port)]
    with tempfile.TemporaryDirectory() as folder, open(Path(folder, 'log'), 'w') as log:
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=log, stderr=log, cwd=folder)
        try:
            while not answers(url := f'http://127.0.0.1:{port}'):
                if process.poll() is not None:
                    raise SystemExit(Path(folder, 'log').read_text())
                time.sleep(0.02)
            yield url, process.pid
        finally:
            process.terminate()
            process.wait(timeout=60)


def memory(seconds: float, clients: int) -> None:
    """Print the resident memory when the service first answers, and at three moments under load, to show growth."""
    with serving() as (url, pid):
        print(f'resident when it answers    {resident_mib([pid]):6.1f} MiB')
        count = 0
        for _ in range(3):
            results = asyncio.run(load(url, clients, seconds / 3, writes=True))
            count += len(results.latencies)
            errors = dict(results.errors) or 0
            print(f'resident after {count:7} requests {resident_mib([pid]):6.1f} MiB   errors {errors}')


if __name__ == '__main__':
    main()
