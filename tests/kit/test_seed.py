"""Clouds with the same seed generate the same IDs, addresses and passwords for the same requests."""

import json
import os
import re
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import datetime

import pytest
import requests
import yaml

from computeapi import config, serve
from computeapi.kit.kit import Kit
from computeapi.kit.seed import Seed
from computeapi.serve.directory import opened
from computeapi.testing import Cloud
from tests.kit.conftest import HTTP

TIMEOUT = 60
MOMENT = datetime(2030, 1, 1)
TIMES = re.compile(r'\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00:00)?')
SERVERS = '/v2.1/servers'


class Client(HTTP):
    """`answers` has the responses to requests that change something, without times and without the cloud's address."""

    def __init__(self, cloud, user='admin'):
        super().__init__(cloud)
        self.log_in(user)
        self.answers, self.request_ids = [], []
        self.networks = {each['name']: each['id'] for each in self.get('/networking/v2.0/networks').json()['networks']}
        self.image = self.get('/image/v2/images').json()['images'][0]['id']

    @property
    def token(self):
        return self.session.headers['X-Auth-Token']

    def ask(self, method, path, body=None, **more):
        answer = self.request(method, path, body, **more)
        assert answer.status_code < 400, answer.text
        if method != 'GET':
            self.answers.append((method, path, self.plain(answer.text)))
            self.request_ids.append(answer.headers.get('X-Openstack-Request-Id'))
        return answer.json() if answer.text else None

    def plain(self, text):
        return TIMES.sub('TIME', text.replace(self.cloud.url, 'URL'))

    def make(self, path, noun, **kwargs):
        """Creates a resource; returns its ID."""
        return self.ask('POST', path, {noun: kwargs})[noun]['id']

    def server(self, name='web', network='private', **more):
        facts = {'name': name, 'flavorRef': '1', 'imageRef': self.image, 'networks': [{'uuid': self.networks[network]}]}
        return self.make(SERVERS, 'server', **facts, **more)

    def act(self, server_id, action, arguments=None, becomes='ACTIVE'):
        self.ask('POST', f'{SERVERS}/{server_id}/action', {action: arguments})
        self.settled(server_id, becomes=becomes)

    def settled(self, *server_ids, becomes='ACTIVE'):
        """The servers, as soon as they have no task state."""
        return self.until(
            lambda: [self.ask('GET', f'{SERVERS}/{server_id}')['server'] for server_id in server_ids],
            lambda server: (server['status'], server['OS-EXT-STS:task_state']) == (becomes, None),
        )

    def until(self, find, fits):
        """Polls until all items fit; returns them."""
        until = time.monotonic() + TIMEOUT
        while not all(map(fits, found := find())):
            assert time.monotonic() < until, found
            time.sleep(0.02)
        return found


def everything(cloud):
    """The whole content of a cloud, without times."""
    return TIMES.sub('TIME', json.dumps(cloud.export(), default=str, sort_keys=True, indent=1)).splitlines()


def seeded(seed=7, **more):
    return Cloud(hosts=2, seed=seed, **more)


