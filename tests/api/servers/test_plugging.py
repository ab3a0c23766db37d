"""Servers wait until the network service says that their ports are connected."""

import time
from dataclasses import replace

import pytest

from computeapi.context import Context
from tests.api.servers.conftest import BOB

EVENTS = '/os-server-external-events'
NEUTRON = Context(user_id='neutron', project_id='service', is_admin=True, roles=frozenset({'admin', 'service'}))


@pytest.fixture
def plugged(service, monkeypatch):
    """The ids of the ports that are connected; on the others somebody is still at work."""
    connected, found = set(), service.networks.ports

    def ports(context, **facts):
        return [each if each.id in connected else replace(each, status='DOWN') for each in found(context, **facts)]

    monkeypatch.setattr(service.networks, 'ports', ports)
    return connected


@pytest.fixture
def boot(create, settle):
    """The id of a new server, which the workers have done what they could for."""

    def booted():
        server_id = create().json['server']['id']
        settle()
        return server_id

    return booted


@pytest.fixture
def shown(api):
    """Status, task state and fault of a server."""

    def read(server_id):
        server = api.get(f'/servers/{server_id}', as_=BOB).json['server']
        return server['status'], server['OS-EXT-STS:task_state'], server.get('fault', {}).get('message')

    return read


@pytest.fixture
def plug(api, service, plugged, settle):
    """All ports of the server are connected, which the network service tells."""

    def told(server_id):
        ports = [port.id for port in service.networks.ports(NEUTRON, server_ids=[server_id])]
        plugged.update(ports)
        events = [{'name': 'network-vif-plugged', 'server_uuid': server_id, 'tag': each} for each in ports]
        assert api.post(EVENTS, {'events': events}).status == 200
        settle()

    return told


def test_a_new_server_waits_for_its_ports(boot, shown, plug):
    server_id = boot()
    assert shown(server_id) == ('BUILD', 'spawning', None)
    plug(server_id)
    assert shown(server_id) == ('ACTIVE', None, None)


def test_it_does_not_wait_where_nobody_tells(boot, shown, plugged, service):
    service.conf.set_override('vif_plugging_timeout', 0)
    assert shown(boot()) == ('ACTIVE', None, None)


@pytest.mark.parametrize('fatal', [True, False])
def test_it_does_not_wait_for_ever(boot, shown, settle, plugged, service, fatal):
    service.conf.set_override('vif_plugging_timeout', 1)
    service.conf.set_override('vif_plugging_is_fatal', fatal)
    server_id = boot()
    assert shown(server_id)[0] == 'BUILD'
    time.sleep(1.1)
    settle()
    status, task, fault = shown(server_id)
    if fatal:
        assert (status, task) == ('ERROR', None) and fault.startswith('The network service did not say within 1 s that')
        assert service.networks.ports(NEUTRON, server_ids=[server_id]) == []
    else:
        assert (status, task, fault) == ('ACTIVE', None, None)


def test_a_server_that_comes_back_waits_again(boot, shown, plug, plugged, api, settle):
    server_id = boot()
    plug(server_id)
    plugged.clear()
    for action in ('shelve', 'unshelve'):
        assert api.post(f'/servers/{server_id}/action', {action: None}, as_=BOB).status == 202
        settle()
    assert shown(server_id) == ('SHELVED_OFFLOADED', 'spawning', None)
    plug(server_id)
    assert shown(server_id) == ('ACTIVE', None, None)


def test_who_deletes_it_does_not_wait(boot, api, settle, plugged):
    server_id = boot()
    assert api.delete(f'/servers/{server_id}', as_=BOB).status == 204
    settle()
    assert api.get(f'/servers/{server_id}', as_=BOB).status == 404
