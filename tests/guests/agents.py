"""A cloud of processes with real guests: `computeapi serve`, and agents of hosts, all on this machine."""

import contextlib
import os
import re
import time
import uuid
from datetime import datetime

import requests

from computeapi.backends.hypervisor.qemu.folder import HostFolder
from computeapi.backends.hypervisor.qemu.process import GuestProcess, exporter_of
from computeapi.backends.hypervisor.qemu.sockets import connected
from computeapi.db import agents, services
from computeapi.db.engine import Store
from computeapi.db.tables.servers import domains
from tests import broker, invariants
from tests.agents.cloud import Daemon, Watched
from tests.deployment.conftest import free_port
from tests.guests import boot_sector
from tests.guests.machine import SECONDS

PASSWORD = 'for the tests of agents'
TIMEOUT = 120
LATEST = {'OpenStack-API-Version': 'compute 2.90, volume 3.68'}
RUNNING = {'power_state': 1, 'console_log': '', 'created_at': datetime(2026, 1, 1)}
COMMON = """
[DEFAULT]
transport_url = {transport_url}
control_exchange = {exchange}
log_file = {folder}/{name}.log
report_interval = 1
service_down_time = 120
task_lease = 2
task_sweep_interval = 0.5
vif_plugging_timeout = 0
[oslo_messaging_rabbit]
heartbeat_timeout_threshold = 4
rabbit_interval_max = 1
"""
CONTROL = """
[hypervisor]
backend = remote
[database]
connection = {database}
[identity]
bcrypt_cost = 4
[quota]
instances = -1
cores = -1
ram = -1
[volume]
exported = true
[standalone]
data_dir = {folder}/data
"""
AGENT = """
[hypervisor]
backend = qemu
[agent]
my_ip = 127.0.0.1
console_port = 0
state_path = {folder}/{name}
[qemu]
state_path = {folder}/{name}/qemu
memory_mb = 16384
user = nobody
vcpus = 32
shutdown_timeout = 0
[image]
backend = glance
[service_user]
auth_type = password
auth_url = {url}/identity/v3
username = admin
password = {password}
project_name = admin
user_domain_name = Default
project_domain_name = Default
"""


