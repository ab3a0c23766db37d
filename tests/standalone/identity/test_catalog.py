"""Regions, services and endpoints, and the resulting catalog."""

import pytest

from tests.standalone.identity.conftest import UNKNOWN


@pytest.fixture
def catalog(ask, log_in):
    """catalog() -> {name of a service: {interface: URL}} as a new token of demo shows it."""

    def catalog():
        token = log_in('demo')
        found = ask('GET /v3/auth/catalog', by=token).json['catalog']
        return {each['name']: {end['interface']: end['url'] for end in each['endpoints']} for each in found}

    return catalog


@pytest.fixture
def endpoint(make):
    """An endpoint of a service in a region."""
    region, service = make('regions', id='north'), make('services', type='object-store', name='swift')
    url = 'https://swift.example/v1/AUTH_$(project_id)s'
    return make('endpoints', service_id=service['id'], interface='public', region_id=region['id'], url=url)


def test_the_life_of_a_region(ask, admin, demo, make):
    region = make('regions', id='north', description='Cold')
    below = make('regions', parent_region_id='north')
    assert (region['id'], region['description'], region['parent_region_id']) == ('north', 'Cold', None)
    assert [each['id'] for each in ask('GET /v3/regions?parent_region_id=north', by=demo).json['regions']] == [
        below['id']
    ]
    path = '/v3/regions/north'
    changed = ask(f'PATCH {path}', {'region': {'description': 'Warm'}}, by=admin).json['region']
    assert ask(f'GET {path}', by=demo).json['region'] == changed == region | {'description': 'Warm'}
    for change in ({'parent_region_id': below['id']}, {'id': 'south'}):
        ask(f'PATCH {path}', {'region': change}, by=admin, expect=400)
    ask(f'PATCH {path}', {'region': {'parent_region_id': 'none'}}, by=admin, expect=404)
    ask('POST /v3/regions', {'region': {'id': 'north'}}, by=admin, expect=409)
    ask('POST /v3/regions', {'region': {'id': 'x'}}, by=demo, expect=403)
    ask(f'DELETE {path}', by=admin, expect=403)
    ask(f'DELETE /v3/regions/{below["id"]}', by=admin, expect=204)
    ask(f'DELETE {path}', by=admin, expect=204)
    ask(f'GET {path}', by=admin, expect=404)


def test_a_region_is_made_where_it_stands(ask, admin, demo):
    path, body = '/v3/regions/north', {'region': {'description': 'Cold'}}
    ask(f'PUT {path}', body, by=demo, expect=403)
    region = ask(f'PUT {path}', body, by=admin, expect=201).json['region']
    assert (region['id'], region['description']) == ('north', 'Cold')
    assert ask(f'GET {path}', by=demo).json['region'] == region
    ask(f'PUT {path}', body, by=admin, expect=409)
    ask('PUT /v3/regions/south', {'region': {'id': 'south'}}, by=admin, expect=201)
    for body in ({}, {'region': []}, {'region': {'id': 'south'}}):
        ask('PUT /v3/regions/west', body, by=admin, expect=400)
    ask(f'PUT /v3/regions/{"x" * 256}', {'region': {}}, by=admin, expect=400)


@pytest.mark.parametrize('path', ['/v3/regions/', '/v3/regions/RegionOne/', '/v3/regions//'])
def test_a_slash_at_the_end_of_a_path_says_nothing(ask, demo, path):
    assert ask(f'GET {path}', by=demo).json.keys() <= {'regions', 'region', 'links'}


