"""Hosts, until 2.42."""

import pytest

from computeapi.db import allocations
from computeapi.db.allocations import Amounts

PATH = '/os-hosts'
POWER = ['reboot', 'shutdown', 'startup']


@pytest.fixture(autouse=True)
def hosts(service):
    service.hosts.register()


def test_the_list_looks_like_the_sample(api, sample, shape):
    answer = api.get(PATH)
    assert shape(answer.json) == shape(sample('os-hosts/hosts-list-resp.json'))
    assert {(each['host_name'], each['service'], each['zone']) for each in answer.json['hosts']} == {
        ('compute1', 'compute', 'nova'),
        ('controller', 'conductor', 'internal'),
        ('controller', 'scheduler', 'internal'),
    }
    assert [each['service'] for each in api.get(f'{PATH}?zone=nova').json['hosts']] == ['compute']


def test_what_is_taken_of_a_host(api, store, servers, sample, shape):
    server_id = servers.add(vcpus=2, memory_mb=64, root_gb=3, ephemeral_gb=1, project_id='one')
    servers.add(vcpus=1, memory_mb=32, root_gb=1, project_id='other')
    servers.add(deleted_at=servers.now())
    store.change(allocations.replace, server_id, 'compute1', Amounts(), Amounts(4, 128, 4))
    answer = api.get(f'{PATH}/compute1', '2.42')
    assert shape(answer.json) == shape(sample('os-hosts/host-get-resp.json'))
    total, *rest = [each['resource'] for each in answer.json['host']]
    assert total['project'] == '(total)' and total['cpu'] > 0
    assert [tuple(each[name] for name in ('project', 'cpu', 'memory_mb', 'disk_gb')) for each in rest] == [
        ('(used_now)', 4, 128, 4),
        ('(used_max)', 3, 96, 5),
        ('one', 2, 64, 4),
        ('other', 1, 32, 1),
    ]


def test_a_host_is_taken_out_of_use_and_back(api, sample, shape):
    body = {'status': 'enable', 'maintenance_mode': 'disable'}
    answer = api.put(f'{PATH}/compute1', body)
    assert shape(answer.json) == shape(sample('os-hosts/host-put-maintenance-resp.json'))
    assert api.put(f'{PATH}/compute1', {'status': 'Disable'}).json == {'host': 'compute1', 'status': 'disabled'}
    assert api.get('/os-services?host=compute1').json['services'][0]['status'] == 'disabled'
    assert api.put(f'{PATH}/compute1', {'status': 'enable'}).json['status'] == 'enabled'
    assert api.get('/os-services?host=compute1').json['services'][0]['status'] == 'enabled'


@pytest.mark.parametrize('word', POWER)
def test_what_the_driver_cannot_do_is_refused_and_changes_nothing(api, service, monkeypatch, word):
    monkeypatch.setattr(type(service.hypervisor), 'capabilities', frozenset())
    assert api.get(f'{PATH}/compute1/{word}').status == 501
    assert api.put(f'{PATH}/compute1', {'status': 'disable', 'maintenance_mode': 'enable'}).status == 501
    shown = compute(api)
    assert (shown['status'], shown['state']) == ('enabled', 'up')


def test_a_host_is_switched_off_and_on(api, servers, service):
    running, deleted = servers.add(), servers.add(deleted_at=servers.now())
    rescued, busy = servers.add(vm_state='rescued'), servers.add(task_state='rebooting')
    elsewhere = servers.add(host='compute2')
    assert api.get(f'{PATH}/compute1/shutdown').json == {'host': 'compute1', 'power_action': 'shutdown'}
    service.hosts.register()
    assert compute(api)['state'] == 'down' and service.hosts.running() == []
    there = [servers.get(each) for each in (running, rescued, busy, elsewhere, deleted)]
    states = [(each.vm_state, each.power_state) for each in there]
    assert states == [('stopped', 4), ('rescued', 4), ('active', 1), ('active', 1), ('active', 1)]
    assert api.get(f'{PATH}/compute1/startup').json == {'host': 'compute1', 'power_action': 'startup'}
    assert compute(api)['state'] == 'up' and service.hosts.running() == ['compute1']
    assert servers.get(running).vm_state == 'stopped'


def test_a_reboot_stops_the_servers(api, servers):
    running = servers.add()
    assert api.get(f'{PATH}/compute1/reboot').json == {'host': 'compute1', 'power_action': 'reboot'}
    assert compute(api)['state'] == 'up'
    assert servers.get(running).vm_state == 'stopped'


def test_the_end_of_a_maintenance_that_there_is_not(api):
    api.put(f'{PATH}/compute1', {'status': 'disable'})
    assert api.put(f'{PATH}/compute1', {'maintenance_mode': 'disable'}).json['maintenance_mode'] == 'off_maintenance'
    assert compute(api)['status'] == 'disabled'


def compute(api):
    (shown,) = api.get('/os-services?binary=nova-compute&host=compute1').json['services']
    return shown


@pytest.mark.parametrize('body', [{}, {'status': 'junk'}, {'status': 5}, {'other': 1}, None, []])
def test_bad_bodies(api, body):
    assert api.put(f'{PATH}/compute1', body).status == 400


@pytest.mark.parametrize('path', ['', *(f'/{word}' for word in POWER)])
def test_hosts_that_are_not_there(api, path):
    assert api.get(f'{PATH}/controller{path}').status == 404
    assert api.put(f'{PATH}/nowhere', {'status': 'enable'}).status == 404


@pytest.mark.parametrize('path', ['', '/compute1', *(f'/compute1/{word}' for word in POWER)])
def test_gone_from_2_43_and_only_for_administrators(api, legacy, path):
    assert api.get(PATH + path, '2.43').status == 404
    assert api.get(PATH + path, as_='bob:project').status == 403
    assert legacy.get(PATH + path).status == 200
