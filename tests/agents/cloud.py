"""A cloud of processes: an API in this one, workers, and agents of simulated hosts, connected by a broker."""

import os
import signal
import subprocess
import sys
import time
import uuid
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import sqlalchemy as sa

import computeapi
from computeapi import config
from computeapi.backends.hypervisor.remote.signing import key_of
from computeapi.db import agents, schema, services
from computeapi.db.engine import Store
from computeapi.db.tables.servers import domains, tasks
from computeapi.db.tables.servers import servers as rows
from computeapi.main import Service
from computeapi.pipeline import load
from tests import broker, invariants
from tests.api.servers.conftest import IMAGE, NETWORK, World
from tests.conftest import Client
from tests.proxy import Proxy

ROOT = Path(computeapi.__file__).parent.parent
# The duration of a network outage in seconds; relative to the timeouts below it is what a minute is in a deployment.
OUTAGE = float(os.environ.get('COMPUTEAPI_TEST_OUTAGE', 12))
TIMEOUT = 30
MACHINE = {'power_state': 1, 'console_log': '', 'created_at': datetime(2030, 1, 1)}
SECRET = 'which nobody guesses who has not seen it'
CONF = """
[DEFAULT]
transport_url = {transport_url}
control_exchange = {exchange}
log_file = {folder}/{name}.log
workers = {workers}
report_interval = 1
service_down_time = 10
task_lease = 2
task_sweep_interval = 0.5
vif_plugging_timeout = 0
[oslo_messaging_rabbit]
heartbeat_timeout_threshold = 4
rabbit_interval_max = 1
[api]
auth_strategy = none
[hypervisor]
backend = {backend}
[database]
connection = {database}
[standalone]
data_dir = {folder}/data
[agent]
my_ip = 127.0.0.1
console_port = 0
state_path = {folder}/{name}
{believed}
[simulated]
spawn_seconds = 1.5
power_seconds = 0.1
migrate_seconds = 1.5
snapshot_seconds = 0.1
"""


class Watched:
    """Something that consists of processes whose logs are in its folder. store: theirs."""

    timeout = TIMEOUT + 2 * OUTAGE

    def until(self, holds, seconds=None):
        """Waits until the condition is true; returns its value."""
        deadline = time.monotonic() + (seconds or self.timeout)
        while not (found := holds()):
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.1)
        return found

    def at_rest(self, look):
        """What *look* returns while there are no tasks. A worker that was overtaken may queue more work at any time:
        then it is called again."""
        found, claims = None, None
        while claims != (claims := self.claims_without_tasks()):
            found = look()
        return found

    def claims_without_tasks(self):
        """Wait until there are no tasks; returns how many have ever been claimed."""
        self.until(lambda: not self.store.query(lambda connection: connection.execute(tasks.select()).all()))
        return self.store.query(lambda connection: connection.scalar(sa.select(sa.func.sum(rows.c.claims)))) or 0

    def logs(self):
        return '\n'.join(f'== {path.name}\n{path.read_text()[-6000:]}' for path in sorted(self.folder.glob('*.log')))


class Daemon:
    """A process of the cloud; `words` is its command line."""

    def __init__(self, folder, name, text, words):
        self.folder, self.name, self.words = folder, name, words
        self.conf, self.log = folder / f'{name}.conf', folder / f'{name}.log'
        self.conf.write_text(text)
        self.process = None

    @property
    def around(self):
        return {'cwd': self.folder, 'env': os.environ | {'PYTHONPATH': str(ROOT)}}

    def command(self, *words):
        return [sys.executable, '-m', 'computeapi', *words, '--config-file', str(self.conf)]

    def start(self):
        with (self.folder / f'{self.name}.stderr').open('a') as stderr:
            self.process = subprocess.Popen(self.command(*self.words), stderr=stderr, **self.around)

    def run(self, *words):
        """Run another command with the same configuration; returns the completed process with its output."""
        return subprocess.run(self.command(*words), capture_output=True, text=True, **self.around)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def kill_and_start(self):
        self.kill()
        self.start()

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)


