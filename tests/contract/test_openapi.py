"""The OpenAPI documents are valid, complete, stable, and served."""

import re

import openapi_spec_validator
import pytest

from computeapi import api as table
from computeapi.versions import HISTORY, MAX, APIVersionRequest
from computeapi.web.openapi import describe

METHODS = {'get', 'post', 'put', 'delete'}


@pytest.fixture(scope='module')
def documents():
    made = {}

    def get(version):
        if version not in made:
            made[version] = describe(table.CONTROLLERS, APIVersionRequest.parse(version))
        return made[version]

    return get


def each_operation(document):
    for path, item in document['paths'].items():
        for method in METHODS & item.keys():
            yield method, path, item[method]


def actions(operation):
    return operation['requestBody']['content']['application/json']['schema']['oneOf']


@pytest.mark.parametrize('version', ['2.1', '2.35', '2.36', '2.57', '2.75', '2.90', str(MAX)])
def test_the_document_is_valid(documents, version):
    openapi_spec_validator.validate(documents(version))


@pytest.mark.parametrize('version', HISTORY)
def test_it_describes_the_operations_of_its_version(documents, version):
    described = set()
    for method, path, operation in each_operation(documents(version)):
        name = f'{method.upper()} {path}'
        if operation['operationId'].endswith('_action'):
            described |= {f'{name} {{{action["required"][0]}}}' for action in actions(operation)}
        else:
            described.add(name)
    asked = APIVersionRequest.parse(version)
    possible = [each for each in table.operations() if asked.matches(each.min, each.max)]
    assert described == {str(each) for each in possible if each.answers.at(asked)[0] < 400}


def test_names_of_operations_are_unique_and_tell_what_they_do(documents):
    for version in ('2.1', '2.50', str(MAX)):
        names = []
        for _, _, operation in each_operation(documents(version)):
            names.append(operation['operationId'])
            if operation['operationId'].endswith('_action'):
                names += [action['x-openstack-operation-id'] for action in actions(operation)]
        assert len(names) == len(set(names))
        assert {'flavors_list', 'flavors_show', 'flavors_create', 'flavors_action_addTenantAccess'} <= set(names)


def test_a_path_has_one_description(documents):
    paths = [re.sub(r'{\w+}', '{}', path) for path in documents('2.1')['paths']]
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize('operation', table.operations(), ids=lambda each: f'{each} {each.min}')
def test_every_operation_says_what_it_does(operation):
    assert re.fullmatch(r'[A-Z].*\.', operation.summary)


@pytest.mark.parametrize('controller', table.CONTROLLERS, ids=lambda each: each.__name__)
def test_every_resource_says_what_it_is(controller):
    assert controller.__doc__


def test_facts_of_an_operation(documents):
    old, new = (documents(version)['paths']['/flavors/{id}'] for version in ('2.54', '2.55'))
    assert 'put' not in old
    update = new['put']
    assert update['x-openstack-policy'] == 'os_compute_api:os-flavor-manage:update'
    assert (update['x-openstack-min-version'], update['x-openstack-max-version']) == ('2.55', str(MAX))
    assert update['tags'] == ['Flavors']
    assert {'200', '400', '401', '403', '404', '406', '415', '500'} <= update['responses'].keys()
    flavor = update['responses']['200']['content']['application/json']['schema']['properties']['flavor']
    assert 'description' in flavor['required']


def test_shapes_are_those_of_the_version(documents):
    def flavor(version):
        show = documents(version)['paths']['/flavors/{id}']['get']
        return show['responses']['200']['content']['application/json']['schema']['properties']['flavor']['properties']

    assert {'rxtx_factor'} == flavor('2.101').keys() - flavor('2.102').keys() - {'OS-FLV-DISABLED:disabled'}
    assert {'extra_specs'} == flavor('2.61').keys() - flavor('2.60').keys()


def test_parameters(documents):
    listing = documents(str(MAX))['paths']['/flavors']
    assert 'name' in {parameter['name'] for parameter in listing['get']['parameters']}
    [header] = listing['parameters']
    assert header == {'$ref': '#/components/parameters/version'}
    [_, access] = documents('2.1')['paths']['/flavors/{flavor_id}/os-flavor-access']['parameters']
    assert (access['name'], access['in'], access['required']) == ('flavor_id', 'path', True)


def test_actions_are_told_apart_by_their_key(documents):
    act = documents('2.1')['paths']['/flavors/{id}/action']['post']
    grant, revoke = actions(act)
    assert (grant['required'], revoke['required']) == (['addTenantAccess'], ['removeTenantAccess'])
    assert grant['x-openstack-policy'] == 'os_compute_api:os-flavor-access:add_tenant_access'
    assert grant['title'] == 'Grant a project access to a flavor that is not public.'


# ------------------------------------------------------------------ served


@pytest.fixture
def openapi(api):
    api.prefix, api.token = '/openapi', ''
    return api


def test_documents_are_served_without_a_token(openapi):
    answer = openapi.get('/2.61.json')
    assert (answer.status, answer.headers['Content-Type']) == (200, 'application/json')
    assert answer.json['info']['version'] == '2.61'
    assert openapi.get('/latest.json').json['info']['version'] == str(MAX)
    assert openapi.get('/2.61.json').text == answer.text


@pytest.mark.parametrize(
    ('path', 'status'),
    [
        ('/2.999.json', 404),
        ('/2.0.json', 404),
        ('/3.0.json', 404),
        ('/abc.json', 400),
        ('/2.01.json', 400),
        ('/2.1', 404),
        ('/2.1.yaml', 404),
        ('/', 404),
        ('/a/2.1.json', 404),
        ('/%ff', 404),
        ('/' + '9' * 1000 + '.json', 404),
    ],
)
def test_other_documents_do_not_exist(openapi, path, status):
    assert openapi.get(path).status == status


def test_documents_are_only_read(openapi):
    assert openapi.post('/2.1.json').status == 404
