"""Shared fixtures of the tests of microversions: a cloud of two hosts, with a running server of bob's."""

import pytest

from tests.api.servers.conftest import BOB, cloud, create, settle, world
from tests.conftest import Client

__all__ = ['cloud', 'create', 'settle', 'world']

ADMIN = 'admin:project:admin'
OTHER = {'compute1': 'compute2', 'compute2': 'compute1'}
"""The host that a server is not on."""


@pytest.fixture
def boot(cloud, create, settle):
    """boot('2.52', tags=['a']): the ID of a running server."""

    def post(version='2.1', **kwargs):
        answer = create(version, **kwargs)
        assert answer.status == 202, answer
        settle()
        return answer.json['server']['id']

    return post


@pytest.fixture
def server(boot):
    return boot()


@pytest.fixture
def show(api):
    """show(server, '2.9'): the server as an administrator sees it."""
    return lambda server, version='2.1', as_=ADMIN: api.get(f'/servers/{server}', version, as_=as_).json['server']


@pytest.fixture
def host(show):
    return lambda server: show(server)['OS-EXT-SRV-ATTR:host']


@pytest.fixture
def act(api, settle):
    """act(server, 'pause', None, '2.1'): the response, after the workers have finished."""

    def post(server, name, argument=None, version='2.1', as_=BOB):
        answer = api.post(f'/servers/{server}/action', {name: argument}, version, as_=as_)
        settle()
        return answer

    return post


@pytest.fixture
def shelved(act, server):
    """A server that is on no host."""
    act(server, 'shelve')
    return server


@pytest.fixture
def migrating(api, store, server):
    """migrating('running'): the path of a live migration with this status, as if a worker were carrying it out."""
    from computeapi.db.tables.servers import migrations

    def begin(status):
        argument = {'host': None, 'block_migration': 'auto'}
        assert api.post(f'/servers/{server}/action', {'os-migrateLive': argument}, '2.34', as_=ADMIN).status == 202
        with store.write() as connection:
            connection.execute(migrations.update().values(status=status))
            (migration,) = connection.execute(migrations.select()).all()
        return f'/servers/{server}/migrations/{migration.id}'

    return begin


@pytest.fixture
def attach(api, settle):
    """attach(server, volume, '2.49', tag='a'): the response, after the workers have finished."""

    def post(server, volume, version='2.1', **kwargs):
        body = {'volumeAttachment': {'volumeId': volume, **kwargs}}
        answer = api.post(f'/servers/{server}/os-volume_attachments', body, version, as_=BOB)
        settle()
        return answer

    return post


@pytest.fixture
def send_event(api):
    """send_event('volume-extended', server, '2.51', tag=volume): the response to an external event."""

    def post(name, server, version, **kwargs):
        event = {'name': name, 'server_uuid': server, **kwargs}
        return api.post('/os-server-external-events', {'events': [event]}, version, as_=ADMIN)

    return post


@pytest.fixture
def tags(app):
    """tags(server): the device tags that its guest can read, as administrators see them."""
    guests = Client(app, prefix='/metadata')

    def get(server):
        told = guests.get(f'/{server}/openstack/latest/meta_data.json').json
        return [tag for device in told['devices'] for tag in device['tags']]

    return get
