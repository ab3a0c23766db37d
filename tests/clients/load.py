"""Concurrent clients of all kinds: each thread sends a request, and the next one when it has the response."""

import random
import threading
import time
from contextlib import contextmanager

import requests

from computeapi.clock import utcnow
from computeapi.db.tables.servers import tasks

ACTIONS = [
    {'os-stop': None},
    {'os-start': None},
    {'reboot': {'type': 'HARD'}},
    {'pause': None},
    {'unpause': None},
    {'suspend': None},
    {'resume': None},
    {'rescue': None},
    {'unrescue': None},
    {'resize': {'flavorRef': '2'}},
    {'resize': {'flavorRef': '1'}},
    {'confirmResize': None},
    {'revertResize': None},
    {'migrate': None},
    {'os-migrateLive': {'host': None, 'block_migration': 'auto'}},
    {'shelve': None},
    {'unshelve': None},
    {'createImage': {'name': 'image'}},
    {'createBackup': {'name': 'backup', 'backup_type': 'daily', 'rotation': 1}},
    {'forceDelete': None},
    {'os-resetState': {'state': 'active'}},
]
THREADS = 4
MAX_SERVERS = 8
DELAYS = {
    'OS_SIMULATED__SPAWN_SECONDS': '0.2',
    'OS_SIMULATED__POWER_SECONDS': '0.05',
    'OS_SIMULATED__MIGRATE_SECONDS': '0.2',
    'OS_SIMULATED__SNAPSHOT_SECONDS': '0.1',
    'OS_QUOTA__INSTANCES': '-1',
    'OS_QUOTA__CORES': '-1',
}
"""Environment of the service: how long things take, and quotas that nobody exceeds."""


class Load:
    """The requests that clients send to a service; `wrong` has the responses that should never occur."""

    def __init__(self, service, seed):
        self.service, self.seed = service, seed
        self.wrong, self.asked, self.over = [], 0, threading.Event()
        session = service.session()
        self.token = session.headers['X-Auth-Token']
        self.image = session.get(f'{service.url}/image/v2/images').json()['images'][-1]['id']
        networks = session.get(f'{service.url}/networking/v2.0/networks').json()['networks']
        self.network = next(each['id'] for each in networks if not each['router:external'])
        self.volumes = [self.volume(session, number) for number in range(3)]

    def volume(self, session, number):
        """A volume with a name of its own, created once for all rounds."""
        path, name = f'{self.service.url}/volume/v3/volumes', f'data{number}'
        found = session.get(path, params={'name': name}).json()['volumes']
        return found[0]['id'] if found else session.post(path, json=self.data(name)).json()['volume']['id']

    def data(self, name):
        return {'volume': {'size': 1, 'name': name}}

    @contextmanager
    def going(self):
        """Send requests until the end of the block, in which the service may be killed."""
        threads = [threading.Thread(target=self.ask, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        yield
        self.over.set()
        for thread in threads:
            thread.join()

    def ask(self, number):
        chance, session = random.Random(f'{self.seed} {number}'), requests.Session()
        session.trust_env = False
        session.headers.update({'X-Auth-Token': self.token, 'OpenStack-API-Version': 'compute 2.96'})
        try:
            while not self.over.is_set():
                self.ask_something(session, chance)
                self.asked += 1
        except requests.RequestException:
            return

    def ask_something(self, session, chance):
        servers = session.get(f'{self.service.url}/v2.1/servers', timeout=30).json()['servers']
        if not servers or len(servers) < MAX_SERVERS and chance.random() < 0.4:
            self.send(session, 'POST', '/servers', {'server': self.server(chance)})
            return
        path = f'/servers/{chance.choice(servers)["id"]}'
        kind = chance.choice(['act', 'act', 'act', 'attach', 'detach', 'plug', 'delete'])
        if kind == 'act':
            self.send(session, 'POST', f'{path}/action', chance.choice(ACTIONS))
        elif kind == 'attach':
            wanted = {'volumeAttachment': {'volumeId': chance.choice(self.volumes)}}
            self.send(session, 'POST', f'{path}/os-volume_attachments', wanted)
        elif kind == 'detach':
            self.send(session, 'DELETE', f'{path}/os-volume_attachments/{chance.choice(self.volumes)}')
        elif kind == 'plug':
            self.send(session, 'POST', f'{path}/os-interface', {'interfaceAttachment': {'net_id': self.network}})
        else:
            self.send(session, 'DELETE', path)

    def server(self, chance):
        root = {'source_type': 'image', 'destination_type': 'volume', 'uuid': self.image, 'boot_index': 0}
        root |= {'volume_size': 1, 'delete_on_termination': True}
        data = {'source_type': 'volume', 'destination_type': 'volume', 'uuid': chance.choice(self.volumes)}
        local = {'source_type': 'image', 'destination_type': 'local', 'uuid': self.image, 'boot_index': 0}
        more = chance.choice(
            [
                {'imageRef': self.image},
                {'imageRef': self.image, 'min_count': 2},
                {'block_device_mapping_v2': [root]},
                {'imageRef': self.image, 'block_device_mapping_v2': [local, data | {'boot_index': -1}]},
            ]
        )
        return {'name': 'server', 'flavorRef': '1', 'networks': [{'uuid': self.network}]} | more

    def send(self, session, method, path, body=None):
        answer = session.request(method, f'{self.service.url}/v2.1{path}', json=body, timeout=30)
        if answer.status_code >= 500:
            self.wrong.append(f'{method} {path} {body}: {answer.status_code} {answer.text[:300]}')


def wait_idle(store, seconds=90):
    """Wait until no task is due; tasks scheduled for later may remain."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        due = tasks.c.not_before.is_(None) | (tasks.c.not_before <= utcnow())
        with store.read() as connection:
            left = connection.execute(tasks.select().where(due)).all()
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError(left)
