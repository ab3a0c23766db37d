"""Send requests from many concurrent clients on persistent connections: throughput, errors and latency."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parent.parent
FLAVOR = {'name': '', 'id': '', 'ram': 64, 'vcpus': 1, 'disk': 1}


class Load:
    """The result of a run: the latency of each response, in seconds, and the number of errors of each kind."""

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.errors: Counter[str] = Counter()

    def percentile(self, share: float) -> float:
        """The latency that this share of the responses did not exceed."""
        return sorted(self.latencies)[int(share * (len(self.latencies) - 1))]


async def load(url: str, clients: int, seconds: float, *, writes: bool = False, token: str = 'admin:admin') -> Load:
    """Send requests from that many concurrent clients for `seconds`; writes: every fourth request creates a flavor."""
    results = Load()
    until = time.perf_counter() + seconds
    await asyncio.gather(*[client(url, f'{number}', until, results, writes, token) for number in range(clients)])
    return results


async def client(url: str, name: str, until: float, results: Load, writes: bool, token: str) -> None:
    parts = urlsplit(url)
    try:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        turn = 0
        while (started := time.perf_counter()) < until:
            turn += 1
            writer.write(request(parts.netloc, f'{name}-{turn}' if writes and turn % 4 == 0 else None, token))
            status = await answer(reader)
            results.latencies.append(time.perf_counter() - started)
            if status != 200:
                results.errors[f'status {status}'] += 1
        writer.close()
    except (OSError, asyncio.IncompleteReadError) as error:
        results.errors[type(error).__name__] += 1


def request(host: str, flavor: str | None, token: str) -> bytes:
    headers = f'HTTP/1.1\r\nHost: {host}\r\nX-Auth-Token: {token}\r\n'
    if flavor is None:
        return f'GET /v2.1/flavors {headers}\r\n'.encode()
    name = f'{flavor}-{os.getpid()}-{time.time_ns()}'
    body = json.dumps({'flavor': FLAVOR | {'name': name, 'id': name}})
    headers += f'Content-Type: application/json\r\nContent-Length: {len(body)}\r\n'
    return f'POST /v2.1/flavors {headers}\r\n{body}'.encode()


async def answer(reader: asyncio.StreamReader) -> int:
    """The status of the next response; its body is read and dropped."""
    head = await reader.readuntil(b'\r\n\r\n')
    length = re.search(rb'\r\ncontent-length: *(\d+)', head, re.IGNORECASE)
    if length is None:
        raise ConnectionError('A response without Content-Length')
    await reader.readexactly(int(length[1]))
    return int(head.split(None, 2)[1])


# ------------------------------------------------------------------ the services


@contextmanager
def running(command: list[str], url: str, folder: str, **environment: str) -> Iterator[str]:
    """The URL of the service that the command starts, once it answers; it is stopped at the end."""
    own = {'PYTHONPATH': str(ROOT), 'OS_API__AUTH_STRATEGY': 'none', 'OS_STANDALONE__DATA_DIR': folder}
    with Path(folder, 'log').open('a') as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=os.environ | own | environment)
    try:
        while not answers(url):
            if process.poll() is not None:
                raise SystemExit(Path(folder, 'log').read_text())
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=60)


def answers(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname, parts.port), timeout=10) as connection:
            connection.sendall(b'GET /v2.1/ HTTP/1.1\r\nHost: cloud\r\nConnection: close\r\n\r\n')
            return connection.recv(12) == b'HTTP/1.1 200'
    except OSError:
        return False


def serve(folder: str) -> contextmanager:
    port = free_port()
    command = [sys.executable, '-m', 'computeapi', 'serve', '--quiet', '--in-memory', '--port', str(port)]
    return running(command, f'http://127.0.0.1:{port}', folder)


def uwsgi(folder: str) -> contextmanager:
    """uwsgi with the shipped configuration, on SQLite."""
    port, database = free_port(), f'sqlite:///{folder}/uwsgi.db'
    subprocess.run(
        [sys.executable, '-m', 'computeapi', 'db', 'upgrade'],
        env=os.environ | {'PYTHONPATH': str(ROOT), 'OS_DATABASE__CONNECTION': database},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    environment = {'COMPUTEAPI_LISTEN': f'127.0.0.1:{port}', 'OS_DATABASE__CONNECTION': database}
    return running(shipped(), f'http://127.0.0.1:{port}', folder, **environment)


def shipped(*options: str) -> list[str]:
    """The command that runs uwsgi with the shipped configuration file; options: more of its arguments."""
    program = shutil.which('uwsgi', path=Path(sys.executable).parent) or 'uwsgi'
    return [program, '--ini', str(ROOT / 'etc/computeapi/uwsgi.ini'), *options]


def free_port() -> int:
    with socket.create_server(('127.0.0.1', 0)) as unused:
        return unused.getsockname()[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--clients', type=int, default=200)
    parser.add_argument('--seconds', type=float, default=60)
    parser.add_argument('--writes', action='store_true', help='every fourth request creates a flavor')
    parser.add_argument('--url', help='endpoint to send requests to, instead of `serve` and uwsgi')
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        urls = {'given': options.url}
        if options.url is None:
            urls = {'serve': stack.enter_context(serve(folder)), 'uwsgi': stack.enter_context(uwsgi(folder))}
        loads = {}
        for name, url in urls.items():
            loads[name] = asyncio.run(load(url, options.clients, options.seconds, writes=options.writes))
            report(name, loads[name], next(iter(loads.values())))
    if any(each.errors for each in loads.values()):
        raise SystemExit(1)


def report(name: str, results: Load, first: Load) -> None:
    p50, p99, count = results.percentile(0.5), results.percentile(0.99), len(results.latencies)
    print(
        f'{name:6} responses {count:7} ({count / len(first.latencies):4.2f} of the first)   '
        f'errors {dict(results.errors) or 0}   '
        f'p50 {p50 * 1e3:7.1f} ms   p99 {p99 * 1e3:7.1f} ms   p99/p50 {p99 / p50:5.2f}',
        flush=True,
    )


if __name__ == '__main__':
    main()