def test_services_and_endpoints_are_the_catalog(ask, admin, demo, endpoint, catalog, id_of):
    url = f'https://swift.example/v1/AUTH_{id_of("projects", "demo")}'
    assert catalog()['swift'] == {'public': url}
    assert (endpoint['url'], endpoint['region']) == ('https://swift.example/v1/AUTH_$(project_id)s', 'north')
    path = f'/v3/endpoints/{endpoint["id"]}'
    changed = ask(f'PATCH {path}', {'endpoint': {'interface': 'admin', 'url': 'http://s/'}}, by=admin).json['endpoint']
    assert changed == endpoint | {'interface': 'admin', 'url': 'http://s/'}
    assert catalog()['swift'] == {'admin': 'http://s/'}
    ask(f'PATCH {path}', {'endpoint': {'enabled': False}}, by=admin)
    assert catalog()['swift'] == {}
    service = f'/v3/services/{endpoint["service_id"]}'
    ask(f'PATCH {service}', {'service': {'enabled': False}}, by=admin)
    assert 'swift' not in catalog()
    ask('DELETE /v3/regions/north', by=admin, expect=403)
    for request in (f'GET {path}', f'DELETE {path}', f'GET {service}', f'DELETE {service}'):
        ask(request, by=demo, expect=403)
    ask(f'DELETE {service}', by=admin, expect=204)
    ask(f'GET {path}', by=admin, expect=404)


@pytest.mark.parametrize('url', ['http://s/$(compute_host)s', 'http://s/%(project_id)s', 'http://s/$(tenant_id)s'])
def test_an_endpoint_without_what_its_url_needs_is_left_out(ask, make, log_in, url):
    service = make('services', type='object-store', name='swift')
    make('endpoints', service_id=service['id'], interface='public', url=url)
    token = log_in('admin', scope={'system': {'all': True}})
    found = ask('GET /v3/auth/catalog', by=token).json['catalog']
    assert [each['endpoints'] for each in found if each['name'] == 'swift'] == [[]]


def test_a_region_that_is_only_named_is_made(ask, admin, make, endpoint):
    made = make('endpoints', service_id=endpoint['service_id'], interface='admin', region='south', url='http://s')
    assert made['region_id'] == 'south'
    path = f'/v3/endpoints/{endpoint["id"]}'
    assert ask(f'PATCH {path}', {'endpoint': {'region': 'west'}}, by=admin).json['endpoint']['region_id'] == 'west'
    assert ask(f'PATCH {path}', {'endpoint': {'region': None}}, by=admin).json['endpoint']['region_id'] == 'west'
    by_id = {'region': 'east', 'region_id': 'south'}
    assert ask(f'PATCH {path}', {'endpoint': by_id}, by=admin).json['endpoint']['region'] == 'south'
    found = {region['id'] for region in ask('GET /v3/regions', by=admin).json['regions']}
    assert found == {'RegionOne', 'north', 'south', 'west'}


BAD_ENDPOINTS = {
    'a path': ({'url': '/v1'}, 'endpoint/url'),
    'an unknown name': ({'url': 'http://s/$(tenant_id)s/%(password)s'}, 'endpoint/url'),
    'a name without its end': ({'url': 'http://s/%(tenant_id)'}, 'endpoint/url'),
    'another interface': ({'interface': 'secret'}, 'endpoint/interface'),
    'no service': ({'service_id': UNKNOWN}, 'service_id'),
    'the id of no region': ({'region_id': 'south'}, 'region_id'),
    'a long region': ({'region': 'x' * 256}, 'endpoint/region'),
}


@pytest.mark.parametrize('case', BAD_ENDPOINTS)
def test_a_bad_endpoint_names_the_field(ask, admin, endpoint, case):
    facts, field = BAD_ENDPOINTS[case]
    body = {'service_id': endpoint['service_id'], 'interface': 'public', 'url': 'http://s'} | facts
    assert field in ask('POST /v3/endpoints', {'endpoint': body}, by=admin, expect=400).json['error']['message']


# Endpoint filters


