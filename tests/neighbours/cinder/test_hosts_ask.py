"""Requests of hypervisor hosts to a real Cinder: how to connect to the volumes of a server."""

import pytest

from computeapi.context import Context
from computeapi.errors import AttachmentNotFound
from tests.backends.implementations import ADMIN
from tests.neighbours.cinder.servers import attach, attached, on_volume

HOST = Context().elevated()


@pytest.fixture
def volumes(compute):
    """As in the process of a host, which acts in its own name."""
    return compute.service.volumes


def test_the_host_of_a_server_is_told_how_to_reach_its_volumes(compute, cinder, image, volumes):
    server_id = on_volume(compute, image())
    assert compute.settled(server_id)['status'] == 'ACTIVE'
    more = cinder.create()
    assert attach(compute, server_id, more).status_code == 200
    cinder.settled(more, 'in-use')
    for volume_id in attached(compute, server_id):
        found = volumes.connection(HOST, server_id, volume_id, 'whatever')
        assert (found['driver_volume_type'], found['volume_id']) == ('none', volume_id)
    with pytest.raises(AttachmentNotFound):
        volumes.connection(HOST, server_id, cinder.create(), 'whatever')


def test_each_of_two_hosts_is_told_its_own_while_a_server_moves(compute, cinder, image, volumes):
    server_id = on_volume(compute, image())
    assert compute.settled(server_id)['status'] == 'ACTIVE'
    [volume_id] = attached(compute, server_id)
    host = compute.ask(ADMIN, f'GET /servers/{server_id}').json['server']['OS-EXT-SRV-ATTR:host']
    own = volumes.attachments(HOST, server_ids=[server_id])[0].id
    connector = compute.service.hypervisor.connector(host) | {'host': 'other'}
    second = volumes.reserve(HOST, volume_id, server_id, beside=own, connector=connector)
    volumes.complete(HOST, second)
    assert volumes.connection(HOST, server_id, volume_id, host)['attachment_id'] == own
    assert volumes.connection(HOST, server_id, volume_id, 'other')['attachment_id'] == second
    with pytest.raises(AttachmentNotFound):
        volumes.connection(HOST, server_id, volume_id, 'a third one')
    volumes.release(HOST, second)