class GuestCloud(Watched):
    """hosts: their names.  database: the URL of an empty database.  own_broker: a broker that no other test uses, if
    any."""

    timeout = TIMEOUT

    def __init__(self, folder, database, hosts, own_broker=None):
        self.folder, self.database, self.hosts, self.broker = folder, database, hosts, own_broker
        self.port, self.exchange = free_port(), f'test-{uuid.uuid4().hex[:8]}'
        self.url = f'http://127.0.0.1:{self.port}'
        self.store = Store(database)
        serve = ['serve', '--port', str(self.port), '--data-dir', str(folder / 'data')]
        self.control = self.daemon('control', CONTROL, [*serve, '--admin-password', PASSWORD])
        self.agents = {host: self.daemon(host, AGENT, ['agent', '--host', host]) for host in hosts}
        self.session = requests.Session()

    def daemon(self, name, text, words):
        facts = {
            'transport_url': self.broker.transport_url if self.broker else broker.transport_url(),
            'exchange': self.exchange,
            'folder': self.folder,
            'name': name,
            'database': self.database,
            'url': self.url,
            'password': PASSWORD,
        }
        return Daemon(self.folder, name, (COMMON + text).format(**facts), words)

    @property
    def daemons(self):
        return [self.control, *self.agents.values()]

    def start(self):
        self.control.start()
        self.log_in()
        for agent in self.agents.values():
            agent.start()
        self.until(lambda: {each.host for each in self.store.query(agents.select)} == set(self.hosts))
        self.image = self.upload('boot', boot_sector.write_disk(self.folder / 'boot').read_bytes(), 'raw')
        flavor = {'name': 'nano', 'vcpus': 1, 'ram': 16, 'disk': 1}
        self.flavor = self.ask('POST', '/v2.1/flavors', {'flavor': flavor})['flavor']['id']

    def close(self):
        started = [each for each in self.daemons if each.process is not None]
        for each in started:
            each.end()
        for each in started:
            each.process.wait(30)
        for _, folder in self.guests():
            for process in (GuestProcess(folder), exporter_of(folder)):
                process.end()
        self.store.close()

    # ------------------------------------------------------------ requests

    def log_in(self):
        user = {'name': 'admin', 'domain': {'id': 'default'}, 'password': PASSWORD}
        identity = {'methods': ['password'], 'password': {'user': user}}
        scope = {'project': {'name': 'admin', 'domain': {'id': 'default'}}}
        answer = self.send('POST', '/identity/v3/auth/tokens', json={'auth': {'identity': identity, 'scope': scope}})
        self.session.headers['X-Auth-Token'] = answer.headers['X-Subject-Token']

    def send(self, method, path, **options):
        """The response, as soon as the server can be reached."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                return self.session.request(method, f'{self.url}{path}', timeout=TIMEOUT, **options)
            except requests.ConnectionError:
                assert time.monotonic() < deadline, self.logs()
                time.sleep(0.05)

    def ask(self, method, path, body=None):
        answer = self.send(method, path, json=body, headers=LATEST)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def upload(self, name, data, disk_format):
        """Creates an image with these data; returns its ID."""
        facts = {'name': name, 'disk_format': disk_format, 'container_format': 'bare'}
        image = self.ask('POST', '/image/v2/images', facts)['id']
        headers = {'Content-Type': 'application/octet-stream'}
        self.send('PUT', f'/image/v2/images/{image}/file', data=data, headers=headers).raise_for_status()
        return image

    def create(self, facts):
        """Creates a server, which is still being built; returns its ID."""
        return self.ask('POST', '/v2.1/servers', {'server': {'name': 'guest', **facts}})['server']['id']

    def boot(self, number):
        """Creates this many servers, which are still being built; returns their IDs."""
        facts = {'imageRef': self.image, 'flavorRef': self.flavor, 'networks': 'none'}
        return [self.create(facts) for _ in range(number)]

    def act(self, server, name, argument=None):
        self.ask('POST', f'/v2.1/servers/{server}/action', {name: argument})

    def force_down(self, host, down):
        """Set or unset forced_down in the database; the API refuses to unset it while evacuated servers remain."""
        with self.store.write() as connection:
            services.update(connection, services.of_compute_host(connection, host), {'forced_down': down})

    def servers(self):
        found = self.ask('GET', '/v2.1/servers/detail')['servers']
        return {each['id']: each for each in found}

    # ------------------------------------------------------------ observations

    def are_at_rest(self, servers):
        """Whether exactly these servers exist, all are active, and none has a task state."""
        found = self.servers()
        wrong = [each for each in found.values() if each['status'] == 'ERROR']
        assert not wrong, (wrong, self.logs())
        assert found.keys() == set(servers)
        return all(each['status'] == 'ACTIVE' and not each['OS-EXT-STS:task_state'] for each in found.values())

    def guests(self):
        """Pairs of a host and the folder of a guest there."""
        for host in self.hosts:
            for folder in HostFolder(self.folder / host / 'qemu' / 'hosts' / host).all():
                yield host, folder

    def processes(self):
        """The server ID of every process of this cloud's guests on this machine."""
        found = []
        for process in os.listdir('/proc'):
            with contextlib.suppress(OSError):
                if process.isdigit() and str(self.folder) in os.readlink(f'/proc/{process}/cwd'):
                    found.append(os.path.basename(os.readlink(f'/proc/{process}/cwd')))
        return [each for each in found if re.fullmatch('[0-9a-f-]{36}', each)]

    def check(self, servers):
        """Checks that each server has one guest, on the host that the API shows, which booted once and runs, and that
        nothing else is left."""
        problems = self.at_rest(lambda: self.problems(servers))
        assert problems == [], (problems, self.logs())

    def problems(self, servers):
        # Guests that arrived during a report are dealt with at the next one.
        self.until(lambda: sorted(self.processes()) == sorted(servers))
        # Guests that arrived by live migration run before their files say so.
        self.until(lambda: not any(has_landing(folder) for _, folder in self.guests()))
        hosts = {server: each['OS-EXT-SRV-ATTR:host'] for server, each in self.servers().items()}
        places = sorted((host, folder.server_id) for host, folder in self.guests())
        expected = sorted((hosts[server], server) for server in servers)
        found = [] if places == expected else [f'guests are at {places}, not {expected}']
        for _, folder in self.guests():
            found += problems_of(folder)
        return found + self.audit() + self.unsound(hosts)

    def audit(self):
        """The findings that `audit` prints."""
        done = self.control.run('audit')
        assert done.returncode in (0, 1), done.stderr
        return [] if done.returncode == 0 else done.stdout.splitlines()

    def unsound(self, places):
        with self.store.write() as connection:
            connection.execute(domains.delete())
            for server, host in places.items():
                connection.execute(domains.insert().values(server_id=server, host=host, **RUNNING))
        return invariants.problems(self.store)

    def delete(self, servers):
        for server in servers:
            self.ask('DELETE', f'/v2.1/servers/{server}')
        self.until(lambda: not self.servers())


def has_landing(folder):
    guest = folder.read()
    return guest is not None and guest.landing is not None


def problems_of(folder):
    """What is wrong with a guest that has booted once."""
    guest, parts = folder.existing(), [path.name for path in folder.path.iterdir() if path.suffix == '.part']
    facts = {'started': guest.started, 'departed': guest.departed, 'landing': guest.landing}
    facts |= {'boots': boots_of(folder), 'echoes': echoes(folder), 'parts': parts}
    sound = {'started': True, 'departed': False, 'landing': None, 'boots': ['01'], 'echoes': True, 'parts': []}
    return [] if facts == sound else [f'guest {folder.server_id} is {facts}']


def boots_of(folder):
    """The boots of a guest, as counted on its raw disk, or else as written on its console before it moved."""
    [disk] = folder.existing().own_disks
    if disk.format == 'raw':
        with open(disk.file['filename'], 'rb') as file:
            return [file.read(514)[512:].decode()]
    return re.findall(f'{boot_sector.BANNER}(..)', (folder / 'console.log').read_text())


def echoes(folder):
    with connected(folder / 'serial', 5) as connection:
        connection.settimeout(SECONDS)
        connection.sendall(b'are you there')
        said = b''
        while b'are you there' not in said:
            said += connection.recv(100)
    return True