def test_a_project_sees_what_it_was_given_to_see(ask, admin, demo, endpoint, catalog, id_of):
    project = id_of('projects', 'demo')
    path = f'/v3/OS-EP-FILTER/projects/{project}/endpoints'
    ask(f'GET {path}/{endpoint["id"]}', by=admin, expect=404)
    for _ in range(2):
        ask(f'PUT {path}/{endpoint["id"]}', by=admin, expect=204)
    ask(f'HEAD {path}/{endpoint["id"]}', by=admin, expect=204)
    assert {name for name, endpoints in catalog().items() if endpoints} == {'swift'}
    assert [each['id'] for each in ask(f'GET {path}', by=admin).json['endpoints']] == [endpoint['id']]
    found = ask(f'GET /v3/OS-EP-FILTER/endpoints/{endpoint["id"]}/projects', by=admin).json['projects']
    assert [each['id'] for each in found] == [project]
    ask(f'PUT {path}/{endpoint["id"]}', by=demo, expect=403)
    ask(f'PUT {path}/{UNKNOWN}', by=admin, expect=404)
    ask(f'DELETE {path}/{endpoint["id"]}', by=admin, expect=204)
    ask(f'DELETE {path}/{endpoint["id"]}', by=admin, expect=404)
    assert {name for name, endpoints in catalog().items() if endpoints} == {'nova', 'keystone', 'swift'}


def test_groups_of_endpoints(ask, admin, demo, endpoint, catalog, id_of):
    body = {'endpoint_group': {'name': 'public', 'filters': {'interface': 'public', 'region_id': 'RegionOne'}}}
    groups, project = '/v3/OS-EP-FILTER/endpoint_groups', id_of('projects', 'demo')
    group = ask(f'POST {groups}', body, by=admin, expect=201).json['endpoint_group']
    assert (group['filters'], group['description']) == (body['endpoint_group']['filters'], None)
    path = f'{groups}/{group["id"]}'
    ask(f'PUT {path}/projects/{project}', by=admin, expect=204)
    association = ask(f'GET {path}/projects/{project}', by=admin).json['project_endpoint_group']
    assert (association['endpoint_group_id'], association['project_id']) == (group['id'], project)
    assert association['links']['self'].endswith(f'{path}/projects/{project}')
    assert catalog() == {
        'nova': {'public': 'http://cloud.example/v2.1'},
        'keystone': {'public': 'http://cloud.example/identity'},
        'swift': {},
    }
    inside = [each['id'] for each in ask(f'GET {path}/endpoints', by=admin).json['endpoints']]
    seen = ask(f'GET /v3/OS-EP-FILTER/projects/{project}/endpoints', by=admin).json['endpoints']
    assert [each['id'] for each in seen] == inside
    found = ask(f'GET /v3/OS-EP-FILTER/projects/{project}/endpoint_groups', by=admin).json['endpoint_groups']
    assert found == [group]
    assert [each['id'] for each in ask(f'GET {path}/projects', by=admin).json['projects']] == [project]
    changed = ask(f'PATCH {path}', {'endpoint_group': {'filters': {}}}, by=admin).json['endpoint_group']
    assert changed == group | {'filters': {}}
    assert catalog()['nova'].keys() == {'public', 'internal', 'admin'}
    for filters in ({'name': 'x'}, {'interface': 'secret'}):
        ask(f'PATCH {path}', {'endpoint_group': {'filters': filters}}, by=admin, expect=400)
    ask(f'GET {path}', by=demo, expect=403)
    answer = ask(f'HEAD {path}', by=admin)
    assert (answer.body, answer.content_type) == (b'', 'application/json')
    ask(f'HEAD {path}', by=demo, expect=403)
    ask(f'HEAD {path}/{project}', by=admin, expect=404)
    ask(f'DELETE {path}/projects/{project}', by=admin, expect=204)
    ask(f'DELETE {path}', by=admin, expect=204)


# Policies


def test_the_life_of_a_policy(ask, admin, demo):
    body = {'policy': {'type': 'application/json', 'blob': '{"rule": []}', 'owner': 'me'}}
    policy = ask('POST /v3/policies', body, by=admin, expect=201).json['policy']
    assert policy.items() >= body['policy'].items()
    path = f'/v3/policies/{policy["id"]}'
    assert ask('GET /v3/policies?type=application/json', by=admin).json['policies'] == [policy]
    assert ask(f'PATCH {path}', {'policy': {'blob': ''}}, by=admin).json['policy'] == policy | {'blob': ''}
    for request in ('GET /v3/policies', f'GET {path}', f'DELETE {path}'):
        ask(request, by=demo, expect=403)
    ask(f'DELETE {path}', by=admin, expect=204)
    ask(f'GET {path}', by=admin, expect=404)
