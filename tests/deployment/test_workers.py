"""Where workers run, and when: in `computeapi worker`, and in processes that serve requests."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from computeapi import config
from computeapi.db import processes, schema, services
from computeapi.db.engine import Store
from computeapi.db.tables.servers import tasks
from computeapi.main import Service
from computeapi.pipeline import load
from tests.api.servers.conftest import BOB, IMAGE, NETWORK, World
from tests.conftest import Client
from tests.deployment.conftest import ROOT, free_port
from tests.deployment.test_uwsgi import CONF, INI, PROCESSES, UWSGI

WORKER = ['-m', 'computeapi', 'worker', '--config-file', 'computeapi.conf']
STUCK = """
import threading
from computeapi import config, worker
from computeapi.backends.hypervisor.simulated import SimulatedHypervisor

SimulatedHypervisor.spawn = lambda *arguments, **facts: threading.Event().wait()
worker.run(config.load(['computeapi.conf']))
"""
"""A process with an unresponsive host."""
SERVER = """
import os, sys, time
import computeapi.wsgi

def serve():
    # At once, or the lines of several processes may come in pieces.
    os.write(1, b'%d\\n' % os.getpid())
    sys.stdin.read()
    sys.exit(0)

for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        serve()
serve()
"""
"""A server that does not know computeapi, and forks as often as told after loading the application."""
TIMEOUT = 40


@pytest.fixture
def database():
    return 'postgresql' if os.environ.get('COMPUTEAPI_TEST_POSTGRESQL') else 'sqlite'


@pytest.fixture
def store(database_url, tmp_path):
    """An initialized database with a config file."""
    (tmp_path / 'computeapi.conf').write_text(CONF.format(folder=tmp_path, url=database_url))
    store = Store(database_url)
    schema.create(store)
    yield store
    store.close()


def wait_until(condition):
    """Waits until the condition, a function, is true; returns its value."""
    until = time.monotonic() + TIMEOUT
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.1)
    return found


def known(store, wanted=1):
    """The known processes, as soon as there are this many."""
    seen = []

    def are_there():
        seen[:] = store.query(processes.select)
        return len(seen) == wanted

    wait_until(are_there)
    return seen


def waits(log):
    """Whether the log says that the workers wait for a database."""
    return log.exists() and 'are waiting for the database: ' in log.read_text()


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_a_worker_is_a_process_of_its_own(store, start, number):
    process = start(WORKER)
    [found] = known(store)
    assert (found.binary, found.pid, found.workers) == ('computeapi-worker', process.process.pid, 4)
    assert process.stop(number) == 0
    assert known(store, 0) == []
    assert process.log.read_text() == ''


@pytest.mark.parametrize(('asked', 'workers'), [([], 4), (['--workers', '2'], 2)])
def test_a_worker_works_also_where_processes_that_answer_do_not(store, start, asked, workers):
    start([*WORKER, *asked], {'OS_DEFAULT__WORKERS': '0'})
    assert known(store)[0].workers == workers


def test_a_worker_waits_for_its_database(start, tmp_path):
    url = f'sqlite:///{tmp_path}/away/computeapi.db'
    (tmp_path / 'computeapi.conf').write_text(CONF.format(folder=tmp_path, url=url))
    process, log = start(WORKER), tmp_path / 'computeapi.log'
    wait_until(lambda: waits(log))
    (tmp_path / 'away').mkdir()
    store = Store(url)
    time.sleep(2)
    schema.upgrade(store)
    assert known(store)[0].pid == process.process.pid
    store.close()
    assert process.stop() == 0
    assert log.read_text().count('are waiting for the database') == 1


@pytest.mark.parametrize(
    'url', ['sqlite:////nowhere/computeapi.db', 'postgresql+psycopg://postgres@127.0.0.1:{port}/x']
)
def test_a_worker_that_waits_for_its_database_can_be_stopped(start, tmp_path, url):
    (tmp_path / 'computeapi.conf').write_text(CONF.format(folder=tmp_path, url=url.format(port=free_port())))
    process, log = start(WORKER), tmp_path / 'computeapi.log'
    wait_until(lambda: waits(log))
    assert process.stop() == 0


def test_a_mistake_in_the_configuration_ends_a_worker(store, start):
    process = start(WORKER, {'OS_SIMULATED__FAIL': 'fly'})
    assert process.process.wait(TIMEOUT) == 2
    [line] = process.log.read_text().splitlines()
    assert 'there is no operation fly' in line


# ------------------------------------------------------------------ in API processes


@contextmanager
def uwsgi(start, *options, **environment):
    told = {'COMPUTEAPI_LISTEN': f'127.0.0.1:{free_port()}', 'COMPUTEAPI_PROCESSES': str(PROCESSES)}
    process = start([UWSGI, '--ini', str(INI), *options], told | environment)
    yield process
    assert process.stop() == 0, process.log.read_text()


CONFIGURED = {'OS_COMPUTEAPI_CONFIG_FILES': 'computeapi.conf'}


@pytest.mark.parametrize('options', [[], ['--lazy-apps']])
def test_workers_begin_with_the_processes_of_uwsgi(store, start, options):
    """Without any request."""
    with uwsgi(start, *options, **CONFIGURED):
        assert {(each.binary, each.workers) for each in known(store, PROCESSES)} == {('computeapi-api', 4)}
    assert known(store, 0) == []


def test_workers_begin_where_a_process_of_uwsgi_has_one_thread_for_requests(store, start):
    with uwsgi(start, **CONFIGURED, COMPUTEAPI_THREADS='1'):
        assert {each.workers for each in known(store, PROCESSES)} == {4}


def test_processes_for_guests_do_not_work(store, start):
    with uwsgi(start, COMPUTEAPI_APP='metadata', **CONFIGURED):
        assert {each.workers for each in known(store, PROCESSES)} == {0}


@pytest.mark.parametrize('forks', [0, 2])
def test_workers_begin_with_the_processes_of_a_server_that_does_not_tell(store, tmp_path, forks):
    environment = os.environ | CONFIGURED | {'PYTHONPATH': str(ROOT)}
    pipes = {'stdin': subprocess.PIPE, 'stdout': subprocess.PIPE, 'text': True}
    command = [sys.executable, '-c', SERVER, str(forks)]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes) as server:
        pids = {int(server.stdout.readline()) for _ in range(forks + 1)}
        serving = pids - {server.pid} if forks else pids
        assert {each.pid for each in known(store, max(forks, 1))} == serving
        server.stdin.close()
        assert server.wait(TIMEOUT) == 0
    assert known(store, 0) == []


# ------------------------------------------------------------------ in the list of services


def test_control_services_are_the_machines_on_which_processes_work(store, start, tmp_path):
    quick = {'OS_DEFAULT__REPORT_INTERVAL': '1', 'OS_DEFAULT__SERVICE_DOWN_TIME': '4'}
    conf = config.load([str(tmp_path / 'computeapi.conf')])
    conf.set_override('service_down_time', 4)
    api = Client(load(Service(conf, store), 'compute'))

    def shown(version=None):
        found = api.get('/os-services', version).json['services']
        return [each for each in found if each['binary'] != 'nova-compute']

    def are(**states):
        wanted = {(host, binary, state) for host, state in states.items() for binary in services.CONTROL}
        return lambda: {(each['host'], each['binary'], each['state']) for each in shown()} == wanted

    first, second, third = (start(WORKER, quick | {'OS_DEFAULT__HOST': host}) for host in ('one', 'one', 'two'))
    with uwsgi(start, OS_DEFAULT__HOST='three', OS_DEFAULT__WORKERS='0', **CONFIGURED):
        known(store, PROCESSES + 3)
        wait_until(are(one='up', two='up'))
        first.stop()
        time.sleep(5)
        assert are(one='up', two='up')()
        second.process.kill()
        wait_until(are(one='down', two='up'))
        third.stop()
        assert are(one='down', two='down')()
    for each in shown('2.53'):
        assert api.delete(f'/os-services/{each["id"]}', '2.53').status == 204
    assert shown() == []


# ------------------------------------------------------------------ taken over


def test_what_a_process_that_was_killed_had_under_way_is_taken_over_within_15_seconds(store, start, tmp_path):
    service = Service(config.load([str(tmp_path / 'computeapi.conf')]), store)
    world = World(service)
    world.image(IMAGE), world.network(NETWORK), world.flavor()
    stuck = start(['-c', STUCK])
    known(store)
    api = Client(load(service, 'compute'))
    request = {'name': 'server', 'imageRef': IMAGE, 'flavorRef': '1', 'networks': [{'uuid': NETWORK}]}
    answer = api.post('/servers', {'server': request}, as_=BOB)
    server = f'/servers/{answer.json["server"]["id"]}'
    wait_until(lambda: store.query(owner))
    start(WORKER)
    known(store, 2)
    # It keeps its task for longer than a lease.
    time.sleep(14)
    assert api.get(server).json['server']['status'] == 'BUILD'
    stuck.process.kill()
    begun = time.monotonic()
    wait_until(lambda: api.get(server).json['server']['status'] == 'ACTIVE')
    print(f'taken over after {time.monotonic() - begun:.1f} s')
    assert time.monotonic() - begun < 15


def owner(connection):
    """The owner of the only task."""
    return connection.scalar(sa.select(tasks.c.owner))