def story(http):
    """A story that creates something of nearly every kind."""
    web = http.server(key_name=key(http))
    [seen] = http.settled(web)
    disk = http.make('/volume/v3/volumes', 'volume', size=1, name='disk')
    http.make('/volume/v3/snapshots', 'snapshot', volume_id=disk)
    http.ask('POST', f'{SERVERS}/{web}/os-volume_attachments', {'volumeAttachment': {'volumeId': disk}})
    volumes = '/volume/v3/volumes/detail'
    http.until(lambda: http.ask('GET', volumes)['volumes'], lambda volume: volume['status'] == 'in-use')
    http.act(web, 'createImage', {'name': 'copy'})
    http.act(web, 'resize', {'flavorRef': '2'}, becomes='VERIFY_RESIZE')
    http.act(web, 'confirmResize')
    http.act(web, 'rebuild', {'imageRef': http.image})
    http.ask('POST', f'{SERVERS}/{web}/os-interface', {'interfaceAttachment': {'net_id': http.networks['private']}})
    many = http.ask(
        'POST', SERVERS, {'server': {**plain_server(http, 'many'), 'min_count': 5, 'return_reservation_id': True}}
    )
    of_many = http.ask('GET', f'{SERVERS}?reservation_id={many["reservation_id"]}')['servers']
    http.settled(*(each['id'] for each in of_many))
    picture = http.ask('POST', '/image/v2/images', {'name': 'p', 'disk_format': 'raw', 'container_format': 'bare'})
    http.upload(picture['id'], b'bits')
    network = http.make('/networking/v2.0/networks', 'network', name='own')
    http.make('/networking/v2.0/subnets', 'subnet', network_id=network, cidr='192.0.2.0/24', ip_version=4)
    http.make('/networking/v2.0/ports', 'port', network_id=network)
    [port] = http.ask('GET', f'/networking/v2.0/ports?device_id={web}&fixed_ips=ip_address={address_of(seen)}')['ports']
    floating = {'floating_network_id': http.networks['public'], 'port_id': port['id']}
    http.make('/networking/v2.0/floatingips', 'floatingip', **floating)
    group = http.make('/networking/v2.0/security-groups', 'security_group', name='group')
    rule = {'security_group_id': group, 'direction': 'ingress'}
    http.make('/networking/v2.0/security-group-rules', 'security_group_rule', **rule)
    http.make('/v2.1/flavors', 'flavor', name='mine', ram=64, vcpus=1, disk=1)
    http.make('/v2.1/os-aggregates', 'aggregate', name='ours')
    http.make('/v2.1/os-server-groups', 'server_group', name='apart', policy='anti-affinity')
    project = http.make('/identity/v3/projects', 'project', name='shop')
    http.make('/identity/v3/users', 'user', name='alice', password='secret', default_project_id=project)
    http.ask('DELETE', f'{SERVERS}/{web}')
    http.until(lambda: [http.ask('GET', SERVERS)['servers']], lambda servers: len(servers) == 5)


def plain_server(http, name):
    return {'name': name, 'flavorRef': '1', 'imageRef': http.image, 'networks': [{'uuid': http.networks['private']}]}


def address_of(server):
    return server['addresses']['private'][0]['addr']


def key(http):
    public = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ'
    http.ask('POST', '/v2.1/os-keypairs', {'keypair': {'name': 'key', 'public_key': public, 'type': 'ssh'}})
    return 'key'


@pytest.fixture
def client():
    """client(cloud, user): a client whose connections are closed at the end."""
    with ExitStack() as stack:

        def log_in(cloud, user='admin'):
            made = Client(cloud, user)
            stack.callback(made.session.close)
            return made

        yield log_in


def test_a_story_has_the_same_ids_addresses_and_passwords_each_time(client):
    told = []
    for _ in range(2):
        with seeded() as cloud:
            # The content of a server's snapshot depends on the time.
            cloud.clock.freeze(MOMENT)
            http = client(cloud)
            story(http)
            told.append((http.answers, http.request_ids, dict(cloud.passwords), everything(cloud)))
    (answers, request_ids, passwords, document), again = told
    assert answers == again[0]
    assert request_ids == again[1] and len(request_ids) == len(set(request_ids))
    assert passwords == again[2]
    assert document == again[3]
    assert 'adminPass' in str(answers)


def test_processes_whose_sets_are_in_another_order_make_up_the_same():
    """The seed can also be passed to `computeapi run`."""
    computeapi = [sys.executable, '-m', 'computeapi']
    command = [*computeapi, 'run', '--seed', '7', '--hosts', '2', '--', *computeapi, 'control', 'export']
    found = []
    for number in '12':
        environ = {**os.environ, 'PYTHONHASHSEED': number}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=120)
        found.append(done.stdout)
    with seeded() as cloud:
        found.append(yaml.safe_dump(cloud.export(), sort_keys=False))
    first, second, own = (yaml.safe_load(TIMES.sub('TIME', each)) for each in found)
    assert first == second == own
    assert all(uuid.UUID(each['id']).version == 4 for each in (*own['projects'], *own['users'], *own['networks']))


