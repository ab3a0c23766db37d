"""Version negotiation, and the version documents."""

import pytest

from computeapi.versions import MAX

STANDARD, LEGACY = 'OpenStack-API-Version', 'X-OpenStack-Nova-API-Version'
VENDOR_JSON = 'application/vnd.openstack.compute+json'


def ask(client, **headers):
    return client.get('/flavors', headers={name.replace('_', '-'): value for name, value in headers.items()})


def answered(answer):
    """The version in the response headers; None if there are none."""
    standard, legacy = answer.headers.get(STANDARD), answer.headers.get(LEGACY)
    assert standard == (legacy and f'compute {legacy}')
    assert answer.headers.getall('Vary') == ([STANDARD, LEGACY] if legacy else [])
    return legacy


@pytest.mark.parametrize(
    ('headers', 'version'),
    [
        ({}, '2.1'),
        ({STANDARD: 'compute 2.61'}, '2.61'),
        ({STANDARD: 'Compute   2.61 '}, '2.61'),
        ({STANDARD: 'compute latest'}, str(MAX)),
        ({STANDARD: 'identity 2.3, compute 2.55'}, '2.55'),
        ({STANDARD: 'compute 2.3, compute 2.61'}, '2.61'),
        ({STANDARD: 'compute 2.55, identity 3.10'}, '2.55'),
        ({STANDARD: 'identity 2.3'}, '2.1'),
        ({STANDARD: 'nova 2.61'}, '2.1'),
        ({STANDARD: '2.61'}, '2.1'),
        ({STANDARD: ''}, '2.1'),
        ({LEGACY: '2.61'}, '2.61'),
        ({LEGACY: 'latest'}, str(MAX)),
        ({LEGACY: '2.3, 2.61'}, '2.61'),
        ({STANDARD: 'compute 2.10', LEGACY: '2.61'}, '2.10'),
        ({STANDARD: 'compute 2.61', LEGACY: 'abc'}, '2.61'),
        ({STANDARD: 'identity 2.3', LEGACY: '2.55'}, '2.55'),
    ],
)
def test_both_headers_choose_the_version(api, headers, version):
    answer = ask(api, **headers)
    assert (answer.status, answered(answer)) == (200, version)


@pytest.mark.parametrize('text', ['abc', 'LATEST', '2.', '02.1', '2.01', '2.1.1', '2.1e1', '0.0', '2 1', '-2.1', '٢.١'])
@pytest.mark.parametrize('header', [STANDARD, LEGACY])
def test_a_malformed_version_is_a_bad_request_without_a_version(api, header, text):
    # WSGI represents the bytes of a header as Latin-1.
    text = text.encode().decode('latin-1')
    answer = ask(api, **{header: f'compute {text}' if header == STANDARD else text})
    assert (answer.status, answered(answer)) == (400, None)
    message = f'API Version String {text} is of invalid format. Must be of format MajorNum.MinorNum.'
    assert answer.json == {'badRequest': {'code': 400, 'message': message}}


def test_an_empty_legacy_header_is_malformed(api):
    assert ask(api, **{LEGACY: ''}).status == 400


def test_a_long_version_is_not_repeated_in_full(api):
    assert len(ask(api, **{LEGACY: '9' * 5000}).text) < 300


@pytest.mark.parametrize('text', ['2.0', '1.0', '3.0', str(MAX.next), '2.999', '2.' + '9' * 20])
def test_a_version_out_of_range_is_not_acceptable_and_echoed(api, text):
    answer = ask(api, **{STANDARD: f'compute {text}'})
    assert (answer.status, answered(answer)) == (406, text)
    message = f'Version {text} is not supported by the API. Minimum is 2.1 and maximum is {MAX}.'
    assert answer.json == {'computeFault': {'code': 406, 'message': message}}


def test_faults_carry_the_version_too(api):
    assert answered(api.get('/flavors/nothing', '2.61')) == '2.61'


