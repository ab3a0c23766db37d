"""Compare the cost of a page of each list between a store with many servers and one with few; see README.md."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import orjson
import sqlalchemy as sa
from databases import database
from run import caller

from computeapi import config, serve
from computeapi.clock import utcnow
from computeapi.db import bulk, schema
from computeapi.db.engine import Store, store_of
from computeapi.db.tables.compute import keypairs
from computeapi.db.tables.servers import migrations, server_actions, servers
from computeapi.kit.cloud_files.populating import populate
from computeapi.kit.cloud_files.synthetic import SyntheticCloud
from computeapi.main import Service
from computeapi.pipeline import load
from computeapi.serve import bootstrap
from computeapi.serve.directory import opened

PAGE = 100
SORT_KEYS = (
    *('created_at', 'updated_at', 'launched_at', 'terminated_at', 'display_name', 'hostname', 'uuid', 'user_id'),
    *('project_id', 'host', 'node', 'availability_zone', 'image_ref', 'instance_type_id', 'vm_state', 'task_state'),
    *('power_state', 'key_name', 'locked_by', 'launch_index', 'progress', 'config_drive', 'auto_disk_config'),
    *('access_ip_v4', 'access_ip_v6', 'kernel_id', 'ramdisk_id', 'root_device_name'),
)
BATCH = 10_000
"""The number of servers that are changed in one transaction."""
STEPS = 100
"""The number of instructions of SQLite's virtual machine that count as one."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--servers', type=int, default=100_000)
    parser.add_argument('--few', type=int, default=1000, help='servers in the store that is compared with')
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--only', default='', help='measure only lists whose name contains this')
    parser.add_argument('--database', help='URL of a server on which databases may be created; default: SQLite')
    options = parser.parse_args()
    url, hosts = options.database, options.hosts
    with cloud(url, options.few, hosts) as few, cloud(url, options.servers, hosts) as many:
        names = [name for name in few.lists if options.only in name]
        print(f'{"":34} {"ms":>9} {"ms":>9} {"ratio":>6} {"work":>9} {"work":>9} {"ratio":>6}')
        for name in names:
            report(name, few, many, options.rounds)


class Cloud:
    """A service with servers in its store, and the lists to request: a path and a token for each."""

    def __init__(self, service: Service):
        self.service, self.app = service, load(service, 'compute')
        self.lists = dict(lists(service))
        self.work = Work(service.store)

    def caller(self, name: str) -> Callable[[], bytes]:
        path, token = self.lists[name]
        return caller(self.app, path, token)


def report(name: str, few: Cloud, many: Cloud, rounds: int) -> None:
    """Print the latency of a page in both clouds, measured in turn, and the work of their databases."""
    calls = few.caller(name), many.caller(name)
    for call in calls:
        answer = orjson.loads(call())
        if 'code' in next(iter(answer.values())):
            raise SystemExit(f'{name}: {answer}')
    times = [[elapsed(call) for call in calls] for _ in range(rounds)]
    first, second = (statistics.median(each) for each in zip(*times, strict=True))
    ratio = statistics.median(of_many / of_few for of_few, of_many in times)
    work = [cloud.work.of(call) for cloud, call in zip((few, many), calls, strict=True)]
    print(
        f'{name:34} {first * 1e3:9.2f} {second * 1e3:9.2f} {ratio:6.2f}'
        f' {work[0]:9} {work[1]:9} {work[1] / max(work[0], 1):6.2f}',
        flush=True,
    )