class AgentCloud(Watched):
    """hosts: their names.  database: the URL of an empty database."""

    def __init__(self, folder, database, hosts, workers=1):
        self.folder, self.database, self.hosts = folder, database, hosts
        self.exchange = f'test-{uuid.uuid4().hex[:8]}'
        self.store = Store(database)
        schema.create(self.store)
        address = urlsplit(broker.transport_url())
        # The proxy between each agent and the broker.
        self.ways = {host: Proxy(address.hostname, address.port) for host in hosts}
        self.agents = {host: self.agent(host) for host in hosts}
        self.workers = [self.worker(f'worker{number}') for number in range(workers)]
        conf = config.load([str(self.worker('api').conf)])
        conf.set_override('workers', 0)
        self.service = Service(conf, self.store)
        self.api = Client(load(self.service, 'compute'))

    def text(self, name, backend, transport_url, believed, workers=4):
        return CONF.format(
            transport_url=transport_url,
            exchange=self.exchange,
            folder=self.folder,
            name=name,
            backend=backend,
            database=self.database,
            workers=workers,
            believed=believed,
        )

    def worker(self, name):
        return Daemon(
            self.folder, name, self.text(name, 'remote', broker.transport_url(), f'secret = {SECRET}'), ['worker']
        )

    def agent(self, host):
        address = urlsplit(broker.transport_url())
        url = address._replace(
            netloc=f'{address.username}:{address.password}@127.0.0.1:{self.ways[host].port}'
        ).geturl()
        text = self.text(host, 'simulated', url, f'key = {key_of(SECRET, host)}')
        return Daemon(self.folder, host, text, ['agent', '--host', host])

    def start(self):
        for each in (*self.workers, *self.agents.values()):
            each.start()
        self.until(lambda: {each.host for each in self.store.query(agents.select)} == set(self.hosts))
        self.world = World(self.service)
        self.world.image(IMAGE)
        self.world.network(NETWORK)
        self.world.flavor('1')
        self.world.flavor('2', memory_mb=128)

    def close(self):
        started = [each for each in (*self.workers, *self.agents.values()) if each.process is not None]
        for each in started:
            each.end()
        for each in started:
            each.process.wait(30)
        for way in self.ways.values():
            way.close()
        self.store.close()

    # ------------------------------------------------------------ requests and observations

    def boot(self, number=1, host=None, **more):
        """The IDs of new servers, which are still being built."""
        where = {'availability_zone': f'nova:{host}'} if host else {}
        made = []
        for each in range(number):
            facts = {'name': f'server{each}', 'imageRef': IMAGE, 'flavorRef': '1', 'networks': [{'uuid': NETWORK}]}
            answer = self.api.post('/servers', {'server': facts | where | more}, '2.42')
            assert answer.status == 202, answer
            made.append(answer.json['server']['id'])
        return made

    def act(self, server, name, argument=None, version='2.90', status=202):
        answer = self.api.post(f'/servers/{server}/action', {name: argument}, version)
        assert answer.status == status, answer
        return answer

    def show(self, server):
        return self.api.get(f'/servers/{server}').json['server']

    def host(self, server):
        return self.show(server)['OS-EXT-SRV-ATTR:host']

    def wait(self, servers, status='ACTIVE'):
        """Wait until all servers have this status and no task state."""

        def are_there():
            found = [self.show(server) for server in servers]
            assert not [each for each in found if each['status'] == 'ERROR' != status], (found, self.logs())
            return all(each['status'] == status and each['OS-EXT-STS:task_state'] is None for each in found)

        self.until(are_there)

    def is_doing(self, server, *states):
        return self.show(server)['OS-EXT-STS:task_state'] in states

    def delete(self, servers):
        for server in servers:
            assert self.api.delete(f'/servers/{server}').status == 204
        self.until(lambda: all(self.api.get(f'/servers/{server}').status == 404 for server in servers))

    def is_up(self, host):
        found = self.api.get('/os-services').json['services']
        return [each['state'] for each in found if each['host'] == host] == ['up']

    def machines(self):
        """The machines on each host, according to the agent's own store."""
        found = {}
        for host in self.hosts:
            own = Store(f'sqlite:///{self.folder / host / "driver.db"}')
            with own.read() as connection:
                found[host] = connection.execute(domains.select()).all()
            own.close()
        return found

    def places(self):
        """Each machine's ID with its host."""
        return sorted((each.server_id, host) for host, rows in self.machines().items() for each in rows)

    def check(self, servers):
        """Checks that each server has one machine, on the host that the API shows, and that nothing else is left."""
        problems = self.at_rest(lambda: self.problems(servers))
        assert problems == [], (problems, self.logs())

    def all_answer(self):
        """Whether all hosts answer this process, which does not audit the others."""
        driver = self.service.hypervisor
        list(driver.machines())
        return not driver.circuit_breaker.until

    def problems(self, servers):
        self.until(self.all_answer)
        places, expected = self.places(), sorted((server, self.host(server)) for server in servers)
        found = [] if places == expected else [f'machines are at {places}, not {expected}']
        found += map(str, self.service.audit.findings())
        with self.store.write() as connection:
            connection.execute(domains.delete())
            for machines in self.machines().values():
                for row in machines:
                    connection.execute(domains.insert().values(**row._asdict()))
        return found + invariants.problems(self.store)

    def seen(self, host):
        return self.store.query(services.of_compute_host, host).seen_at
