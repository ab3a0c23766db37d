"""Flavors, at the versions where the API changes."""

import re

import pytest

MEMBER = 'bob:project'


def flavor(**kwargs):
    return {'flavor': {'id': 'small', 'name': 'small', 'ram': 64, 'vcpus': 1, 'disk': 1} | kwargs}


@pytest.fixture
def small(api):
    return api.post('/flavors', flavor()).json['flavor']


def test_fields_come_and_go_with_the_version(api, small):
    first = api.get('/flavors/small').json['flavor']
    assert first['swap'] == '' and first['rxtx_factor'] == 1.0
    assert {'description', 'extra_specs'}.isdisjoint(first)
    assert 'description' in api.get('/flavors/small', '2.55').json['flavor']
    assert api.get('/flavors/small', '2.61').json['flavor']['extra_specs'] == {}
    assert api.get('/flavors/small', '2.75').json['flavor']['swap'] == 0
    last = api.get('/flavors/small', '2.102').json['flavor']
    assert {'rxtx_factor', 'OS-FLV-DISABLED:disabled'}.isdisjoint(last)


@pytest.mark.parametrize(
    ('facts', 'field'),
    [
        ({'ram': -1}, 'ram'),
        ({'ram': 'abc'}, 'ram'),
        ({'vcpus': 0}, 'vcpus'),
        ({'disk': '1.5'}, 'disk'),
        ({'id': ' a'}, 'id'),
        ({'swap': ''}, 'swap'),
        ({'rxtx_factor': 0}, 'rxtx_factor'),
        ({'rxtx_factor': '0.0'}, "'rxtx_factor' argument must be a float"),
        ({'os-flavor-access:is_public': 1}, 'os-flavor-access:is_public'),
        ({'unknown': 1}, 'unknown'),
    ],
)
def test_a_bad_field_is_named(api, facts, field):
    answer = api.post('/flavors', flavor(**facts))
    assert answer.status == 400
    assert field in answer.json['badRequest']['message']


def test_v2_strips_names_and_ignores_unknown_keys(legacy, api):
    answer = legacy.post('/flavors', flavor(name=' small ', unknown=1))
    assert (answer.status, answer.json['flavor']['name']) == (200, 'small')
    assert api.post('/flavors', flavor(id='other', name=' other ')).status == 400


def test_the_same_id_or_name_is_a_conflict(api, small):
    by_id = api.post('/flavors', flavor(name='other'))
    assert by_id.json['conflictingRequest']['message'] == 'Flavor with ID small already exists.'
    by_name = api.post('/flavors', flavor(id='other'))
    assert by_name.json['conflictingRequest']['message'] == 'Flavor with name small already exists.'


def test_only_administrators_create(api):
    answer = api.post('/flavors', flavor(), as_=MEMBER)
    assert answer.json['forbidden']['message'] == (
        "Policy doesn't allow os_compute_api:os-flavor-manage:create to be performed."
    )


def test_pages(api):
    for name in 'cab':
        assert api.post('/flavors', flavor(id=name, name=name)).status == 200
    first = api.get('/flavors?limit=2').json
    assert [each['id'] for each in first['flavors']] == ['a', 'b']
    (link,) = first['flavors_links']
    assert link['href'].endswith('/v2.1/flavors?limit=2&marker=b')
    rest = api.get('/flavors?limit=2&marker=b').json
    assert [each['id'] for each in rest['flavors']] == ['c'] and 'flavors_links' not in rest
    assert api.get('/flavors?marker=nothing').status == 400
    assert (
        api.post('/flavors', flavor(id='b2', name='b2', ram=8, **{'os-flavor-access:is_public': False})).status == 200
    )
    assert [each['id'] for each in api.get('/flavors?minRam=16&marker=b2').json['flavors']] == ['c']
    assert api.get('/flavors?marker=b2', as_=MEMBER).status == 400
    backwards = api.get('/flavors?sort_key=name&sort_dir=desc').json['flavors']
    assert [each['id'] for each in backwards] == ['c', 'b', 'a']


