"""docs/how-to/deploying.md, followed step by step: two machines behind a proxy in a cloud, and a rolling upgrade while
clients continue."""

import os
import shutil
import threading
import time
from contextlib import closing

import pymysql
import pytest
import requests

from computeapi.db import schema
from tests.backends.implementations import ADMIN
from tests.databases import own_name
from tests.deployment.conftest import free_port
from tests.documents import ROOT, texts
from tests.neighbours import cloud
from tests.neighbours.deployment import PAGE, Folder

CLONED = ('computeapi', 'etc', 'pyproject.toml', 'README.md', 'LICENSE')
REVISION = '''"""Servers have notes."""

import sqlalchemy as sa
from alembic import op

revision = '{revision}'
down_revision = '{before}'


def upgrade() -> None:
    with op.batch_alter_table('servers', schema=None) as batch_op:
        batch_op.add_column(sa.Column('note', sa.String(255)))
'''
LASTS = 1.0
KEPT = 3


class Clients:
    """Some clients that read, and one that creates servers now and then; `errors`: the wrong responses."""

    def __init__(self, url, running, image):
        self.url, self.running, self.image = url, running, image
        self.errors, self.answered, self.servers, self.made = [], 0, [], 0
        self.ending = threading.Event()
        self.threads = [threading.Thread(target=self.repeat, args=[act]) for act in (self.read, self.read, self.create)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *error):
        self.ending.set()
        for thread in self.threads:
            thread.join()

    def repeat(self, act):
        token = self.running.session.get_token()
        with requests.Session() as session:
            session.headers.update({'X-Auth-Token': token, 'OpenStack-API-Version': 'compute 2.93'})
            while not self.ending.is_set():
                try:
                    act(session)
                    self.answered += 1
                except (requests.RequestException, AssertionError) as error:
                    self.errors.append(repr(error))

    def wait_for_more(self, number):
        wanted, deadline = self.answered + number, time.monotonic() + 60
        while self.answered < wanted and time.monotonic() < deadline:
            time.sleep(0.1)
        assert self.answered >= wanted

    def settle(self):
        """Checks that every created server is active, and can be deleted."""
        assert self.made > 5
        with requests.Session() as session:
            session.headers['X-Auth-Token'] = self.running.session.get_token()
            deadline = time.monotonic() + 60
            while (states := self.states(session)) != dict.fromkeys(self.servers, 'ACTIVE'):
                assert time.monotonic() < deadline, states
                time.sleep(0.5)
            for server in self.servers:
                session.delete(f'{self.url}/servers/{server}', timeout=60)
            while self.states(session):
                assert time.monotonic() < deadline + 60
                time.sleep(0.5)

    def states(self, session):
        found = self.ask(session, 'GET', '/servers/detail', 200)['servers']
        return {each['id']: each['status'] for each in found if each['name'] == 'load'}

    def ask(self, session, method, path, status, **more):
        answer = session.request(method, self.url + path, timeout=60, **more)
        assert answer.status_code == status, (method, path, answer.status_code, answer.text[:300])
        return answer.json() if answer.content else None

    def read(self, session):
        self.ask(session, 'GET', '/servers/detail', 200)
        self.ask(session, 'GET', '/flavors/detail', 200)

    def create(self, session):
        facts = {'name': 'load', 'flavorRef': 'load', 'imageRef': self.image, 'networks': 'none'}
        made = self.ask(session, 'POST', '/servers', 202, json={'server': facts})
        self.servers.append(made['server']['id'])
        self.made += 1
        if len(self.servers) > KEPT:
            self.remove(session, self.servers.pop(0))
        self.ending.wait(LASTS)

    def remove(self, session, server):
        """A server counts against the quota until it is gone, which takes a while on a busy machine."""
        self.ask(session, 'DELETE', f'/servers/{server}', 204)
        while not self.ending.is_set():
            status = session.get(f'{self.url}/servers/{server}', timeout=60).status_code
            if status == 404:
                break
            assert status == 200, status
            self.ending.wait(LASTS / 4)


