"""Servers wait for a real Neutron to report their ports as plugged, at their host and at the destination of a
migration."""

import io
import threading
import time
import uuid
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest

from computeapi.db.tables.servers import migrations
from tests.api.servers.conftest import IMAGE, World
from tests.backends.implementations import ADMIN, ALICE
from tests.neighbours import cloud
from tests.neighbours.compute import Compute

OPTIONS = """
[DEFAULT]
vif_plugging_timeout = {timeout}
task_sweep_interval = 0.5
[simulated]
hosts = 2
host_name = {name}-
"""


class Threaded(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture
def running():
    running = cloud.running()
    running.clean('network')
    running.topology.show()
    yield running
    running.clean('network')


def hearing(app, heard):
    """The app, wrapped to record the request bodies after each response."""

    def hear(environ, start_response):
        body = environ['wsgi.input'].read(int(environ.get('CONTENT_LENGTH') or 0))
        answer = app({**environ, 'wsgi.input': io.BytesIO(body)}, start_response)
        heard.append(body)
        return answer

    return hear


@pytest.fixture
def compute_on(running, store, compute_port):
    """compute_on('hybrid', 60): compute with two hosts of such names at its endpoint for Neutron, with this timeout."""
    made = []

    def start(kind, timeout):
        text = OPTIONS.format(timeout=timeout, name=f'{kind}-{uuid.uuid4().hex[:6]}')
        compute = Compute(running, store, text, network='neutron')
        made.append(compute.service.stop)
        compute.heard = []
        server = make_server('127.0.0.1', compute_port, hearing(compute.app, compute.heard), Threaded, Quiet)
        made.extend([server.server_close, server.shutdown])
        threading.Thread(target=server.serve_forever, args=[0.01]).start()
        world = World(compute.service)
        world.image(IMAGE, context=world.admin, visibility='public')
        return compute

    yield start
    for end in reversed(made):
        end()


class Moving:
    """A server with a port, and its migrations."""

    def __init__(self, compute):
        self.compute, self.neutron = compute, compute.running.service('network')
        network = compute.running.topology.private
        answer = compute.create(imageRef=IMAGE, networks=[{'uuid': network}])
        assert answer.status_code == 202, answer.text
        self.id = answer.json['server']['id']
        assert compute.settled(self.id)['status'] == 'ACTIVE'
        [self.port] = self.neutron.get(f'/ports?device_id={self.id}').json()['ports']

    def wait_for_what_neutron_tells_of_the_boot(self):
        """Neutron does not report on which host a port was plugged, and sends several events together, later."""
        deadline = time.monotonic() + 60
        while not any(b'network-vif-plugged' in body for body in self.compute.heard):
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def migrate(self):
        """Migrate to the other host; returns its name, and the status of the migration."""
        body = {'os-migrateLive': {'host': None, 'block_migration': 'auto'}}
        answer = self.compute.ask(ADMIN, f'POST /servers/{self.id}/action', body)
        assert answer.status_code == 202, answer.text
        self.compute.settled(self.id)
        [move] = self.compute.ask(ADMIN, 'GET /os-migrations').json['migrations']
        return move['dest_compute'], move['status']

    def host(self):
        return self.compute.ask(ADMIN, f'GET /servers/{self.id}').json['server']['OS-EXT-SRV-ATTR:host']

    def bound(self):
        """The host of the active binding, and those of the inactive ones."""
        port = self.neutron.get(f'/ports/{self.port["id"]}').json()['port']
        own = self.compute.service.networks.service.session
        facts = {'service_type': 'network', 'interface': 'public'}
        found = own.get(f'/v2.0/ports/{port["id"]}/bindings', endpoint_filter=facts).json()['bindings']
        others = [each['host'] for each in found if each['status'] != 'ACTIVE']
        return port['binding:host_id'], port['binding:profile'], others


def test_a_live_migration_waits_for_the_ports_there(compute_on):
    moving = Moving(compute_on('hybrid', 60))
    there, status = moving.migrate()
    assert (moving.host(), status) == (there, 'completed')
    assert moving.bound() == (there, {}, [])
    [move] = moving.compute.service.store.query(lambda connection: connection.execute(migrations.select()).all())
    assert move.plugged == {moving.port['id']: 'completed'}


def test_it_does_not_begin_where_they_are_not_connected(compute_on):
    # The server boots within this time, even on a busy machine.
    moving = Moving(compute_on('silent', 12))
    moving.wait_for_what_neutron_tells_of_the_boot()
    before = moving.host()
    there, status = moving.migrate()
    assert (moving.host(), status) == (before, 'error') and there != before
    assert moving.bound() == (before, {}, [])
    message = moving.compute.ask(ALICE, f'GET /servers/{moving.id}').json['server']
    assert message['status'] == 'ACTIVE'


def test_nothing_is_waited_for_that_is_never_told(compute_on):
    moving = Moving(compute_on('host', 60))
    there, status = moving.migrate()
    assert (moving.host(), status) == (there, 'completed')
    assert moving.bound() == (there, {}, [])
