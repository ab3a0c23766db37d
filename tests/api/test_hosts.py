"""Hosts over HTTP, until 2.42."""

import pytest
import sqlalchemy as sa

from computeapi.db.tables.compute import allocations, services

PATH = '/os-hosts'
POWER = ['reboot', 'shutdown', 'startup']


@pytest.fixture(autouse=True)
def hosts(service):
    service.hosts.register()


@pytest.fixture
def force_down(store):
    def force():
        with store.write() as connection:
            connection.execute(sa.update(services).values(forced_down=True))

    return force


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
    with store.write() as connection:
        row = {'server_id': server_id, 'host': 'compute1', 'vcpus': 4, 'memory_mb': 128, 'disk_gb': 4}
        connection.execute(sa.insert(allocations).values(**row))
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


def test_what_no_host_can(api, force_down):
    assert api.put(f'{PATH}/compute1', {'status': 'disable', 'maintenance_mode': 'enable'}).status == 501
    assert api.get('/os-services?host=compute1').json['services'][0]['status'] == 'enabled'
    assert api.get(f'{PATH}/compute1/reboot').status == 501
    assert api.get(f'{PATH}/compute1/shutdown').status == 501
    assert api.get(f'{PATH}/compute1/startup').json == {'host': 'compute1', 'power_action': 'startup'}
    force_down()
    assert api.get(f'{PATH}/compute1/startup').status == 501


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
    assert legacy.get(PATH + path).status in (200, 501)
