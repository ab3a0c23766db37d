"""The content of config drives, compared with what the metadata service shows to guests."""

import json

import pytest
import sqlalchemy as sa
from cryptography.fernet import Fernet

from computeapi.backends.encryption import Cipher
from computeapi.compute.guest.openstack import FIRST
from computeapi.compute.guest.reader import GuestDocuments
from computeapi.db.tables.servers import tasks
from tests.api.servers.conftest import BOB, IMAGE

KEY = Fernet.generate_key().decode()
PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHnEZc4zXlSfuNuCYlHK6wYfWaSCdDrv8TtLSsj5AMgB bob'


@pytest.fixture
def keys():
    return [KEY]


@pytest.fixture
def service(service, keys):
    service.password_cipher = Cipher(keys)
    return service


@pytest.fixture
def drives(service, monkeypatch):
    """The config drives so far, the newest last."""
    spawn, told = type(service.hypervisor).spawn, []

    def tell(driver, server, devices, config_drive=None, *more):
        told.append(config_drive)
        return spawn(driver, server, devices, config_drive, *more)

    monkeypatch.setattr(type(service.hypervisor), 'spawn', tell)
    return told


@pytest.fixture
def passwords(drives, settle, store):
    """passwords() -> the passwords on the newest drive at the first and the newest version, once it is created; no
    password may be in the task queue in clear text."""

    def read(*secret):
        with store.read() as connection:
            waiting = str(connection.execute(sa.select(tasks)).all())
        assert not [each for each in secret if each in waiting]
        settle()
        found = [json.loads(drives[-1][f'openstack/{version}/meta_data.json']) for version in (FIRST, 'latest')]
        return [each.get('admin_pass') for each in found]

    return read


def test_it_says_the_password_that_the_answer_says(api, world, create, passwords, service, servers):
    answer = create('2.90', config_drive='yes')
    said = answer.json['server']['adminPass']
    assert passwords(said) == [said, said]
    server = servers.get(answer.json['server']['id'])
    address = GuestDocuments(service.platform).read(world.admin, server, 'openstack/latest/meta_data.json')
    assert b'admin_pass' not in address.body

    body = {'rebuild': {'imageRef': IMAGE, 'adminPass': 'of my own'}}
    assert api.post(f'/servers/{server.uuid}/action', body, '2.90', as_=BOB).status == 202
    assert passwords('of my own') == ['of my own', 'of my own']


@pytest.fixture
def evacuate(api, cloud, create, servers, settle):
    """evacuate('2.14', adminPass='x'): evacuates a server with a config drive; the response."""

    def post(version, **fields):
        server = create('2.90', config_drive='yes').json['server']['id']
        settle()
        down = {'host': servers.get(server).host, 'binary': 'nova-compute', 'forced_down': True}
        assert api.put('/os-services/force-down', down, '2.11').status == 200
        return api.post(f'/servers/{server}/action', {'evacuate': fields}, version)

    return post


@pytest.mark.parametrize(('version', 'fields'), [('2.13', {'onSharedStorage': False}), ('2.14', {})])
def test_it_says_the_password_of_an_evacuation(evacuate, passwords, version, fields):
    assert evacuate(version, adminPass='of my own', **fields).status == 200
    assert passwords('of my own') == ['of my own', 'of my own']


def test_a_server_keeps_its_password_on_shared_storage(evacuate, passwords):
    assert evacuate('2.13', onSharedStorage=True).json == {'adminPass': None}
    assert passwords() == [None, None]


def test_it_says_in_the_format_of_ec2_what_images_look_for_there(api, create, drives, settle):
    api.post('/os-keypairs', {'keypair': {'name': 'mine', 'public_key': PUBLIC_KEY}}, as_=BOB)
    create('2.1', config_drive=True, key_name='mine', user_data='aGVsbG8=')
    settle()
    drive = drives[-1]
    paths = {path for path in drive if path.startswith('ec2/')}
    assert paths == {f'ec2/{at}/{name}' for at in ('2009-04-04', 'latest') for name in ('meta-data.json', 'user-data')}
    facts = json.loads(drive['ec2/latest/meta-data.json'])
    assert facts['block-device-mapping'] == {'ami': 'vda', 'root': '/dev/vda'}
    assert facts['public-keys'] == {'0': {'_name': '0=mine', 'openssh-key': PUBLIC_KEY}}
    assert drive['ec2/latest/user-data'] == b'hello'


@pytest.mark.parametrize('keys', [[]])
def test_it_says_none_that_could_not_be_sealed_until_then(create, passwords):
    said = create('2.90', config_drive='yes', adminPass='of my own').json['server']['adminPass']
    assert passwords(said) == [None, None]
