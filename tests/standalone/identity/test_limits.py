"""Limits for other services: registered ones, and those of a project or domain."""

import threading

import pytest

from computeapi.db import catalog
from tests.standalone.identity.conftest import UNKNOWN


@pytest.fixture
def service(make):
    return make('services', type='object-store', name='swift')['id']


@pytest.fixture
def registered(ask, admin, service):
    """A registered limit of 10 cores."""
    body = {'registered_limits': [{'service_id': service, 'resource_name': 'cores', 'default_limit': 10}]}
    [limit] = ask('POST /v3/registered_limits', body, by=admin, expect=201).json['registered_limits']
    return limit


@pytest.fixture
def limited(ask, admin, registered, id_of):
    """A limit of 5 cores for the project demo."""
    facts = {'service_id': registered['service_id'], 'resource_name': 'cores', 'resource_limit': 5}
    body = {'limits': [facts | {'project_id': id_of('projects', 'demo')}]}
    [limit] = ask('POST /v3/limits', body, by=admin, expect=201).json['limits']
    return limit


def test_the_life_of_a_registered_limit(ask, admin, demo, make, registered):
    assert (registered['default_limit'], registered['region_id'], registered['description']) == (10, None, None)
    path = f'/v3/registered_limits/{registered["id"]}'
    assert ask('GET /v3/registered_limits?resource_name=cores', by=demo).json['registered_limits'] == [registered]
    make('regions', id='north')
    facts = {'default_limit': 20, 'region_id': 'north', 'description': 'x', 'resource_name': 'vcpus'}
    changed = ask(f'PATCH {path}', {'registered_limit': facts}, by=admin).json['registered_limit']
    assert ask(f'GET {path}', by=demo).json['registered_limit'] == changed == registered | facts
    ask(f'PATCH {path}', {'registered_limit': facts}, by=demo, expect=403)
    ask(f'DELETE /v3/services/{registered["service_id"]}', by=admin, expect=204)
    assert ask(f'GET {path}', by=demo).json['registered_limit'] == changed
    ask(f'DELETE {path}', by=admin, expect=204)
    ask(f'GET {path}', by=admin, expect=404)


def test_limits_are_registered_all_or_none(ask, admin, service, registered):
    fresh = {'service_id': service, 'resource_name': 'ram', 'default_limit': 1}
    for other, status in (
        ({'resource_name': 'cores'}, 409),
        ({'service_id': UNKNOWN}, 400),
        ({'region_id': 'none'}, 400),
        ({'default_limit': -2}, 400),
        ({'color': 'red'}, 400),
    ):
        body = {'registered_limits': [fresh, fresh | {'resource_name': 'disk'} | other]}
        ask('POST /v3/registered_limits', body, by=admin, expect=status)
    assert ask('GET /v3/registered_limits', by=admin).json['registered_limits'] == [registered]


def test_the_life_of_a_limit(ask, admin, demo, limited, registered, id_of):
    assert (limited['resource_limit'], limited['domain_id']) == (5, None)
    path = f'/v3/limits/{limited["id"]}'
    changed = ask(f'PATCH {path}', {'limit': {'resource_limit': 7}}, by=admin).json['limit']
    assert ask(f'GET {path}', by=demo).json['limit'] == changed == limited | {'resource_limit': 7}
    for query, found in {
        '': [changed],
        f'project_id={id_of("projects", "demo")}': [changed],
        f'project_id={id_of("projects", "admin")}': [],
        'resource_name=ram': [],
    }.items():
        assert ask(f'GET /v3/limits?{query}', by=admin).json['limits'] == found
    ask(f'PATCH {path}', {'limit': {'resource_limit': 9}}, by=demo, expect=403)
    for request in ('DELETE', 'PATCH'):
        body = {'registered_limit': {'resource_name': 'x'}} if request == 'PATCH' else None
        ask(f'{request} /v3/registered_limits/{registered["id"]}', body, by=admin, expect=403)
    ask(f'DELETE {path}', by=admin, expect=204)
    ask(f'GET {path}', by=admin, expect=404)


def test_limits_of_others(ask, admin, demo, registered, limited):
    facts = {'service_id': registered['service_id'], 'resource_name': 'cores', 'resource_limit': 6}
    [other] = ask('POST /v3/limits', {'limits': [facts | {'domain_id': 'default'}]}, by=admin, expect=201).json[
        'limits'
    ]
    assert (other['project_id'], other['domain_id']) == (None, 'default')
    assert ask('GET /v3/limits', by=demo).json['limits'] == [limited]
    ask(f'GET /v3/limits/{other["id"]}', by=demo, expect=403)


def test_a_limit_needs_a_registered_one(ask, admin, limited, registered, id_of):
    project = {'project_id': id_of('projects', 'admin')}
    facts = {'service_id': registered['service_id'], 'resource_name': 'cores', 'resource_limit': 6}
    for other, status in (
        ({'resource_name': 'ram'}, 400),
        ({'project_id': UNKNOWN}, 400),
        ({'region_id': 'north'}, 400),
        ({'project_id': limited['project_id']}, 409),
    ):
        ask('POST /v3/limits', {'limits': [facts | project, facts | project | other]}, by=admin, expect=status)
    assert ask('GET /v3/limits', by=admin).json['limits'] == [limited]


@pytest.mark.parametrize('kind', ['projects', 'domains'])
def test_limits_and_credentials_go_with_their_project(ask, admin, registered, limited, make, kind):
    """The limit of a deleted project used to be shown as that of a domain."""
    domain = make('domains', name='orchard')
    project = make('projects', name='apples', domain_id=domain['id'])
    facts = {'service_id': registered['service_id'], 'resource_name': 'cores', 'resource_limit': 6}
    of_domain, of_project = ask(
        'POST /v3/limits',
        {'limits': [facts | {'domain_id': domain['id']}, facts | {'project_id': project['id']}]},
        by=admin,
        expect=201,
    ).json['limits']
    kept = make('credentials', type='x', blob='x')
    make('credentials', type='x', blob='x', project_id=project['id'])
    gone = project if kind == 'projects' else domain
    ask(f'PATCH /v3/{kind}/{gone["id"]}', {kind[:-1]: {'enabled': False}}, by=admin)
    ask(f'DELETE /v3/{kind}/{gone["id"]}', by=admin, expect=204)
    left = [limited] if kind == 'domains' else [limited, of_domain]
    assert sorted(each['id'] for each in ask('GET /v3/limits', by=admin).json['limits']) == sorted(
        each['id'] for each in left
    )
    ask(f'GET /v3/limits/{of_project["id"]}', by=admin, expect=404)
    assert ask('GET /v3/credentials', by=admin).json['credentials'] == [kept]


def test_no_limit_outlives_its_project(ask, admin, identity, registered, make, monkeypatch):
    """The project is deleted while a limit for it is created."""
    project = make('projects', name='apples')
    going = threading.Thread(target=identity.projects.delete, args=(project['id'],))
    insert = catalog.LIMITS.insert

    def later(*args, **values):
        going.start()
        going.join(0.5)
        insert(*args, **values)

    monkeypatch.setattr(catalog.LIMITS, 'insert', later)
    facts = {'service_id': registered['service_id'], 'resource_name': 'cores', 'resource_limit': 6}
    ask('POST /v3/limits', {'limits': [facts | {'project_id': project['id']}]}, by=admin, expect=201)
    going.join()
    assert ask('GET /v3/limits', by=admin).json['limits'] == []


def test_the_model(ask, demo):
    assert ask('GET /v3/limits/model', by=demo).json['model']['name'] == 'flat'
