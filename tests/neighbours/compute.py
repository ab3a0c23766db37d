"""A compute service on a real cloud."""

import time

import webob

from computeapi.main import Service
from computeapi.pipeline import load
from tests.backends.implementations import ADMIN, ALICE

FLAVOR = {'id': '1', 'name': 'small', 'ram': 64, 'vcpus': 1, 'disk': 1}
TIMEOUT_SECONDS = 60


class Compute:
    """The compute API with its workers, on a real Keystone, these backends, and built-in services otherwise."""

    def __init__(self, running, store, options='', **backends):
        self.running = running
        self.service = Service(running.conf(text=options, identity='keystone', **backends), store)
        self.app = load(self.service, 'compute')
        self.service.start(alone=True)

    def ask(self, caller, request, json=None, token=None, version='2.90'):
        method, path = request.split()
        headers = {'X-Auth-Token': token or self.running.context(caller).auth_token}
        headers |= {'OpenStack-API-Version': f'compute {version}'}
        body = {} if json is None else {'json': json}
        return webob.Request.blank(f'/v2.1{path}', method=method, headers=headers, **body).get_response(self.app)

    def boot(self, image_id, token=None):
        """Creates a server; returns its ID when it is active."""
        answer = self.create(token, imageRef=image_id)
        assert answer.status_code == 202, answer.text
        server_id = answer.json['server']['id']
        assert self.settled(server_id)['status'] == 'ACTIVE'
        return server_id

    def create(self, token=None, **kwargs):
        """The response to a request for a server."""
        flavors = self.ask(ADMIN, 'GET /flavors').json['flavors']
        flavor_id = (
            flavors[0]['id'] if flavors else self.ask(ADMIN, 'POST /flavors', {'flavor': FLAVOR}).json['flavor']['id']
        )
        server = {'name': 'web', 'flavorRef': flavor_id, 'networks': 'none', **kwargs}
        return self.ask(ALICE, 'POST /servers', {'server': server}, token)

    def act(self, server_id, token=None, caller=ALICE, **action):
        return self.ask(caller, f'POST /servers/{server_id}/action', action, token)

    def settled(self, server_id):
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            server = self.ask(ALICE, f'GET /servers/{server_id}').json['server']
            if server['OS-EXT-STS:task_state'] is None and server['status'] != 'BUILD':
                return server
            assert time.monotonic() < deadline, server
            time.sleep(0.1)

    def gone(self, server_id):
        """Wait until the server is deleted."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while (answer := self.ask(ALICE, f'GET /servers/{server_id}')).status_code != 404:
            assert time.monotonic() < deadline, answer.text
            time.sleep(0.1)