def test_no_flavor_has_a_weight(api):
    for name, vcpus in (('b', 2), ('a', 1)):
        api.post('/flavors', flavor(id=name, name=name, vcpus=vcpus))
    listed = api.get('/flavors?sort_key=vcpu_weight').json['flavors']
    assert [each['id'] for each in listed] == ['b', 'a']


def test_unknown_parameters_are_dropped_then_refused(api, small):
    assert api.get('/flavors?x=1&limit=1', '2.74').json['flavors_links'][0]['href'].count('x=1') == 0
    assert api.get('/flavors?x=1', '2.75').status == 400


def test_access_to_a_private_flavor(api):
    api.post('/flavors', flavor(**{'os-flavor-access:is_public': False}))
    assert api.get('/flavors/small', as_=MEMBER).status == 404
    grant = {'addTenantAccess': {'tenant': 'project'}}
    assert api.post('/flavors/small/action', grant).json == {
        'flavor_access': [{'flavor_id': 'small', 'tenant_id': 'project'}]
    }
    assert re.fullmatch(
        r'Flavor access already exists for flavor \d+ and project project combination\.',
        api.post('/flavors/small/action', grant).json['conflictingRequest']['message'],
    )
    assert api.get('/flavors/small', as_=MEMBER).status == 200
    assert [each['id'] for each in api.get('/flavors', as_=MEMBER).json['flavors']] == ['small']
    assert api.get('/flavors/small/os-flavor-access').json['flavor_access'][0]['tenant_id'] == 'project'
    revoke = {'removeTenantAccess': {'tenant': 'project'}}
    assert api.post('/flavors/small/action', revoke).json == {'flavor_access': []}
    assert re.fullmatch(
        r'Flavor access not found for \d+ / project combination\.',
        api.post('/flavors/small/action', revoke).json['itemNotFound']['message'],
    )
    assert api.get('/flavors/small', as_=MEMBER).status == 404


def test_a_project_that_is_gone_loses_the_use_of_a_flavor(api, small):
    answer = api.post('/flavors/small/action', {'removeTenantAccess': {'tenant': 'gone'}})
    assert re.fullmatch(r'Flavor access not found for \d+ / gone combination\.', answer.json['itemNotFound']['message'])


@pytest.mark.parametrize(
    ('text', 'found'),
    [('t', ['small']), ('YES', ['small']), ('f', ['hidden']), ('0', ['hidden']), ('None', ['hidden', 'small'])],
)
def test_flavors_that_are_public_or_not(api, small, text, found):
    api.post('/flavors', flavor(id='hidden', name='hidden', **{'os-flavor-access:is_public': False}))
    assert sorted(each['id'] for each in api.get(f'/flavors?is_public={text}').json['flavors']) == found
    assert api.get(f'/flavors?is_public={text}x').status == 400


def test_the_usual_list_of_an_administrator_has_the_private_flavors_of_the_project(api, small):
    api.post('/flavors', flavor(id='hidden', name='hidden', **{'os-flavor-access:is_public': False}))
    api.post('/flavors/hidden/action', {'addTenantAccess': {'tenant': 'project'}})
    for administrator, found in (('admin:project', ['hidden', 'small']), ('admin:other', ['small'])):
        for query in ('', '?is_public=true'):
            listed = api.get(f'/flavors{query}', as_=administrator).json['flavors']
            assert [each['id'] for each in listed] == found


@pytest.mark.parametrize(
    ('name', 'found'),
    [
        ('m1', ['m1.large', 'm1.small', 'xm1']),
        ('^m1', ['m1.large', 'm1.small']),
        ('^m1%5C.(large%7Cmedium)$', ['m1.large']),
        ('[0-9]$', ['xm1']),
        ('100%25', []),
    ],
)
def test_flavors_are_searched_for_by_regular_expressions(api, name, found):
    for each in ('m1.large', 'm1.small', 'xm1'):
        api.post('/flavors', flavor(id=each, name=each))
    listed = api.get(f'/flavors?name={name}', '2.102').json['flavors']
    assert [each['id'] for each in listed] == found
    assert [each['id'] for each in api.get(f'/flavors?name={name}&limit=1', '2.102').json['flavors']] == found[:1]


