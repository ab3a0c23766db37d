"""Hypervisors, at the versions where the API changes."""

import json
import re
import uuid

import pytest
import sqlalchemy as sa

from computeapi.db import allocations
from computeapi.db.allocations import Amounts
from computeapi.db.tables.compute import services

PATH = '/os-hypervisors'
UPTIME = re.compile(r'\s*(.+)\sup\s+(.+),\s+(.+)\susers?,\s+load average:\s+(.+)')
"""The pattern by which the openstack client parses it."""
NAME_THERE = re.compile(r'instance-[0-9a-f]{8}')
"""The name of a server on a hypervisor, independent of its display name."""


@pytest.fixture(autouse=True)
def hosts(service):
    service.conf.set_override('hosts', 2, 'simulated')
    service.hosts.register()


@pytest.fixture
def taken(store, servers):
    """Two servers on the first host, one of which has a task state, and a deleted one."""
    for facts in ({'name': 'one', 'task_state': 'rebooting'}, {'name': 'two'}, {'deleted_at': servers.now()}):
        server_id = servers.add(vcpus=1, memory_mb=64, root_gb=1, **facts)
        if 'deleted_at' not in facts:
            store.change(allocations.replace, server_id, 'compute1', Amounts(), Amounts(1, 64, 1))


@pytest.fixture
def hypervisor(api):
    """The first hypervisor, as listed at 2.53."""
    return api.get(PATH, '2.53').json['hypervisors'][0]


def disable(store, host, **values):
    with store.write() as connection:
        named = (services.c.host == host) & (services.c.binary == 'nova-compute')
        connection.execute(sa.update(services).where(named).values(**values))


@pytest.fixture
def looks(shape):
    """Compares the keys and types with a sample; the uptime is left out, because the samples have none."""

    def compare(shown, wanted):
        assert shape(without_uptime(shown)) == shape(without_uptime(wanted))

    return compare


def without_uptime(body):
    if 'hypervisor' in body:
        return without_uptime(body['hypervisor'])
    return body | {'uptime': ''} if 'uptime' in body else body


SAMPLES = [('2.1', ''), ('2.28', 'v2.28/'), ('2.33', 'v2.33/'), ('2.53', 'v2.53/'), ('2.88', 'v2.88/')]


@pytest.mark.parametrize(('version', 'folder'), SAMPLES)
@pytest.mark.parametrize(('name', 'path'), [('list', ''), ('detail', '/detail')])
def test_lists_look_like_the_samples(api, sample, looks, version, folder, name, path):
    wanted = sample(f'os-hypervisors/{folder}hypervisors-{name}-resp.json')
    shown = api.get(f'{PATH}{path}?limit=1', version).json
    looks(shown['hypervisors'][0], wanted['hypervisors'][0])
    assert shown.keys() == wanted.keys() | ({'hypervisors_links'} if folder >= 'v2.33' else set())


@pytest.mark.parametrize(('version', 'folder'), [each for each in SAMPLES if each[0] != '2.33'])
def test_one_looks_like_the_samples(api, sample, looks, hypervisor, version, folder):
    identifier = hypervisor['id'] if version >= '2.53' else api.get(PATH).json['hypervisors'][0]['id']
    shown = api.get(f'{PATH}/{identifier}', version).json
    looks(shown, sample(f'os-hypervisors/{folder}hypervisors-show-resp.json'))
    if version < '2.88':
        uptime = api.get(f'{PATH}/{identifier}/uptime', version).json
        looks(uptime, sample(f'os-hypervisors/{folder}hypervisors-uptime-resp.json'))
        assert UPTIME.fullmatch(uptime['hypervisor']['uptime'])


