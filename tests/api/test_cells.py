"""Cells that are down: partial results from 2.69 on, and the effect on other resources."""

import pytest

ADMIN = 'admin:project'
LISTS = [('/servers', 'servers-list-resp'), ('/servers/detail', 'servers-details-resp')]


@pytest.fixture(autouse=True)
def hosts(service):
    """compute1 and compute3 in cell1, compute2 in cell2."""
    service.conf.set_override('hosts', 3, 'simulated')
    service.conf.set_override('cells', 2, 'simulated')
    service.hosts.register()


@pytest.fixture
def mark(service):
    """mark('cell2', down=True)"""
    return service.cloud.cells.mark


@pytest.fixture
def here(servers):
    return servers.add(name='here', host='compute1')


@pytest.fixture
def lost(servers, mark):
    """A server in a cell that is down."""
    server = servers.add(name='lost', host='compute2', server_group_id='f3d86fe6-4246-4be8-b87c-eb894626c741')
    mark('cell2', down=True)
    return server


def ids(answer):
    return [server['id'] for server in answer.json['servers']]


@pytest.mark.parametrize(('path', 'name'), LISTS)
def test_a_list_has_what_is_known(api, here, lost, sample, shape, path, name):
    first, second = api.get(path, '2.69', as_=ADMIN).json['servers']
    assert (first['id'], first['status'], second['id']) == (lost, 'UNKNOWN', here)
    assert shape(first) == shape(sample(f'down-cells/v2.69/{name}.json')['servers'][0])
    assert second['name'] == 'here'
    assert ids(api.get(path, '2.68', as_=ADMIN)) == [here]


@pytest.mark.parametrize(('version', 'folder'), [('2.69', 'v2.69'), ('2.71', 'v2.71')])
def test_one_has_what_is_known(api, lost, servers, sample, shape, version, folder):
    shown = api.get(f'/servers/{lost}', version).json['server']
    assert shape(shown) == shape(sample(f'down-cells/{folder}/server-get-resp.json')['server'])
    assert (shown['status'], shown['OS-EXT-AZ:availability_zone']) == ('UNKNOWN', 'UNKNOWN')
    servers.change(lost, pinned_availability_zone='north')
    assert api.get(f'/servers/{lost}', version).json['server']['OS-EXT-AZ:availability_zone'] == 'north'


def test_until_2_68_nothing_is_known_of_one(api, lost):
    answer = api.get(f'/servers/{lost}', '2.68')
    assert answer.status == 503 and 'cell2' in answer.text
    assert api.get(f'/servers/{lost}', as_='eve:other').status == 404


@pytest.mark.parametrize(
    ('query', 'unknown'),
    [
        ('all_tenants=1', True),
        ('all_tenants=1&project_id=project', True),
        ('deleted=False', True),
        ('name=e', False),
        ('status=ACTIVE', False),
        ('deleted=True', False),
        ('limit=10', False),
        ('sort_key=created_at', False),
    ],
)
def test_what_cannot_be_told_of_them_leaves_them_out(api, here, lost, query, unknown):
    shown = ids(api.get(f'/servers/detail?{query}', '2.69', as_=ADMIN))
    assert (lost in shown) == unknown
    assert (here in shown) == (query != 'deleted=True')


def test_other_projects_have_none_of_it(api, lost):
    assert ids(api.get('/servers', '2.69', as_='eve:other')) == []


@pytest.fixture
def pages_of_two(service):
    service.conf.set_override('max_limit', 2, 'api')


def test_they_come_in_as_far_as_there_is_room(pages_of_two, api, servers, here, lost):
    assert ids(api.get('/servers', '2.69', as_=ADMIN)) == [lost, here]
    other = servers.add(name='other', host='compute3')
    assert ids(api.get('/servers', '2.69', as_=ADMIN)) == [other, here]


def test_lists_that_leave_out_nothing_are_refused(api, service, here, lost):
    service.cloud.servers.skips_down_cells = False
    assert api.get('/servers', '2.68').status == api.get('/servers?limit=5', '2.69').status == 503
    assert ids(api.get('/servers', '2.69', as_=ADMIN)) == [lost, here]


@pytest.mark.parametrize('action', ['os-stop', 'lock', 'os-resetState'])
def test_actions_change_nothing(api, lost, servers, action):
    before = servers.get(lost)
    argument = {'state': 'error'} if action == 'os-resetState' else None
    assert api.post(f'/servers/{lost}/action', {action: argument}, '2.72').status == 503
    assert api.delete(f'/servers/{lost}', '2.72').status == 503
    assert api.put(f'/servers/{lost}/metadata', {'metadata': {}}).status == 503
    assert servers.get(lost) == before


def test_services(api, lost, sample, shape):
    by_host = {each['host']: each for each in api.get('/os-services', '2.69').json['services']}
    assert by_host['compute2'] == {'host': 'compute2', 'binary': 'nova-compute', 'status': 'UNKNOWN'}
    assert shape([by_host['compute2']]) == shape(sample('os-services/v2.69/services-list-get-resp.json')['services'])
    assert by_host['compute1']['status'] == 'enabled'
    assert 'compute2' not in {each['host'] for each in api.get('/os-services', '2.68').json['services']}
    assert api.get('/os-services?host=compute2', '2.69').json['services'] == [by_host['compute2']]
    body = {'host': 'compute2', 'binary': 'nova-compute'}
    assert api.put('/os-services/disable', body, '2.52').status == 503


def test_its_hosts_are_nowhere(api, lost, service):
    named = {each['hypervisor_hostname'] for each in api.get('/os-hypervisors', '2.53').json['hypervisors']}
    assert named == {'compute1', 'compute3'}
    shown = api.get('/os-availability-zone/detail').json['availabilityZoneInfo']
    assert [set(zone['hosts']) for zone in shown if zone['zoneName'] == 'nova'] == [{'compute1', 'compute3'}]


def test_it_comes_back(api, here, lost, mark):
    mark('cell2', down=False)
    assert api.get(f'/servers/{lost}', '2.69').json['server']['name'] == 'lost'
    assert {each['status'] for each in api.get('/os-services', '2.69').json['services']} == {'enabled'}