@pytest.mark.parametrize('name', ['(', '(a%2B)%7B999%7D%7B999%7D'])
def test_a_regular_expression_that_cannot_be_evaluated_is_refused(api, name):
    assert api.get(f'/flavors?name={name}', '2.102').status == 400


def test_access_to_a_public_flavor_is_refused_from_2_7(api, small):
    grant = {'addTenantAccess': {'tenant': 'project'}}
    assert api.post('/flavors/small/action', grant, '2.7').status == 409
    assert api.post('/flavors/small/action', grant, '2.6').status == 200


def test_extra_specs(api, small):
    specs = '/flavors/small/os-extra_specs'
    assert api.post(specs, {'extra_specs': {'hw:cpu_policy': 'shared', 'own': '1'}}).status == 200
    assert api.get(specs, as_=MEMBER).json == {'extra_specs': {'hw:cpu_policy': 'shared', 'own': '1'}}
    assert api.put(f'{specs}/own', {'own': '2'}).json == {'own': '2'}
    assert api.put(f'{specs}/own', {'other': '2'}).status == 400
    assert api.get(f'{specs}/own').json == {'own': '2'}
    assert api.put(f'{specs}/own', {'own': 2}).json == {'own': 2}
    assert api.delete(f'{specs}/own').status == 200
    assert api.get(f'{specs}/own').status == 404


def test_known_extra_specs_are_validated_from_2_86(api, small):
    wrong = {'extra_specs': {'hw:cpu_policy': 'sometimes'}}
    assert api.post('/flavors/small/os-extra_specs', wrong, '2.85').status == 200
    assert api.post('/flavors/small/os-extra_specs', wrong, '2.86').status == 400
    unknown = {'extra_specs': {'hw:nothing_of_the_kind': '1'}}
    assert api.post('/flavors/small/os-extra_specs', unknown, '2.86').status == 400


@pytest.mark.parametrize(
    ('key', 'taken', 'refused'),
    [
        ('hw:cpu_cores', ['1', 2, '+1'], ['0', 1.0, 'x', '']),
        ('hw:boot_menu', ['true', 'y', '0'], ['maybe', '2']),
        ('hw:numa_cpus.0', ['0', '0-3,^2'], ['-1', '0-', 'all']),
        ('hw:pmem', ['a,b', 'a,'], ['', ',a']),
        ('os:secure_boot', ['required'], ['optional']),
        ('quota:cpu_quota', ['-1', -2], ['1.5']),
        ('resources_GPU1:VGPU', ['0', -1], ['x']),
        ('resources:GPU', [], ['1']),
        ('trait1:HW_CPU_X86_AVX2', ['required', 'forbidden'], ['true']),
        ('trait:CUSTOM_FAST', ['required'], ['x']),
        ('trait:HW_TYPO', [], ['required']),
        ('trait:HW_CPU_X86_AVX', ['required'], []),
        ('capabilities:cpu_info:features', ['<in> aes'], []),
        ('capabilities:colour', [], ['red']),
        ('hide_hypervisor_id', ['true'], ['x']),
        ('own:thing', ['', 'x', 1.5], []),
    ],
)
def test_values_that_extra_specs_take(api, small, key, taken, refused):
    path = '/flavors/small/os-extra_specs'
    statuses = [api.post(path, {'extra_specs': {key: value}}, '2.86').status for value in (*taken, *refused)]
    assert statuses == [200] * len(taken) + [400] * len(refused)


def test_numbers_come_back_as_they_were_sent_and_are_kept_as_text(api, small):
    path = '/flavors/small/os-extra_specs'
    assert api.post(path, {'extra_specs': {'a': 1, 'b': 1.5}}).json == {'extra_specs': {'a': 1, 'b': 1.5}}
    assert api.put(f'{path}/a', {'a': 2}).json == {'a': 2}
    assert api.get(path).json == {'extra_specs': {'a': '2', 'b': '1.5'}}


def test_update_and_delete(api, small):
    body = {'flavor': {'description': 'for tests'}}
    assert api.put('/flavors/small', body, '2.54').status == 404
    assert api.put('/flavors/small', body, '2.55').json['flavor']['description'] == 'for tests'
    assert api.delete('/flavors/small').status == 202
    assert api.get('/flavors/small').status == 404