def elapsed(call: Callable[[], bytes]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


class Work:
    """The work that a request causes in the database: hundreds of instructions of SQLite's virtual machine, pages that
    PostgreSQL reads, rows that MariaDB reads."""

    def __init__(self, store: Store):
        self.store, self.engine, self.counted = store, store.engine, 0

    def of(self, call: Callable[[], bytes]) -> int:
        self.counted = 0
        with {'sqlite': self._steps, 'postgresql': self._pages}.get(self.engine.dialect.name, self._rows)():
            call()
        return self.counted

    @contextmanager
    def _steps(self) -> Iterator[None]:
        # Reads reuse the connections in `connection_cache.kept`; the calls before this one have opened one.
        drivers: list[Any] = [connection.connection.dbapi_connection for connection in self.store.connection_cache.kept]
        for driver in drivers:
            driver.set_progress_handler(self._count, STEPS)
        yield
        for driver in drivers:
            driver.set_progress_handler(None, 0)

    def _count(self) -> int:
        self.counted += 1
        return 0

    @contextmanager
    def _pages(self) -> Iterator[None]:
        """Run each SELECT once more, with EXPLAIN ANALYZE."""

        def explain(connection, cursor, statement, parameters, *rest) -> None:  # type: ignore[no-untyped-def]
            if statement.startswith('SELECT'):
                with cursor.connection.cursor() as other:
                    other.execute(f'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}', parameters)
                    [[text]] = other.fetchall()
                    [explained] = orjson.loads(text)
                plan = explained['Plan']
                self.counted += plan['Shared Hit Blocks'] + plan['Shared Read Blocks']

        sa.event.listen(self.engine, 'after_cursor_execute', explain)
        yield
        sa.event.remove(self.engine, 'after_cursor_execute', explain)

    @contextmanager
    def _rows(self) -> Iterator[None]:
        before = self._read()
        yield
        self.counted = self._read() - before

    def _read(self) -> int:
        with self.engine.connect() as connection:
            rows = connection.execute(sa.text("SHOW GLOBAL STATUS LIKE 'Handler_read%'"))
            return sum(int(value) for _, value in rows)


@contextmanager
def cloud(url: str | None, count: int, hosts: int) -> Iterator[Cloud]:
    """A cloud with that many servers, all in one project."""
    overrides = {('api', 'auth_strategy'): 'none', ('api', 'max_limit'): 1000, ('database', 'max_pool_size'): 1}
    with tempfile.TemporaryDirectory() as folder, opened(folder) as directory, database(url, folder, count) as made:
        conf = config.load(overrides=overrides | {('database', 'connection'): made})
        serve.configure(conf, directory)
        with closing(Service(conf, store_of(conf, durable=False, alone=True))) as service:
            schema.upgrade(service.store)
            bootstrap.prepare(service, directory, None)
            started = time.perf_counter()
            populate(service, SyntheticCloud(count, 1, min(hosts, count), 1, utcnow()))
            fill(service)
            vacuum(made)
            print(f'{count} servers created in {time.perf_counter() - started:.0f} s', flush=True)
            yield Cloud(service)


def fill(service: Service) -> None:
    """Add what a synthetic cloud lacks: deleted servers, key pairs, migrations and actions, in short transactions."""
    every_tenth = servers.c.id % 10 == 3
    deleted = {'deleted_at': servers.c.created_at, 'terminated_at': servers.c.created_at, 'vm_state': 'deleted'}
    last = service.store.query(sa.Connection.scalar, sa.select(sa.func.max(servers.c.id)))
    for begin in range(0, last + 1, BATCH):
        batch = servers.c.id.between(begin, begin + BATCH - 1)
        service.store.change(sa.Connection.execute, sa.update(servers).where(every_tenth, batch).values(deleted))
    with service.store.read() as connection:
        living = connection.execute(sa.select(servers.c.uuid, servers.c.project_id).where(~every_tenth)).all()
    now, busy = utcnow(), living[0].uuid
    for begin in range(0, len(living), BATCH):
        rows = {migrations.name: [], keypairs.name: [], server_actions.name: []}
        for number, (server_id, project_id) in enumerate(living[begin : begin + BATCH], begin):
            moment = now - timedelta(seconds=number)
            rows[migrations.name].append(migration(server_id, project_id, moment))
            rows[keypairs.name].append(keypair(number, now))
            rows[server_actions.name].append(action(busy, number, moment))
        service.store.change(bulk.insert, rows)


def vacuum(url: str) -> None:
    """Do what autovacuum would do later. The engine is a separate one because the service's statement timeout is too
    short for it."""
    engine = sa.create_engine(url, isolation_level='AUTOCOMMIT')
    if engine.dialect.name == 'postgresql':
        with engine.connect() as connection:
            connection.exec_driver_sql('VACUUM ANALYZE')
    engine.dispose()


def migration(server_id: str, project_id: str, moment) -> dict:
    hosts = {'source_host': 'node-0001', 'source_node': 'node-0001', 'dest_host': 'node-0002', 'dest_node': 'node-0002'}
    facts = {'uuid': server_id, 'server_id': server_id, 'migration_type': 'migration', 'status': 'confirmed'}
    return {**facts, **hosts, 'user_id': 'user', 'project_id': project_id, 'created_at': moment, 'updated_at': moment}


def keypair(number: int, moment) -> dict:
    text = f'key-{number:07}'
    facts = {'user_id': 'user', 'name': text, 'type': 'ssh', 'fingerprint': text, 'public_key': text}
    return {**facts, 'created_at': moment}


def action(server_id: str, number: int, moment) -> dict:
    facts = {'server_id': server_id, 'action': 'reboot', 'request_id': f'req-{number}', 'start_time': moment}
    return {**facts, 'user_id': 'user', 'project_id': 'project', 'updated_at': moment}


def lists(service: Service) -> Iterator[tuple[str, tuple[str, str]]]:
    """The name of each list, its path and a token: lists of a project, and lists of all projects ("all") that an
    administrator requests."""
    with service.store.read() as connection:
        living = sa.select(servers).where(servers.c.deleted_at.is_(None)).order_by(servers.c.created_at.desc())
        count = connection.scalar(sa.select(sa.func.count()).select_from(living.subquery()))
        middle = connection.execute(living.offset(count // 3).limit(1)).one()
        deep = connection.execute(living.offset(count * 4 // 5).limit(1)).one()
        done = connection.execute(sa.select(server_actions.c.server_id, server_actions.c.request_id).limit(1)).one()
    project = middle.project_id
    for scope, everywhere, token in (('', '', f'admin:{project}'), ('all ', 'all_tenants=1&', 'admin:admin')):
        for name, query in searches(middle, deep):
            yield scope + name, (f'/v2.1/servers?limit={PAGE}&{everywhere}{query}', token)
    owner = f'admin:{project}'
    yield 'detail', (f'/v2.1/servers/detail?limit={PAGE}', owner)
    actions = f'/v2.1/servers/{done.server_id}/os-instance-actions?limit={PAGE}'
    yield 'actions', (actions, owner)
    yield 'actions, deep', (f'{actions}&marker={done.request_id}', owner)
    for name, query in (('', ''), (', deep', f'&marker={deep.uuid}'), (' of host', '&host=node-0001')):
        yield f'migrations{name}', (f'/v2.1/os-migrations?limit={PAGE}{query}', owner)
    yield 'migrations of server', (f'/v2.1/os-migrations?limit={PAGE}&instance_uuid={middle.uuid}', owner)
    yield 'migrations, changes', (f'/v2.1/os-migrations?limit={PAGE}&changes-since={moment(-60)}', owner)
    yield 'keypairs', (f'/v2.1/os-keypairs?limit={PAGE}', f'user:{project}')
    yield 'keypairs, deep', (f'/v2.1/os-keypairs?limit={PAGE}&marker=key-{count * 4 // 5:07}', f'user:{project}')
    period = f'start={moment(-86400 * 30)}&end={moment(0)}&limit={PAGE}'.replace('Z', '')
    yield 'usage', (f'/v2.1/os-simple-tenant-usage/{project}?{period}', owner)
    yield 'usage, deep', (f'/v2.1/os-simple-tenant-usage/{project}?{period}&marker={deep.uuid}', owner)
    yield 'all usage', (f'/v2.1/os-simple-tenant-usage?{period}&detailed=1', owner)
    yield 'hypervisors with servers', ('/v2.1/os-hypervisors?limit=10&with_servers=true', owner)


def searches(middle: sa.Row, deep: sa.Row) -> Iterator[tuple[str, str]]:
    yield 'first', ''
    yield 'deep', f'marker={deep.uuid}'
    for key in SORT_KEYS:
        for direction in ('asc', 'desc'):
            yield f'{key} {direction}', f'sort_key={key}&sort_dir={direction}'
        yield f'{key}, deep', f'sort_key={key}&sort_dir=asc&marker={deep.uuid}'
    yield 'name', f'name=^{middle.name}$'
    yield 'name from', f'name=^{middle.name[:-1]}'
    yield 'name within', f'name={middle.name}'
    yield 'name of many', 'name=web'
    yield 'name nowhere', 'name=nowhere'
    for status in ('ACTIVE', 'SHUTOFF', 'ERROR', 'PAUSED', 'REBOOT', 'RESCUE', 'DELETED'):
        yield f'status {status}', f'status={status}'
    yield 'statuses', 'status=ERROR&status=PAUSED'
    yield 'status by name', 'status=SHUTOFF&sort_key=display_name'
    yield 'deleted', 'deleted=true'
    yield 'image', f'image={middle.image_id}'
    yield 'flavor', 'flavor=general.small'
    yield 'flavor, rare', 'flavor=memory.2xlarge'
    yield 'image and status', f'image={middle.image_id}&status=SHUTOFF'
    for name in ('host', 'node'):
        yield name, f'{name}={middle.host}'
    yield 'zone', 'availability_zone=zone-1'
    yield 'zone nowhere', 'availability_zone=nowhere'
    addresses = [each['address'] for entry in middle.network_info for each in entry['addresses']] or ['10.0.0.9']
    yield 'ip', f'ip={addresses[0]}'
    yield 'ip exactly', f'ip=^{quote(addresses[0].replace(".", chr(92) + "."))}$'
    yield 'ip with dots', f'ip=^{quote(addresses[0])}$'
    yield 'ip of many', 'ip=10.'
    yield 'ip6 nowhere', 'ip6=fd00::1'
    for name in ('tags', 'tags-any', 'not-tags', 'not-tags-any'):
        yield name, f'{name}=legacy,pci'
        yield f'{name} nowhere', f'{name}=nowhere'
    yield 'key name', 'key_name=somebody'
    yield 'user', f'user_id={middle.user_id}'
    yield 'user nowhere', 'user_id=nobody'
    yield 'project', f'project_id={middle.project_id}'
    yield 'reservation', f'reservation_id={middle.reservation_id}'
    yield 'uuid', f'uuid={middle.uuid}'
    yield 'locked', 'locked=true'
    yield 'not locked', 'locked=false'
    yield 'changes since now', f'changes-since={moment(0)}'
    yield 'changes since long ago', f'changes-since={moment(-86400 * 9999)}'
    yield 'changes before now', f'changes-before={moment(0)}'
    yield 'changes before long ago', f'changes-before={moment(-86400 * 9999)}'


def moment(seconds: int) -> str:
    return (utcnow() + timedelta(seconds=seconds)).strftime('%Y-%m-%dT%H:%M:%SZ')


if __name__ == '__main__':
    main()