def fleet(client, cloud, order, workers):
    """Boot servers with an interface and volumes, in this order and with this many concurrent requests; returns all
    resources by name."""
    http = client(cloud)

    def boot(number):
        with closing(requests.Session()) as session:
            session.headers.update(http.session.headers)
            for path, noun, body in (
                (SERVERS, 'server', plain_server(http, f'web-{number}')),
                ('/volume/v3/volumes', 'volume', {'size': 1, 'name': f'disk-{number}'}),
            ):
                assert session.post(http.cloud.url + path, json={noun: body}, timeout=TIMEOUT).status_code == 202
                session.get(http.cloud.url + SERVERS, timeout=TIMEOUT)

    with ThreadPoolExecutor(workers) as threads:
        list(threads.map(boot, order))
    ids = [each['id'] for each in http.ask('GET', SERVERS)['servers']]
    found = {each['name']: (each['id'], each['addresses']) for each in http.settled(*ids)}
    volumes = http.ask('GET', '/volume/v3/volumes')['volumes']
    return found | {each['name']: each['id'] for each in volumes}


def test_it_does_not_matter_who_comes_first(client):
    found = []
    for order, workers in ((range(8), 1), (range(7, -1, -1), 8)):
        with seeded(options={('DEFAULT', 'workers'): workers}) as cloud:
            found.append(fleet(client, cloud, order, workers))
    assert found[0] == found[1] and len(found[0]) == 16


def test_what_any_request_may_make_is_the_same_by_whichever(client):
    """The default group of a project, which is created by listing groups or by booting."""
    groups = '/networking/v2.0/security-groups'
    found = []
    for first in ('look', 'boot'):
        with seeded() as cloud:
            http = client(cloud, 'demo')
            if first == 'boot':
                network = http.make('/networking/v2.0/networks', 'network', name='own')
                http.make('/networking/v2.0/ports', 'port', network_id=network)
            found.append(http.ask('GET', groups)['security_groups'])
    assert TIMES.sub('', str(found[0])) == TIMES.sub('', str(found[1]))


def test_two_who_ask_for_the_same_are_told_apart(client):
    found = []
    for users in (('admin', 'demo'), ('demo', 'admin')):
        with seeded() as cloud:
            found.append({user: client(cloud, user).make('/volume/v3/volumes', 'volume', size=1) for user in users})
    assert found[0] == found[1] and found[0]['admin'] != found[0]['demo']


def test_clouds_of_other_seeds_are_others_also_beside_each_other(client):
    def ids(*seeds):
        with ExitStack() as stack:
            clouds = [stack.enter_context(seeded(seed)) for seed in seeds]
            clients = [client(cloud) for cloud in clouds]
            found = [[cloud.passwords['demo']] for cloud in clouds]
            for number in range(3):
                for made, http in zip(found, clients, strict=True):
                    made.append(http.server(f'web-{number}'))
            return found

    alone = ids(1)[0]
    one, other, without, neither = ids(1, 2, None, None)
    assert one == alone
    assert len({*one, *other, *without, *neither}) == 16


def test_the_same_again_is_another(client):
    with seeded() as cloud:
        http = client(cloud)
        made = [http.server() for _ in range(3)]
        assert len(set(made)) == 3
        assert len({address_of(server) for server in http.settled(*made)}) == 3
        assert {uuid.UUID(each).version for each in made} == {4}


def test_after_a_reset_it_is_the_same_again(client):
    with seeded() as cloud:
        runs = []
        for number in range(3):
            http = client(cloud)
            # What an earlier test did is forgotten.
            runs.append([http.server() for _ in range(2 if number == 1 else 1)])
            cloud.reset()
        assert runs[0] == runs[2] == runs[1][:1]


