"""Servers wait until the network service reports their ports as plugged."""

import time
import uuid
from dataclasses import replace

import pytest

from computeapi.context import Context
from computeapi.db import allocations
from tests.api.servers.conftest import BOB
from tests.invariants import problems

EVENTS = '/os-server-external-events'
NEUTRON = Context(user_id='neutron', project_id='service', is_admin=True, roles=frozenset({'admin', 'service'}))


@pytest.fixture
def plugged(service, monkeypatch):
    """The IDs of the plugged ports; the others are still DOWN."""
    connected, found, make = set(), service.networks.ports, service.networks.create_port

    def seen(port):
        return port if port.id in connected else replace(port, status='DOWN')

    monkeypatch.setattr(service.networks, 'ports', lambda context, **kwargs: [*map(seen, found(context, **kwargs))])
    monkeypatch.setattr(service.networks, 'create_port', lambda *where, **kwargs: seen(make(*where, **kwargs)))
    return connected


@pytest.fixture
def boot(create, settle):
    """boot(): the ID of a new server, for which the workers have done what they could."""

    def booted():
        server_id = create().json['server']['id']
        settle()
        return server_id

    return booted


@pytest.fixture
def shown(api):
    """shown(server): status, task state and fault."""

    def read(server_id):
        server = api.get(f'/servers/{server_id}', as_=BOB).json['server']
        return server['status'], server['OS-EXT-STS:task_state'], server.get('fault', {}).get('message')

    return read


@pytest.fixture
def plug(api, service, plugged, settle):
    """plug(server): the network service reports all ports of the server as plugged."""

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
        assert (status, task) == ('ERROR', None)
        assert fault.startswith('The network service did not report within 1 s that')
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


def test_a_server_is_on_its_new_host_once_its_evacuation_is_over(cloud, boot, shown, plug, plugged, api, settle):
    """Masakari, for instance, stops it as soon as it sees another host."""
    server_id = boot()
    plug(server_id)
    plugged.clear()
    before = host_of(api, server_id)
    api.put('/os-services/force-down', {'host': before, 'binary': 'nova-compute', 'forced_down': True}, '2.11')
    assert api.post(f'/servers/{server_id}/action', {'evacuate': {}}, '2.68').status == 200
    settle()
    assert (*shown(server_id)[:2], host_of(api, server_id)) == ('REBUILD', 'rebuild_spawning', before)
    plug(server_id)
    assert shown(server_id) == ('ACTIVE', None, None)
    assert host_of(api, server_id) != before


def test_who_deletes_it_does_not_wait(boot, api, settle, plugged):
    server_id = boot()
    assert api.delete(f'/servers/{server_id}', as_=BOB).status == 204
    settle()
    assert api.get(f'/servers/{server_id}', as_=BOB).status == 404


# ------------------------------------------------------------------ live migration


@pytest.fixture
def bound(service, monkeypatch):
    """By port, the hosts with an additional binding; the network service reports each of these."""
    found, networks = {}, service.networks

    def add(context, port_id, host, *, allocation):
        found.setdefault(port_id, set()).add(host)
        return True

    monkeypatch.setattr(networks, 'add_binding', add)
    monkeypatch.setattr(networks, 'delete_binding', lambda context, port_id, host: found[port_id].discard(host))
    return found


@pytest.fixture
def report_plugged(api, settle):
    """report_plugged(server, port): the network service reports the port as plugged."""

    def report(server_id, port_id, status='completed'):
        event = {'name': 'network-vif-plugged', 'server_uuid': server_id, 'tag': port_id, 'status': status}
        assert api.post(EVENTS, {'events': [event]}).status == 200
        settle()

    return report


@pytest.fixture
def migrating(cloud, act, server, bound):
    """migrating(): a server whose live migration is waiting, and the only port that it waits for."""

    def begin():
        act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.34', as_='admin:project')
        [port_id] = bound
        return server, port_id

    return begin


def move(api):
    return api.get('/os-migrations', '2.59').json['migrations'][0]