def test_what_is_taken(api, taken, hypervisor):
    shown = api.get(f'{PATH}/{hypervisor["id"]}', '2.53').json['hypervisor']
    assert (shown['vcpus_used'], shown['memory_mb_used'], shown['local_gb_used']) == (2, 128, 2)
    assert (shown['running_vms'], shown['current_workload']) == (2, 1)
    assert shown['free_ram_mb'] == shown['memory_mb'] - 128
    assert shown['free_disk_gb'] == shown['disk_available_least'] == shown['local_gb'] - 2
    other = api.get(f'{PATH}/detail', '2.53').json['hypervisors'][1]
    assert (other['vcpus_used'], other['running_vms'], other['free_ram_mb']) == (0, 0, other['memory_mb'])


def test_the_sum_of_all_that_are_in_use(api, taken, store, sample, shape):
    answer = api.get(f'{PATH}/statistics', '2.87')
    assert shape(answer.json) == shape(sample('os-hypervisors/hypervisors-statistics-resp.json'))
    shown = answer.json['hypervisor_statistics']
    assert (shown['count'], shown['vcpus_used'], shown['running_vms'], shown['current_workload']) == (2, 2, 2, 1)
    disable(store, 'compute1', disabled=True)
    fewer = api.get(f'{PATH}/statistics').json['hypervisor_statistics']
    assert (fewer['count'], fewer['vcpus_used'], fewer['vcpus']) == (1, 0, shown['vcpus'] // 2)
    assert api.get(f'{PATH}/statistics', '2.88').status == 404


def test_the_cpu_is_text_at_first(api):
    first = api.get(f'{PATH}/detail', '2.27').json['hypervisors'][0]
    assert json.loads(first['cpu_info']) == api.get(f'{PATH}/detail', '2.28').json['hypervisors'][0]['cpu_info']


def test_state_and_status(api, store, hypervisor):
    assert (hypervisor['state'], hypervisor['status']) == ('up', 'enabled')
    disable(store, 'compute1', disabled=True, disabled_reason='repairs', forced_down=True)
    path = f'{PATH}/{hypervisor["id"]}'
    shown = api.get(path, '2.88').json['hypervisor']
    assert (shown['state'], shown['status'], shown['uptime']) == ('down', 'disabled', None)
    assert shown['service']['disabled_reason'] == 'repairs'
    assert api.get(f'{path}/uptime', '2.87').status == 400


def lasting(answer):
    """The hypervisors without their uptime, which changes between two responses."""
    return [without_uptime(each) for each in answer.json['hypervisors']]


@pytest.mark.parametrize('path', [PATH, f'{PATH}/detail'])
@pytest.mark.parametrize(('version', 'key'), [('2.33', int), ('2.53', str), ('2.88', str)])
def test_pages(api, path, version, key):
    every = lasting(api.get(path, version))
    page = api.get(f'{path}?limit=1', version)
    assert lasting(page) == every[:1] and isinstance(every[0]['id'], key)
    href = page.json['hypervisors_links'][0]['href']
    assert href.endswith(f'{path}?limit=1&marker={every[0]["id"]}')
    assert lasting(api.get(href.partition('/v2.1')[2], version)) == every[1:]
    assert api.get(f'{path}?limit=0', version).json == {'hypervisors': []}
    assert api.get(f'{path}?marker=999999', version).status == 400
    assert api.get(f'{path}?limit=-1', version).status == 400


def test_no_pages_before_2_33(api):
    assert len(api.get(f'{PATH}?limit=1&marker=junk', '2.32').json['hypervisors']) == 2


def test_by_name_from_2_53(api):
    found = api.get(f'{PATH}?hypervisor_hostname_pattern=UTE2', '2.53').json['hypervisors']
    assert [each['hypervisor_hostname'] for each in found] == ['compute2']
    assert len(api.get(f'{PATH}?hypervisor_hostname_pattern=ute2', '2.52').json['hypervisors']) == 2
    assert api.get(f'{PATH}?hypervisor_hostname_pattern=comp_te', '2.53').status == 404
    text = 'The server could not comply with the request since it is either malformed or otherwise incorrect.'
    for query in ('limit=1', 'marker=1', 'limit=1&marker=1'):
        answer = api.get(f'{PATH}?hypervisor_hostname_pattern=ute&{query}', '2.53')
        assert answer.json == {'badRequest': {'code': 400, 'message': text}}


def test_by_name_before_2_53(api, taken, sample, looks):
    found = api.get(f'{PATH}/ute2/search').json
    looks(found, sample('os-hypervisors/hypervisors-search-resp.json'))
    (shown,) = api.get(f'{PATH}/ute1/servers').json['hypervisors']
    looks(shown, sample('os-hypervisors/hypervisors-with-servers-resp.json')['hypervisors'][0])
    assert all(NAME_THERE.fullmatch(each['name']) for each in shown['servers']) and len(shown['servers']) == 2
    looks(api.get(f'{PATH}/ute2/servers').json, sample('os-hypervisors/hypervisors-without-servers-resp.json'))
    for name in ('search', 'servers'):
        assert api.get(f'{PATH}/nowhere/{name}').status == 404
        assert api.get(f'{PATH}/ute1/{name}', '2.53').status == 404


@pytest.mark.parametrize(('version', 'folder'), [('2.53', 'v2.53'), ('2.75', 'v2.53'), ('2.88', 'v2.88')])
def test_with_servers_from_2_53(api, taken, sample, shape, hypervisor, version, folder):
    wanted = sample(f'os-hypervisors/{folder}/hypervisors-with-servers-resp.json')['hypervisors'][0]
    first, second = api.get(f'{PATH}?with_servers=true', version).json['hypervisors']
    assert shape(first) == shape(wanted)
    assert all(NAME_THERE.fullmatch(each['name']) for each in first['servers']) and len(first['servers']) == 2
    assert second.get('servers') == ([] if version >= '2.75' else None)
    shown = api.get(f'{PATH}/{hypervisor["id"]}?with_servers=1', version).json['hypervisor']
    assert shown['servers'] == first['servers']
    assert 'servers' not in api.get(f'{PATH}?with_servers=false', version).json['hypervisors'][0]
    assert api.get(f'{PATH}/{hypervisor["id"]}?with_servers=junk', version).status == 400


@pytest.mark.parametrize('path', ['', '/uptime'])
def test_ids(api, path, hypervisor):
    nobody, old = str(uuid.uuid4()), api.get(PATH).json['hypervisors'][0]['id']
    assert api.get(f'{PATH}/{old}{path}', '2.52').status == 200
    assert api.get(f'{PATH}/{old}{path}', '2.53').status == 400
    assert api.get(f'{PATH}/{hypervisor["id"]}{path}', '2.53').status == 200
    assert api.get(f'{PATH}/{hypervisor["id"]}{path}', '2.52').status == 404
    assert api.get(f'{PATH}/{nobody}{path}', '2.53').status == 404
    assert api.get(f'{PATH}/{"9" * 32}{path}').status == api.get(f'{PATH}/{"9" * 32}{path}', '2.53').status == 404


@pytest.mark.parametrize(('path', 'most'), [('', 1), ('?with_servers=1', 2), ('/detail', 3), ('/statistics', 3)])
def test_a_list_is_the_same_number_of_statements_for_any_number_of_hosts(api, service, asked, servers, path, most):
    for hosts in (2, 20):
        service.conf.set_override('hosts', hosts, 'simulated')
        service.hosts.register()
        servers.add(host=f'compute{hosts}')
        asked.clear()
        assert api.get(PATH + path, '2.87').status == 200
        assert len([each for each in asked if each.startswith('SELECT')]) == most


def test_the_old_paths_on_v2(legacy):
    assert len(legacy.get(PATH).json['hypervisors']) == 2
    assert legacy.get(f'{PATH}/statistics').status == 200


@pytest.mark.parametrize('path', ['', '/detail', '/statistics', '/1', '/1/uptime', '/ute/search', '/ute/servers'])
def test_only_for_administrators(api, path):
    assert api.get(PATH + path, as_='bob:project').status == 403
