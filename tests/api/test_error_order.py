"""The precedence of errors when a request is wrong in several ways.

A story starts with a request that is wrong in every way. Each row has the error of that request, and what is corrected
next, so that the rows are in the order of precedence.
"""

import pytest

from computeapi.backends.identity.local.roles import Target

JSON = {'Content-Type': 'application/json'}
XML = {'Content-Type': 'application/xml'}
FLAVOR = {
    'flavor': {'id': 'small', 'name': 'small', 'ram': 64, 'vcpus': 1, 'disk': 1, 'os-flavor-access:is_public': False}
}

STORIES = {
    'update': (
        {'method': 'PATCH', 'path': '/other/no/such/path', 'version': 'abc', 'headers': XML, 'raw': b'x' * 120000},
        [
            (413, 'title', {'raw': b'{'}),
            (401, 'error', {'as_': 'member'}),
            (404, 'title', {'path': '/other/flavors/nothing'}),
            (404, 'title', {'method': 'PUT'}),
            (400, 'API Version String', {'version': '2.999'}),
            (406, 'Version 2.999 is not supported', {'version': '2.54'}),
            (415, 'Unsupported Content-Type', {'headers': JSON}),
            (400, 'Malformed request body', {'raw': b'{"flavor": {}}'}),
            (400, 'Malformed request URL', {'path': '/own/flavors/nothing'}),
            (404, 'The resource could not be found.', {'version': '2.55'}),
            (400, 'Invalid input for field/attribute flavor', {'raw': b'{"flavor": {"description": "x"}}'}),
            (403, "Policy doesn't allow", {'as_': 'admin'}),
            (404, 'Flavor nothing could not be found.', {'path': '/own/flavors/small'}),
            (200, 'flavor', {}),
        ],
    ),
    'action': (
        {'method': 'POST', 'path': '/other/flavors/nothing/action', 'version': 'abc', 'headers': XML, 'raw': b'{'},
        [
            (401, 'error', {'as_': 'member'}),
            (400, 'API Version String', {'version': '2.999'}),
            (406, 'Version 2.999 is not supported', {'version': '2.7'}),
            (415, 'Unsupported Content-Type', {'headers': JSON}),
            (400, 'Malformed request body', {'raw': b'{"a": 1, "b": 2}'}),
            (400, 'Malformed request body', {'raw': b'{"dance": null}'}),
            (400, 'There is no such action: dance', {'raw': b'{"addTenantAccess": {}}'}),
            (400, 'Malformed request URL', {'path': '/own/flavors/nothing/action'}),
            (400, 'Invalid input for field/attribute addT', {'raw': b'{"addTenantAccess": {"tenant": "x"}}'}),
            (403, "Policy doesn't allow", {'as_': 'admin'}),
            (400, 'Project ID x is not a valid project.', {'raw': b'{"addTenantAccess": {"tenant": "{own}"}}'}),
            (404, 'Flavor nothing could not be found.', {'path': '/own/flavors/small/action'}),
            (200, 'flavor_access', {}),
        ],
    ),
    'values': (
        {'method': 'GET', 'path': '/own/os-hypervisors/detail?limit=', 'version': '2.53', 'as_': 'member'},
        [
            (400, 'Invalid input for query parameters limit', {'path': '/own/os-hypervisors/detail?limit=1&limit=1'}),
            (400, 'is too long', {'path': '/own/os-hypervisors/detail?hypervisor_hostname_pattern=a%2Fb'}),
            (400, 'does not match', {'path': '/own/os-migrations?limit=1&limit=2', 'version': '2.59'}),
            (400, 'is too long', {'path': '/own/os-hypervisors/detail', 'version': '2.53'}),
            (403, "Policy doesn't allow", {'as_': 'admin'}),
            (200, 'hypervisors', {}),
        ],
    ),
    'query': (
        {'method': 'GET', 'path': '/own/flavors/nothing/os-flavor-access?x=1', 'version': '2.102', 'as_': 'member'},
        [
            (400, "Additional properties are not allowed ('x' was unexpected)", {'version': '2.101'}),
            (403, "Policy doesn't allow", {'as_': 'admin'}),
            (404, 'Flavor nothing could not be found.', {'path': '/own/flavors/small/os-flavor-access'}),
            (200, 'flavor_access', {}),
        ],
    ),
}  # fmt: skip


@pytest.fixture
def conf(conf):
    conf.set_override('auth_strategy', 'local', 'api')
    conf.set_override('bcrypt_cost', 4, 'identity')
    return conf


@pytest.fixture
def own(service):
    """The ID of a project with a member and an administrator."""
    identity = service.identity
    identity.populate('secret', 'secret')
    [project], [role] = identity.projects.list(name='demo'), identity.roles.list(name='admin')
    [admin] = identity.users.list(name='admin')
    identity.grants.add(admin.id, Target('project', project.id), role.id)
    return project.id


@pytest.fixture
def tokens(service, own):
    def issue(name):
        login = service.identity.logins.with_password({'name': name, 'domain': {'id': 'default'}}, 'secret')
        return service.identity.tokens.issue(login, {'project': {'id': own}})

    return {'admin': issue('admin'), 'member': issue('demo')}


@pytest.fixture
def send(api, own, tokens):
    api.token = ''
    api.post('/flavors', FLAVOR, as_=tokens['admin'])

    def send(method, path, as_=None, raw=None, **more):
        path = path.replace('/own/', f'/{own}/').replace('/other/', f'/{own[::-1]}/')
        raw = raw and raw.replace(b'{own}', own.encode())
        return api.request(method, path, as_=tokens.get(as_), raw=raw, **more)

    return send


@pytest.mark.parametrize('story', STORIES)
def test_the_earliest_error_wins(send, story):
    request, rows = STORIES[story]
    for status, text, correction in rows:
        answer = send(**request)
        assert (answer.status, text in answer.text) == (status, True), (request, answer)
        request = request | correction


FIELDS = {
    'POST /servers server': 'name imageRef flavorRef adminPass metadata networks OS-DCF:diskConfig accessIPv4 '
    'accessIPv6 availability_zone block_device_mapping block_device_mapping_v2 config_drive key_name min_count '
    'max_count return_reservation_id security_groups user_data description tags trusted_image_certificates host '
    'hypervisor_hostname hostname',
    'POST /servers/x/action rebuild': 'name imageRef adminPass metadata preserve_ephemeral OS-DCF:diskConfig '
    'accessIPv4 accessIPv6 description key_name user_data trusted_image_certificates hostname',
    'PUT /servers/x server': 'name OS-DCF:diskConfig accessIPv4 accessIPv6 description hostname '
    'pinned_availability_zone',
    'POST /os-keypairs keypair': 'name type public_key user_id',
    'POST /os-volumes volume': 'volume_type metadata snapshot_id size availability_zone display_name '
    'display_description',
}


@pytest.mark.parametrize('asked', FIELDS)
def test_the_first_of_several_wrong_fields_is_named(send, asked):
    method, path, about = asked.split()
    fields = dict.fromkeys(FIELDS[asked].split(), 1.5)
    version = '2.1' if about == 'volume' else '2.104'
    for name in list(fields):
        answer = send(method, path, as_='admin', version=version, body={about: fields})
        assert f'field/attribute {name}.' in answer.text
        del fields[name]
