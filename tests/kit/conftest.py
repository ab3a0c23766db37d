"""One cloud for all tests of the kit, reset after each of them."""

import time

import pytest
import requests

from computeapi.kit.variables import TOKEN_HEADER
from computeapi.testing import Cloud


@pytest.fixture(scope='session')
def cloud_of_session():
    with Cloud(hosts=2) as cloud:
        yield cloud


@pytest.fixture
def cloud(cloud_of_session):
    yield cloud_of_session
    cloud_of_session.reset()


class HTTP:
    """An administrator's requests to a cloud: http.get('/v2.1/servers'), and to its control API: http.control(...)."""

    def __init__(self, cloud):
        self.cloud, self.session = cloud, requests.Session()
        self.session.headers['OpenStack-API-Version'] = 'compute 2.96'
        self.log_in()

    def log_in(self, user='admin'):
        """Log in; needed again after a reset, which removes tokens."""
        password = {'user': {'name': user, 'domain': {'id': 'default'}, 'password': self.cloud.passwords[user]}}
        identity = {'methods': ['password'], 'password': password}
        scope = {'project': {'name': user, 'domain': {'id': 'default'}}}
        answer = self.post('/identity/v3/auth/tokens', {'auth': {'identity': identity, 'scope': scope}})
        self.session.headers['X-Auth-Token'] = answer.headers['X-Subject-Token']

    def request(self, method, path, body=None, **more):
        return self.session.request(method, self.cloud.url + path, json=body, timeout=30, **more)

    def get(self, path, **more):
        return self.request('GET', path, **more)

    def post(self, path, body=None, **more):
        return self.request('POST', path, body, **more)

    def delete(self, path, **more):
        return self.request('DELETE', path, **more)

    def upload(self, image_id, data):
        path, headers = f'/image/v2/images/{image_id}/file', {'Content-Type': 'application/octet-stream'}
        return self.request('PUT', path, data=data, headers=headers)

    def control(self, method, path, body=None, token=None):
        headers = {TOKEN_HEADER: self.cloud.control_token if token is None else token}
        return requests.request(method, f'{self.cloud.url}/control{path}', json=body, headers=headers, timeout=30)

    def boot(self, name='web', **more):
        """Creates a server without a network; returns its ID."""
        [image] = self.get('/image/v2/images').json()['images']
        server = {'name': name, 'flavorRef': '1', 'imageRef': image['id'], 'networks': 'none', **more}
        return self.post('/v2.1/servers', {'server': server}).json()['server']['id']

    def booted(self, server_id):
        """The server, as soon as it is no longer being built."""
        until = time.monotonic() + 60
        while (server := self.get(f'/v2.1/servers/{server_id}').json()['server'])['status'] == 'BUILD':
            assert time.monotonic() < until
            time.sleep(0.01)
        return server

    def names(self):
        """The names of the servers."""
        return sorted(server['name'] for server in self.get('/v2.1/servers').json()['servers'])


@pytest.fixture
def http(cloud):
    client = HTTP(cloud)
    yield client
    client.session.close()