def test_what_comes_after_a_snapshot_has_no_id_that_it_holds(client):
    with seeded() as cloud:
        http = client(cloud)
        first = http.server()
        http.settled(first)
        cloud.snapshot('one')
        second = http.server()
        cloud.restore('one')
        assert http.server() == second != first
        with cloud.branch('one') as other:
            there = client(other)
            assert other.passwords == cloud.passwords
            assert there.server() == second
            assert len(there.ask('GET', SERVERS)['servers']) == 2
            there.ask('DELETE', f'{SERVERS}/{first}')
        with cloud.branch() as other:
            there = client(other)
            assert there.server() not in (first, second)
            assert len(there.ask('GET', SERVERS)['servers']) == 3


def test_work_that_was_under_way_goes_on_with_the_same_addresses(client):
    with seeded() as cloud:
        http = client(cloud)
        for number in range(5):
            web = http.server(f'web-{number}')
            cloud.snapshot(f'booting-{number}')
            [first] = http.settled(web)
            cloud.restore(f'booting-{number}')
            assert http.settled(web)[0]['addresses'] == first['addresses']


def test_what_another_cloud_of_the_seed_had_may_be_loaded(client, tmp_path):
    with seeded() as cloud:
        first = client(cloud).server()
        client(cloud).settled(first)
        cloud.export(tmp_path / 'copy.yaml')
    made = set()
    for _ in range(2):
        with seeded(load=tmp_path / 'copy.yaml') as copy:
            made.add(client(copy).server())
            assert len(client(copy).ask('GET', SERVERS)['servers']) == 2
    assert len(made) == 1 and first not in made


def test_users_that_are_loaded_have_the_same_passwords_whoever_else_is():
    with seeded(load={'version': 1, 'users': [{'name': 'alice'}, {'name': 'bob'}]}) as cloud:
        first = cloud.passwords
    with seeded(load={'version': 1, 'users': [{'name': 'bob'}]}) as cloud:
        assert cloud.passwords['bob'] == first['bob'] != first['alice']


def test_a_password_that_is_given_is_the_one():
    conf = config.load(overrides={})
    with opened(None) as directory, closing(Kit(seed=Seed(7))) as kit:
        serve.configure(conf, directory)
        with serve.running(conf, directory, 'mine', hooks=kit) as (_, passwords):
            pass
    with seeded() as cloud:
        assert passwords == {'admin': 'mine', 'demo': cloud.passwords['demo']}
        assert cloud.passwords['admin'] != 'mine'


def test_what_opens_something_is_not_drawn(client):
    """Tokens, keys and guests' secrets must be truly random."""
    found = []
    for _ in range(2):
        with seeded() as cloud:
            http = client(cloud)
            user = http.ask('GET', '/identity/v3/users?name=admin')['users'][0]['id']
            web = http.server(network='private')
            http.settled(web)
            project = http.ask('GET', '/identity/v3/projects?name=admin')['projects'][0]['id']
            mine = f'/identity/v3/users/{user}'
            ec2 = http.ask('POST', f'{mine}/credentials/OS-EC2', {'tenant_id': project})['credential']
            application = {'application_credential': {'name': 'app'}}
            made = http.ask('POST', f'{mine}/application_credentials', application)['application_credential']
            volume = http.make('/volume/v3/volumes', 'volume', size=1)
            transfer = {'transfer': {'volume_id': volume}}
            key = http.ask('POST', '/volume/v3/os-volume-transfer', transfer)['transfer']['auth_key']
            console = {'remote_console': {'protocol': 'vnc', 'type': 'novnc'}}
            url = http.ask('POST', f'{SERVERS}/{web}/remote-consoles', console)['remote_console']['url']
            found.append((http.token, ec2['access'], ec2['secret'], made['secret'], key, url, cloud.control_token))
    assert all(one != other for one, other in zip(*found, strict=True))