class Site:
    """Two machines and a clone, with local replacements for the names on the page."""

    def __init__(self, folder, running, port):
        self.folder, self.running, self.database = folder, running, own_name()
        self.compute = f'127.0.0.1:{port}'
        ports = [f'127.0.0.1:{free_port()}' for _ in range(2)]
        self.one, self.two = (
            Folder(folder / name, folder / 'opt', self.names(listen, ports[1]), self.credentials())
            for name, listen in zip(('one', 'two'), ports, strict=True)
        )
        self.machines = (self.one, self.two)

    def names(self, listen, second):
        return {
            'http://cloud.example.org:5000/v3': self.running.url,
            'cloud.example.org:8774': self.compute,
            'api1.example.org:8774': listen,
            'api2.example.org:8774': second,
            '127.0.0.1:11211': os.environ['COMPUTEAPI_TEST_NEIGHBOURS_MEMCACHED'],
            'DATABASE computeapi': f'DATABASE {self.database}',
            "'computeapi'@": f"'{self.database}'@",
            'computeapi.*': f'{self.database}.*',
            '//computeapi:SECRET@db.example.org/computeapi': f'//{self.database}:SECRET@127.0.0.1/{self.database}',
            'SECRET': self.running.password,
            'TASK_TOKEN_KEY': cloud.KEY,
            'host_name = node': f'host_name = {self.database}-',
        }

    def credentials(self):
        """An administrator's credentials, for a project whose resources are cleaned up."""
        facts = {'auth_url': self.running.url, 'username': self.running.user(ADMIN)[1], 'user_domain_id': 'default'}
        facts |= {'password': self.running.password, 'project_id': self.running.project_id('admin')}
        return {f'OS_{name.upper()}': value for name, value in facts.items()} | {'OS_IDENTITY_API_VERSION': '3'}

    def clone(self, name):
        """Creates a release to install."""
        folder = self.folder / name
        folder.mkdir()
        for each in CLONED:
            (shutil.copytree if (ROOT / each).is_dir() else shutil.copy)(ROOT / each, folder / each)
        return folder

    def install(self):
        [block] = texts(PAGE, 'Install')
        self.one.install(block, self.clone('release-1'))
        # The directory of the package is shared by both.
        self.two.run('\n'.join(line for line in block.splitlines() if '/opt/' not in line))

    def configure(self):
        [file] = texts(PAGE, 'Configure')
        for machine in self.machines:
            machine.follow(file)
            # The maintenance mode of a machine is controlled by a file below its own /etc.
            paste = machine.text((ROOT / 'etc/computeapi/api-paste.ini').read_text())
            (machine.folder / 'etc/computeapi/api-paste.ini').write_text(paste)

    def begin(self):
        tables, listen, units = texts(PAGE, 'Start')
        checked = self.one.follow(tables)
        for machine in self.machines:
            machine.follow(listen)
            machine.follow(units)
        for block in texts(PAGE, 'The proxy'):
            self.one.follow(block)
        return checked

    def wait(self):
        """Wait until both machines respond behind the proxy."""
        deadline = time.monotonic() + 120
        while any(not answers(url) for url in (self.compute, *self.listening())):
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.2)

    def listening(self):
        return [machine.names['api1.example.org:8774'] for machine in self.machines]

    def logs(self):
        return '\n'.join(path.read_text()[-3000:] for path in self.folder.glob('*/**/*.log'))

    def end(self):
        self.one.stop('haproxy')
        for machine in self.machines:
            machine.stop('computeapi-api', 'computeapi-worker')
        with closing(pymysql.connect(host='127.0.0.1', user='root')) as connection, connection.cursor() as cursor:
            cursor.execute(f'DROP DATABASE IF EXISTS {self.database}')
            cursor.execute(f"DROP USER IF EXISTS '{self.database}'@'%'")
        placement = self.running.service('placement')
        for provider in placement.get('/resource_providers').json()['resource_providers']:
            if provider['name'].startswith(self.database):
                placement.delete(f'/resource_providers/{provider["uuid"]}', raise_exc=False)


def answers(address):
    try:
        return requests.get(f'http://{address}/readyz', timeout=10).status_code == 200
    except requests.RequestException:
        return False


@pytest.fixture
def site(tmp_path, compute_port):
    running = cloud.running()
    # A cloud that has no compute service yet.
    for service in running.identity('GET', '/services?type=compute')['services']:
        running.identity('DELETE', f'/services/{service["id"]}')
    site = Site(tmp_path, running, compute_port)
    yield site
    site.end()
    running.clean()


@pytest.fixture
def image():
    """The ID of a public image."""
    glance = cloud.running().service('image')
    facts = {'name': 'load', 'disk_format': 'raw', 'container_format': 'bare', 'visibility': 'public'}
    made = glance.post('/images', json=facts).json()['id']
    glance.put(f'/images/{made}/file', data=b'x' * 100, headers={'Content-Type': 'application/octet-stream'})
    yield made
    glance.delete(f'/images/{made}')


def test_the_page_leads_to_a_service_that_is_upgraded_without_an_interruption(site, image):
    for section in ('Keystone', 'The database'):
        for block in texts(PAGE, section):
            site.one.follow(block)
    site.install()
    site.configure()
    checked = site.begin()
    assert 'Cinder        Success  v3' in checked and 'Warning' not in checked
    site.wait()
    [session] = texts(PAGE, 'Try it')
    shown = site.one.follow(session)
    assert 'ACTIVE' in shown and 'demo=192.0.2.' in shown and 'volumes_attached' in shown
    upgrade(site, image)
    for machine in site.machines:
        said = machine.run('/opt/computeapi-2/bin/computeapi status')
        assert said.count('computeapi-worker') >= 2 and 'not ok' not in said
    site.one.run('/opt/computeapi-2/bin/computeapi audit')


def upgrade(site, image):
    """Upgrade to another release, which has one more database revision."""
    site.one.run('openstack flavor create --id load --ram 64 --disk 1 --vcpus 1 load')
    first, second = texts('docs/how-to/upgrading.md', 'Without an interruption')
    clone = site.clone('release-2')
    revision = f'{int(schema.head()) + 1:04}'
    versions = clone / 'computeapi/db/migrations/versions'
    (versions / f'{revision}_servers_have_notes.py').write_text(
        REVISION.format(revision=revision, before=schema.head())
    )
    with Clients(f'http://{site.compute}/v2.1', site.running, image) as clients:
        site.one.install(first, clone)
        for machine in site.machines:
            machine.follow(second)
            site.wait()
        clients.wait_for_more(20)
    assert clients.errors == []
    assert site.one.run('/opt/computeapi/bin/computeapi db version').strip() == revision
    clients.settle()
