"""Requests of a real Cinder to compute, at the URL in its catalog."""

import threading
import time
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest
from keystoneauth1.exceptions import Conflict

from computeapi.db import block_devices
from tests.backends.implementations import ADMIN
from tests.neighbours.cinder.servers import attach, attached, on_volume

TIMEOUT_SECONDS = 60
UNDER_WAY = ('starting', 'migrating', 'completing')


class Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        """Nobody reads the log."""


class Reused(WSGIServer):
    allow_reuse_address = True


@pytest.fixture
def listening(compute, compute_port):
    """The compute API at its address in the catalog."""
    server = make_server('127.0.0.1', compute_port, compute.app, Reused, Quiet)
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
    yield compute
    server.shutdown()
    server.server_close()


@pytest.fixture
def server_id(listening, cinder, image):
    """A server on a volume."""
    server_id = on_volume(listening, image())
    assert listening.settled(server_id)['status'] == 'ACTIVE'
    return server_id


@pytest.fixture
def volume_id(listening, cinder, server_id):
    volume_id = cinder.create()
    assert attach(listening, server_id, volume_id).status_code == 200
    cinder.settled(volume_id, 'in-use')
    return volume_id


def until(true):
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_nobody_takes_a_volume_from_a_server_behind_its_back(listening, cinder, server_id, volume_id):
    attachment_id = attached(listening, server_id)[volume_id]
    with pytest.raises(Conflict):
        cinder.mine.delete(f'/attachments/{attachment_id}', microversion='3.44')
    assert attached(listening, server_id)[volume_id] == attachment_id


def test_a_volume_that_grows_is_seen_to(listening, cinder, server_id, volume_id):
    cinder.mine.post(f'/volumes/{volume_id}/action', json={'os-extend': {'new_size': 3}}, microversion='3.42')

    def actions():
        path = f'GET /servers/{server_id}/os-instance-actions'
        return [each['action'] for each in listening.ask(ADMIN, path).json['instanceActions']]

    until(lambda: 'extend_volume' in actions())

    until(lambda: cinder.volume(volume_id)['status'] == 'in-use')

    def devices():
        return listening.service.store.query(block_devices.of_servers, [server_id])

    until(lambda: {each.volume_size for each in devices()} == {1, 3})
    assert len(devices()) == 2


def test_a_volume_moves_to_another_backend_while_it_is_used(listening, cinder, server_id, volume_id):
    before = cinder.volume(volume_id)['os-vol-host-attr:host']
    move = {'os-migrate_volume': {'host': before.replace('@near', '@far'), 'force_host_copy': True}}
    assert cinder.all.post(f'/volumes/{volume_id}/action', json=move, microversion='3.44').status_code == 202
    until(lambda: cinder.volume(volume_id)['os-vol-mig-status-attr:migstat'] in ('success', 'error'))
    moved = cinder.volume(volume_id)
    assert (moved['os-vol-mig-status-attr:migstat'], moved['status']) == ('success', 'in-use')
    assert moved['os-vol-host-attr:host'] != before

    def held():
        return [each['id'] for each in cinder.attachments(server_id) if each['volume_id'] == volume_id]

    # Cinder reports success before its attachments refer to the right volumes.
    until(lambda: held() and held() == [attached(listening, server_id).get(volume_id)])
    until(lambda: len(cinder.volumes()) == 2)
    assert cinder.users(volume_id) == cinder.users(*attached(listening, server_id).keys() - {volume_id})