def test_an_operation_outside_its_versions_is_not_found(api):
    answer = api.put('/flavors/x', {'flavor': {'description': 'x'}}, '2.54')
    assert answer.json == {'itemNotFound': {'code': 404, 'message': 'The resource could not be found.'}}
    assert answered(answer) == '2.54'


def test_a_path_that_does_not_exist_reads_no_version(api):
    for version in ('2.61', '2.999', 'abc'):
        answer = api.get('/nothing-here', version)
        assert (answer.status, answered(answer)) == (404, None)


@pytest.mark.parametrize('prefix', ['/v2', '/v1.1'])
@pytest.mark.parametrize('version', [None, '2.61', '2.999', 'abc', 'latest'])
def test_v2_reads_and_writes_no_version(api, prefix, version):
    api.prefix = prefix
    for path in ('/flavors', '', '/'):
        answer = api.get(path, version)
        assert (answer.status, answered(answer)) == (200, None)


def test_v2_is_the_first_version(legacy):
    flavor = {'flavor': {'id': 'a', 'name': 'a', 'ram': 1, 'vcpus': 1, 'disk': 1}}
    assert 'description' not in legacy.post('/flavors', flavor, '2.55').json['flavor']
    assert legacy.put('/flavors/a', {'flavor': {'description': 'x'}}, '2.55').status == 404


# ------------------------------------------------------------------ documents


@pytest.fixture
def root(api):
    """A client for paths without a version, and without a token."""
    api.prefix, api.token = '', ''
    return api


def link(rel, href, **more):
    return {'rel': rel, 'href': f'http://localhost{href}', **more}


V20 = {'id': 'v2.0', 'status': 'DEPRECATED', 'version': '', 'min_version': '', 'updated': '2025-07-04T12:00:00Z'}
V21 = {
    'id': 'v2.1',
    'status': 'CURRENT',
    'version': str(MAX),
    'min_version': '2.1',
    'updated': '2013-07-23T11:33:21Z',
}