def hosts_of(store, server_id):
    return store.query(allocations.hosts_of, server_id)


def test_a_live_migration_waits_for_the_other_host(api, store, migrating, state, bound, report_plugged, settle):
    server_id, port_id = migrating()
    before = state(server_id)[-1]
    assert state(server_id)[0] == 'MIGRATING' and move(api)['status'] == 'preparing'
    settle()
    assert len(hosts_of(store, server_id)) == 2 and bound[port_id] == {move(api)['dest_compute']}
    report_plugged(server_id, str(uuid.uuid4()))
    assert move(api)['status'] == 'preparing'
    report_plugged(server_id, port_id)
    status, *_, host = state(server_id)
    assert status == 'ACTIVE' and host != before and hosts_of(store, server_id) == {host}
    assert move(api)['status'] == 'completed'


def test_what_is_told_while_nobody_waits_is_no_sign(api, migrating, server, report_plugged, state, bound, service):
    [port] = service.networks.ports(NEUTRON, server_ids=[server])
    report_plugged(server, port.id)
    migrating()
    assert move(api)['status'] == 'preparing'


@pytest.mark.parametrize(('group', 'option'), [('compute', 'live_migration_wait_for_vif_plug'), (None, 'timeout')])
def test_it_does_not_wait_where_it_is_not_to(api, service, migrating, state, group, option):
    if group:
        service.conf.set_override(option, False, group)
    else:
        service.conf.set_override('vif_plugging_timeout', 0)
    server_id, _ = migrating()
    assert state(server_id)[0] == 'ACTIVE' and move(api)['status'] == 'completed'


def test_it_does_not_wait_for_what_is_never_told(api, cloud, act, server, state):
    act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'}, '2.34', as_='admin:project')
    assert state(server)[0] == 'ACTIVE' and move(api)['status'] == 'completed'


@pytest.mark.parametrize('fatal', [True, False])
@pytest.mark.parametrize('how', ['silence', 'failure'])
def test_a_host_whose_ports_are_not_connected(
    api, store, service, migrating, state, bound, report_plugged, settle, history, how, fatal
):
    service.conf.set_override('vif_plugging_timeout', 1 if how == 'silence' else 300)
    service.conf.set_override('vif_plugging_is_fatal', fatal)
    server_id, port_id = migrating()
    before = state(server_id)[-1]
    if how == 'silence':
        time.sleep(1.1)
        settle()
    else:
        report_plugged(server_id, port_id, 'failed')
    status, _, _, task, host = state(server_id)
    assert (status, task) == ('ACTIVE', None) and hosts_of(store, server_id) == {host}
    assert bound[port_id] <= {host} and problems(store) == []
    if fatal:
        assert host == before and move(api)['status'] == 'error'
        [(action, message, events)] = history(server_id)
        assert (action, message) == ('live-migration', 'Error')
        assert dict(events)['compute_pre_live_migration'] == 'Error'
    else:
        assert host != before and move(api)['status'] == 'completed'


def test_who_waits_can_be_told_to_stay(api, store, migrating, state, bound, settle):
    server_id, port_id = migrating()
    before = state(server_id)[-1]
    assert api.delete(f'/servers/{server_id}/migrations/{move(api)["id"]}', '2.65').status == 202
    settle()
    assert state(server_id)[0::4] == ('ACTIVE', before) and hosts_of(store, server_id) == {before}
    assert bound[port_id] == set() and move(api)['status'] == 'cancelled'


def test_what_was_told_outlasts_who_waited(migrating, state, report_plugged, die, settle, service):
    """The process dies just as it continues."""
    server_id, port_id = migrating()
    before = state(server_id)[-1]
    die(service.hypervisor.behaviour, 'wait', lambda: report_plugged(server_id, port_id))
    assert state(server_id)[0] == 'ACTIVE' and state(server_id)[-1] != before


def host_of(api, server_id):
    return api.get(f'/servers/{server_id}').json['server']['OS-EXT-SRV-ATTR:host']
