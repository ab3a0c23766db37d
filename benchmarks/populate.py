"""Measure how fast a synthetic inventory is written, and how much memory that takes; see README.md.

python benchmarks/populate.py [--servers 100000] [--projects 200] [--hosts 500] [--database URL]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time

from calibration import LOOP, REFERENCE, calibration

from computeapi import config, serve
from computeapi.clock import utcnow
from computeapi.db import schema
from computeapi.db.engine import store_of
from computeapi.kit.cloud_files.populating import populate
from computeapi.kit.cloud_files.synthetic import SyntheticCloud
from computeapi.main import Service
from computeapi.serve import bootstrap
from computeapi.serve.directory import opened


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--servers', type=int, default=100_000)
    parser.add_argument('--projects', type=int, default=200)
    parser.add_argument('--hosts', type=int, default=500)
    parser.add_argument('--database', help='URL of an empty database; default: SQLite in a temporary folder')
    options = parser.parse_args()
    overrides = {('database', 'connection'): options.database} if options.database else {}
    conf = config.load(overrides=overrides)
    with tempfile.TemporaryDirectory() as folder, opened(folder) as directory:
        serve.configure(conf, directory)
        store = store_of(conf, durable=False, alone=True)
        service = Service(conf, store)
        schema.upgrade(store)
        bootstrap.prepare(service, directory, None)
        loop = calibration()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        begin, cpu = time.perf_counter(), time.process_time()
        populate(service, SyntheticCloud(options.servers, options.projects, options.hosts, 1, utcnow()))
        seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
        other = resource.getrusage(resource.RUSAGE_CHILDREN)
        loop = (loop + calibration()) / 2
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        service.close()
    rate = options.servers / seconds
    print(
        f'{options.servers} servers in {seconds:.1f} s: {rate:.0f} per second; CPU time {cpu:.1f} s'
        f' and {other.ru_utime + other.ru_stime:.1f} s in child processes'
    )
    print(
        f'{LOOP} additions take {loop:.2f} s of CPU time on this machine;'
        f' where they take {REFERENCE} s: {rate * loop / REFERENCE:.0f} per second'
    )
    print(f'{before:.0f} MiB of memory before, peak {after:.0f} MiB')


if __name__ == '__main__':
    main()