@pytest.mark.parametrize('method', ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS'])
@pytest.mark.parametrize('path', ['/', '', '/?a=b'])
def test_the_root_lists_the_versions(root, method, path):
    answer = root.request(method, path, 'abc')
    assert (answer.status, answered(answer)) == (200, None)
    assert answer.headers['Content-Type'] == 'application/json'
    assert answer.headers['x-openstack-request-id'] == answer.headers['x-compute-request-id']
    assert answer.json == {
        'versions': [V20 | {'links': [link('self', '/v2/')]}, V21 | {'links': [link('self', '/v2.1/')]}]
    }


@pytest.mark.parametrize('method', ['GET', 'POST', 'PUT', 'DELETE'])
@pytest.mark.parametrize('path', ['/v2.1', '/v2.1/'])
def test_the_document_of_v2_1(root, method, path):
    answer = root.request(method, path, '2.10')
    assert (answer.status, answered(answer)) == (200, '2.10')
    assert answer.json == {
        'version': V21
        | {
            'links': [
                link('self', '/v2.1/'),
                {'rel': 'describedby', 'type': 'text/html', 'href': 'http://docs.openstack.org/'},
            ],
            'media-types': [{'base': 'application/json', 'type': f'{VENDOR_JSON};version=2.1'}],
        }
    }
    assert answer.headers['x-openstack-request-id']


@pytest.mark.parametrize('path', ['/v2', '/v2/'])
def test_the_document_of_v2(root, path):
    answer = root.get(path)
    assert answer.json['version'] | V20 == answer.json['version']
    assert answer.json['version']['links'][0] == link('self', '/v2/')
    assert answer.json['version']['media-types'][0]['type'] == f'{VENDOR_JSON};version=2'


def test_the_document_of_v2_1_refuses_versions_as_any_resource_does(root):
    assert root.get('/v2.1/', 'latest').headers[LEGACY] == str(MAX)
    assert root.get('/v2.1/', 'abc').status == 400
    refused = root.get('/v2.1', '2.999')
    assert (refused.status, answered(refused)) == (406, '2.999')


@pytest.mark.parametrize('method', ['GET', 'DELETE', 'POST'])
@pytest.mark.parametrize('path', ['/v3', '/anything/at/all', '/v2.12/servers'])
def test_other_paths_offer_choices(root, method, path):
    answer = root.request(method, path)
    assert (answer.status, answered(answer)) == (300, None)
    old, new = answer.json['choices']
    assert new == {
        'id': 'v2.1',
        'status': 'CURRENT',
        'links': [link('self', f'/v2.1{path}')],
        'media-types': [{'base': 'application/json', 'type': f'{VENDOR_JSON};version=2.1'}],
    }
    assert (old['id'], old['links']) == ('v2.0', [link('self', f'/v2{path}')])


def test_choices_lead_to_paths_that_are_no_text(root):
    answer = root.get('/%ff/%C3%A9')
    assert [each['links'] for each in answer.json['choices']] == [
        [link('self', '/v2/%FF/%C3%A9')],
        [link('self', '/v2.1/%FF/%C3%A9')],
    ]


@pytest.mark.parametrize('header', ['Accept', 'Content-Type'])
def test_a_media_type_may_name_the_version(root, header):
    assert root.get('/', headers={header: f'{VENDOR_JSON};version=2.1'}).json['version']['id'] == 'v2.1'
    assert root.get('/', headers={header: f'{VENDOR_JSON};version=2'}).json['version']['id'] == 'v2.0'
    assert 'versions' in root.get('/', headers={header: f'{VENDOR_JSON};version=9'}).json


def test_versions_for_callers_with_a_token(api, legacy):
    assert api.get('/versions/v2.1').json['version']['id'] == 'v2.1'
    assert api.get('/versions/v2.0').json['version']['id'] == 'v2.0'
    assert api.get('/versions/v3.0').status == 404
    assert legacy.get('/versions/v2.1').json['version']['id'] == 'v2.0'


# ------------------------------------------------------------------ project and media type


def test_the_project_may_stand_in_the_url(api):
    api.post('/flavors', {'flavor': {'id': 'a', 'name': 'a', 'ram': 1, 'vcpus': 1, 'disk': 1}})
    flavor = api.get('/ab-12/flavors/a', as_='bob:ab-12').json['flavor']
    assert flavor['links'] == [link('self', '/v2.1/ab-12/flavors/a'), link('bookmark', '/ab-12/flavors/a')]
    assert api.get('/ab-12/', as_='bob:ab-12').json['version']['id'] == 'v2.1'
    assert api.get('/not-hexadecimal/flavors').status == 404


def test_the_project_in_the_url_must_be_that_of_the_caller(api):
    answer = api.get('/ab-12/flavors', as_='bob:cd-34')
    message = "Malformed request URL: URL's project_id 'ab-12' doesn't match Context's project_id 'cd-34'"
    assert answer.json == {'badRequest': {'code': 400, 'message': message}}


@pytest.mark.parametrize(
    ('accept', 'given'),
    [
        ('', 'application/json'),
        ('*/*', 'application/json'),
        ('application/xml', 'application/json'),
        (VENDOR_JSON, VENDOR_JSON),
        (f'{VENDOR_JSON};version=2.1', VENDOR_JSON),
    ],
)
def test_media_types_of_answers(api, accept, given):
    assert api.get('/flavors', headers={'Accept': accept}).headers['Content-Type'] == given


@pytest.fixture
def prefixed(conf):
    conf.set_override('compute_link_prefix', 'https://cloud.example.org/compute/', 'api')


def test_links_start_with_the_configured_prefix(prefixed, api):
    for path in ('', '/', '/ab-12/'):
        document = api.get(path, as_='bob:ab-12').json['version']
        assert document['links'][0]['href'] == 'https://cloud.example.org/compute/v2.1/'
    api.post('/flavors', {'flavor': {'id': 'a', 'name': 'a', 'ram': 1, 'vcpus': 1, 'disk': 1}})
    links = api.get('/flavors/a').json['flavor']['links']
    assert links[1]['href'] == 'https://cloud.example.org/compute/flavors/a'
