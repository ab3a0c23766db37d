"""Measure the CPU time of a boot, from POST to ACTIVE, by number of hosts and networks; see README.md.

python benchmarks/boots.py [--hosts 2 500 1000] [--boots 20] [--rounds 5] [--many 1000] [--database URL] [--workers 2]
    [--tasks 4]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson
import sqlalchemy as sa
import webob
from calibration import LOOP, calibration
from databases import database

from computeapi import config, garbage
from computeapi.backends.image import blank
from computeapi.context import Context
from computeapi.db import schema
from computeapi.db.engine import store_of
from computeapi.db.tables.servers import servers
from computeapi.main import Service
from computeapi.pipeline import load

PROJECT = 'project'
HEADERS = {'X-Auth-Token': f'user:{PROJECT}', 'OpenStack-API-Version': 'compute 2.96', 'Accept': 'application/json'}
FLAVOR = {'flavorid': '1', 'vcpus': 1, 'memory_mb': 512, 'root_gb': 1, 'ephemeral_gb': 0, 'swap': 0}


class Counts:
    """The number of statements, and of transactions with changes. The hooks are on the engine and its dialect: event
    listeners on connections would make each statement a third slower."""

    def __init__(self, engine: sa.Engine):
        self.statements = self.transactions = 0
        for way in ('do_execute', 'do_executemany', 'do_execute_no_params'):
            sa.event.listen(engine, way, self.statement)
        self.commit, engine.dialect.do_commit = engine.dialect.do_commit, self.transaction

    def statement(self, *facts) -> None:
        self.statements += 1

    def transaction(self, connection) -> None:
        self.transactions += 1
        self.commit(connection)


class BootingCloud:
    """A service in this process; `boot` runs its tasks itself, one after the other."""

    def __init__(self, folder: Path, hosts: int, database: str):
        self.hosts, self.database = hosts, database
        self.conf = config.load(overrides=options(folder, hosts, database))
        self.service = Service(self.conf, store_of(self.conf))
        schema.upgrade(self.service.store)
        context = Context(user_id='user', project_id=PROJECT).elevated()
        self.service.images.populate(PROJECT)
        self.service.networks.populate(context)
        self.service.networks.resources.set_quotas(context, PROJECT, {'port': -1})
        self.service.cloud.flavors.create(context, 'benchmark', rxtx_factor=1.0, is_public=True, **FLAVOR)
        self.network = next(each.id for each in self.service.networks.networks(context) if not each.external)
        self.service.hosts.register()
        self.app = load(self.service, 'compute')
        self.counts = Counts(self.service.store.engine)

    def post(self, networked: bool, count: int = 1) -> None:
        """Request servers; SystemExit if the request is rejected."""
        networks = [{'uuid': self.network}] if networked else 'none'
        body = {'name': 'benchmark', 'flavorRef': '1', 'imageRef': blank.IMAGE_ID, 'networks': networks}
        body |= {'min_count': count, 'max_count': count}
        request = webob.Request.blank('/v2.1/servers', method='POST', headers=HEADERS, content_type='application/json')
        request.body = orjson.dumps({'server': body})
        response = request.get_response(self.app)
        if response.status_code != 202:
            raise SystemExit(f'{response.status}: {response.text}')

    def boot(self, networked: bool, count: int = 1) -> None:
        """Request servers and run the tasks until they are ACTIVE."""
        self.post(networked, count)
        while self.service.worker.step():
            continue

    def active(self) -> int:
        """The number of ACTIVE servers."""
        return self.service.store.query(
            lambda connection: connection.scalar(sa.select(sa.func.count()).where(servers.c.vm_state == 'active'))
        )


def options(folder: Path, hosts: int, database: str) -> dict[tuple[str, str], object]:
    """Hosts with room for all servers, which stay up without reporting, and no quotas."""
    room = {('simulated', name): 10_000_000 for name in ('vcpus', 'memory_mb', 'local_gb')}
    quotas = {('quota', name): -1 for name in ('instances', 'cores', 'ram')}
    return {
        **room,
        **quotas,
        ('api', 'auth_strategy'): 'none',
        ('simulated', 'hosts'): hosts,
        ('DEFAULT', 'service_down_time'): 1_000_000,
        ('database', 'connection'): database,
        ('standalone', 'data_dir'): str(folder),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--hosts', type=int, nargs='+', default=[2, 500, 1000])
    parser.add_argument('--boots', type=int, default=20, help='boots per round (%(default)s)')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--many', type=int, default=1000, help='servers created by one request (%(default)s)')
    parser.add_argument('--database', help='URL of a server on which databases may be created; default: SQLite')
    parser.add_argument('--workers', type=int, default=0, help='worker processes whose throughput is measured, too')
    parser.add_argument('--tasks', type=int, default=4, help='concurrent tasks of each of them (%(default)s)')
    chosen = parser.parse_args()
    # The garbage collector runs as seldom as in a process of the service.
    garbage.begin()
    with ExitStack() as stack:
        clouds = [stack.enter_context(cloud(hosts, chosen.database)) for hosts in chosen.hosts]
        print(f'{LOOP} additions take {calibration():.2f} s of CPU time on this machine')
        one_by_one(clouds, chosen.boots, chosen.rounds)
        boot_many(clouds, chosen.many)
        if chosen.workers:
            throughput(clouds, chosen.workers, chosen.tasks, chosen.boots * chosen.rounds)


def one_by_one(clouds: list[BootingCloud], boots: int, rounds: int) -> None:
    """Measure each kind of boot in turn, round after round; ratios are to the first kind in the same round."""
    kinds = [(cloud, networked) for networked in (False, True) for cloud in clouds]
    for kind in kinds:
        cost_of_boots(*kind, 3)
    garbage.exempt_existing_objects()
    found = [[cost_of_boots(*kind, boots) for kind in kinds] for _ in range(rounds)]
    print(f'{"hosts":>5} {"networks":>8} {"CPU ms":>8} {"ratio":>6} {"statements":>10} {"transactions":>12}')
    for place, (cloud, networked) in enumerate(kinds):
        of_kind = [row[place] for row in found]
        seconds, statements, transactions = (statistics.median(each) for each in zip(*of_kind, strict=True))
        ratio = statistics.median(row[place][0] / row[0][0] for row in found)
        counted = f'{statements:10.1f} {transactions:12.1f}'
        print(f'{cloud.hosts:5} {int(networked):8} {seconds * 1e3:8.2f} {ratio:6.2f} {counted}')


def cost_of_boots(cloud: BootingCloud, networked: bool, boots: int) -> tuple[float, float, float]:
    """Seconds of CPU time, statements and transactions per boot."""
    counts = cloud.counts
    before = (time.process_time(), counts.statements, counts.transactions)
    for _ in range(boots):
        cloud.boot(networked)
    after = (time.process_time(), counts.statements, counts.transactions)
    seconds, statements, transactions = ((end - begin) / boots for begin, end in zip(before, after, strict=True))
    return seconds, statements, transactions


def boot_many(clouds: list[BootingCloud], many: int) -> None:
    """Boot many servers that one request creates."""
    for cloud in clouds:
        counts, peak = cloud.counts, memory()
        begin, statements = time.process_time(), counts.statements
        cloud.post(False, many)
        accepted, of_request = time.process_time(), counts.statements - statements
        while cloud.service.worker.step():
            continue
        booted = time.process_time()
        print(
            f'{many} servers created by one request on {cloud.hosts} hosts: '
            f'request {accepted - begin:.2f} s of CPU time and {of_request} statements, '
            f'each boot {(booted - accepted) / many * 1e3:.2f} ms, peak memory +{memory() - peak:.0f} MiB'
        )


def throughput(clouds: list[BootingCloud], workers: int, tasks: int, boots: int) -> None:
    """Servers that this process requests, one after the other, and that the worker processes boot."""
    for cloud in clouds:
        with worker_processes(cloud, workers, tasks) as cpu:
            begin, own, before = time.perf_counter(), time.process_time(), cloud.active()
            for _ in range(boots):
                cloud.post(False)
            while (active := cloud.active() - before) < boots:
                time.sleep(0.05)
            seconds = time.perf_counter() - begin
            own = time.process_time() - own
        print(
            f'{active} boots on {cloud.hosts} hosts by {workers} workers: {boots / seconds:.1f} per second; CPU time '
            f'per boot {own / boots * 1e3:.2f} ms of the API process and {cpu[0] / boots * 1e3:.2f} ms of the workers'
        )


@contextmanager
def worker_processes(cloud: BootingCloud, workers: int, tasks: int) -> Iterator[list[float]]:
    """Run worker processes for the cloud; at the end, the list holds the CPU time that they used after their start."""
    environment = dict(os.environ)
    for (group, name), value in options(Path(cloud.conf.standalone.data_dir), cloud.hosts, cloud.database).items():
        environment[f'OS_{group}__{name}'.upper()] = str(value)
    command = [sys.executable, '-m', 'computeapi', 'worker', '--workers', str(tasks)]
    processes = [subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) for _ in range(workers)]
    cpu: list[float] = []
    try:
        time.sleep(8)
        begin = sum(map(cpu_of, processes))
        yield cpu
        cpu.append(sum(map(cpu_of, processes)) - begin)
    finally:
        for process in processes:
            process.terminate()
            process.wait(timeout=60)


def cpu_of(process: subprocess.Popen) -> float:
    """Seconds of CPU time that the process has used (Linux)."""
    user, system = Path(f'/proc/{process.pid}/stat').read_text().rsplit(')', 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf('SC_CLK_TCK')


def memory() -> float:
    """The peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextmanager
def cloud(hosts: int, server: str | None) -> Iterator[BootingCloud]:
    """A cloud with a database of its own, which is dropped at the end."""
    with tempfile.TemporaryDirectory() as folder, database(server, folder, hosts) as url:
        made = BootingCloud(Path(folder), hosts, url)
        try:
            yield made
        finally:
            made.service.close()


if __name__ == '__main__':
    main()
