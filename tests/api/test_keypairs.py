"""Key pairs, at the versions where the API changes."""

import base64
import hashlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from computeapi.context import Context

KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDB2NBh4GJPPUN1kXPMu8b633Xcv55WoKC3OkBjFAbzJ bob@home'
FINGERPRINT = '2f:7f:97:21:76:a4:0f:38:c4:fe:d8:b4:6a:39:72:30'
BOB, ALICE = 'bob:project', 'alice:project'


def pair(**kwargs):
    return {'keypair': {'name': 'mine', 'public_key': KEY} | kwargs}


def names(answer):
    return [each['keypair']['name'] for each in answer.json['keypairs']]


def fault(answer):
    (body,) = answer.json.values()
    return body['message']


@pytest.mark.parametrize('version', ['2.1', '2.2', '2.10', '2.92'])
def test_import(api, sample, shape, version):
    made = api.post('/os-keypairs', pair(), version, as_=BOB)
    assert made.status == (200 if version == '2.1' else 201)
    assert made.json['keypair']['fingerprint'] == FINGERPRINT
    assert made.json['keypair']['public_key'] == KEY
    assert made.json['keypair']['user_id'] == 'bob'
    folder = '' if version == '2.1' else f'v{version}/'
    assert shape(made.json) == shape(sample(f'os-keypairs/{folder}keypairs-import-post-resp.json'))


@pytest.mark.parametrize('version', ['2.1', '2.2', '2.35'])
def test_generate(api, sample, shape, version):
    made = api.post('/os-keypairs', {'keypair': {'name': 'mine'}}, version, as_=BOB).json
    folder = '' if version == '2.1' else f'v{version}/'
    assert shape(made) == shape(sample(f'os-keypairs/{folder}keypairs-post-resp.json'))
    private = serialization.load_pem_private_key(made['keypair']['private_key'].encode(), None)
    kind, blob, _ = made['keypair']['public_key'].split()
    public = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    assert public.decode() == f'{kind} {blob}'
    assert made['keypair']['fingerprint'] == hashlib.md5(base64.b64decode(blob)).digest().hex(':')
    assert 'private_key' not in api.get('/os-keypairs/mine', version, as_=BOB).json['keypair']


def test_generate_a_certificate(api):
    made = api.post('/os-keypairs', {'keypair': {'name': 'mine', 'type': 'x509'}}, '2.2', as_=BOB).json['keypair']
    certificate = x509.load_pem_x509_certificate(made['public_key'].encode())
    private = serialization.load_pem_private_key(made['private_key'].encode(), None)
    assert certificate.public_key() == private.public_key()
    assert certificate.fingerprint(hashes.SHA1()).hex(':') == made['fingerprint']
    assert certificate.subject.rfc4514_string() == 'CN=bob'
    again = api.post('/os-keypairs', pair(name='again', type='x509', public_key=made['public_key']), '2.92', as_=BOB)
    assert (again.status, again.json['keypair']['fingerprint']) == (201, made['fingerprint'])


def test_from_2_92_keys_are_only_imported(api):
    answer = api.post('/os-keypairs', {'keypair': {'name': 'mine'}}, '2.92', as_=BOB)
    assert (answer.status, 'public_key' in fault(answer)) == (400, True)


@pytest.mark.parametrize(
    ('facts', 'version', 'text'),
    [
        ({'public_key': 'ssh-rsa notakey'}, '2.1', 'Keypair data is invalid: failed to generate fingerprint'),
        ({'public_key': ''}, '2.92', 'Keypair data is invalid: failed to generate fingerprint'),
        ({'type': 'x509'}, '2.2', 'Keypair data is invalid: failed to generate X509 fingerprint. Error message: '),
        ({'type': 'dsa'}, '2.2', 'Invalid input for field/attribute type.'),
        ({'type': 'ssh'}, '2.1', 'Invalid input for field/attribute keypair.'),
        ({'user_id': 'alice'}, '2.9', 'Invalid input for field/attribute keypair.'),
        ({'user_id': 'x' * 256}, '2.10', 'Invalid input for field/attribute user_id.'),
        ({'name': ''}, '2.1', 'Invalid input for field/attribute name.'),
        ({'name': ' mine'}, '2.1', "An invalid 'name' value was provided."),
        ({'name': 'x' * 256}, '2.1', 'Invalid input for field/attribute name.'),
        ({'name': 'a@b.c'}, '2.91', 'Invalid input for field/attribute name.'),
        ({'name': 'a/b'}, '2.92', 'Invalid input for field/attribute name.'),
        ({'name': 'é'}, '2.92', 'Invalid input for field/attribute name.'),
    ],
)
def test_what_is_refused(api, facts, version, text):
    answer = api.post('/os-keypairs', pair(**facts), version)
    assert answer.status == 400
    assert fault(answer).startswith(text)


def test_names_from_2_92(api):
    name = 'me.and.myself@this.nice.domain.com mooh.'
    assert api.post('/os-keypairs', pair(name=name), '2.92').json['keypair']['name'] == name


def test_v2_strips_names_and_ignores_what_it_does_not_know(legacy):
    made = legacy.post('/os-keypairs', pair(name=' mine ', type='x509', user_id=5))
    assert (made.status, made.json['keypair']['name'], made.json['keypair']['user_id']) == (200, 'mine', 'admin')
    assert legacy.delete('/os-keypairs/mine').status == 202
    assert legacy.post('/os-keypairs', pair(name='mine@home')).status == 200


def test_a_name_is_taken_once_by_a_user(api):
    api.post('/os-keypairs', pair(), as_=BOB)
    again = api.post('/os-keypairs', pair(), as_=BOB)
    assert (again.status, fault(again)) == (409, "Key pair 'mine' already exists.")
    assert api.post('/os-keypairs', pair(name='Mine'), as_=BOB).status == 200
    assert api.post('/os-keypairs', pair(), as_=ALICE).status == 200


def test_the_quota(api, service):
    service.cloud.quotas.set_limits('project', {'key_pairs': 1})
    api.post('/os-keypairs', pair(), as_=BOB)
    more = api.post('/os-keypairs', pair(name='other'), as_=BOB)
    assert (more.status, fault(more)) == (403, 'Quota exceeded, too many key pairs.')
    assert api.post('/os-keypairs', pair(name='bad', public_key='ssh-rsa junk'), as_=BOB).status == 403
    assert api.post('/os-keypairs', pair(), as_=ALICE).status == 200


@pytest.mark.parametrize('version', ['2.1', '2.2', '2.10'])
def test_show(api, sample, shape, version):
    api.post('/os-keypairs', pair(), as_=BOB)
    shown = api.get('/os-keypairs/mine', version, as_=BOB)
    folder = '' if version == '2.1' else f'v{version}/'
    assert shape(shown.json) == shape(sample(f'os-keypairs/{folder}keypairs-get-resp.json'))
    missing = api.get('/os-keypairs/nothing', version, as_=BOB)
    assert (missing.status, fault(missing)) == (404, 'Keypair nothing not found for user bob')


@pytest.mark.parametrize(('version', 'status'), [('2.1', 202), ('2.2', 204)])
def test_delete(api, version, status):
    api.post('/os-keypairs', pair(), as_=BOB)
    gone = api.delete('/os-keypairs/mine', version, as_=BOB)
    assert (gone.status, gone.text) == (status, '')
    assert api.delete('/os-keypairs/mine', version, as_=BOB).status == 404


def test_an_administrator_names_the_user_from_2_10(api):
    assert api.post('/os-keypairs', pair(user_id='bob'), '2.10').json['keypair']['user_id'] == 'bob'
    assert names(api.get('/os-keypairs?user_id=bob', '2.10')) == ['mine']
    assert names(api.get('/os-keypairs?user_id=bob&user_id=alice', '2.10')) == ['mine']
    assert names(api.get('/os-keypairs?user_id=bob', '2.9')) == []
    assert api.get('/os-keypairs/mine?user_id=bob', '2.9').status == 404
    assert api.get('/os-keypairs/mine?user_id=bob', '2.10').status == 200
    assert api.delete('/os-keypairs/mine?user_id=bob', '2.10').status == 204
    assert names(api.get('/os-keypairs?user_id=', '2.10', as_=BOB)) == []


@pytest.mark.parametrize(
    ('method', 'path', 'body', 'rule'),
    [
        ('GET', '/os-keypairs?user_id=alice', None, 'index'),
        ('GET', '/os-keypairs/mine?user_id=alice', None, 'show'),
        ('DELETE', '/os-keypairs/mine?user_id=alice', None, 'delete'),
        ('POST', '/os-keypairs', pair(user_id='alice'), 'create'),
    ],
)
def test_others_do_not(api, method, path, body, rule):
    answer = api.request(method, path, '2.10', body, as_=BOB)
    assert answer.status == 403
    assert fault(answer) == f"Policy doesn't allow os_compute_api:os-keypairs:{rule} to be performed."


def test_a_list_has_pages_from_2_35(api, sample, shape):
    for name in 'cab':
        api.post('/os-keypairs', pair(name=name), as_=BOB)
    for version, folder in [('2.1', ''), ('2.2', 'v2.2/'), ('2.34', 'v2.10/')]:
        whole = api.get('/os-keypairs?limit=1&marker=nothing', version, as_=BOB)
        assert names(whole) == ['a', 'b', 'c']
        assert shape(whole.json) == shape(sample(f'os-keypairs/{folder}keypairs-list-resp.json'))
    first = api.get('/os-keypairs?limit=2', '2.35', as_=BOB)
    assert names(first) == ['a', 'b']
    assert shape(first.json) == shape(sample('os-keypairs/v2.35/keypairs-list-resp.json'))
    assert first.json['keypairs_links'][0]['href'].endswith('/v2.1/os-keypairs?limit=2&marker=b')
    rest = api.get('/os-keypairs?limit=2&marker=b', '2.35', as_=BOB)
    assert names(rest) == ['c']
    assert shape(rest.json) == shape(sample('os-keypairs/v2.35/keypairs-list-user1-resp.json'))
    unknown = api.get('/os-keypairs?marker=nothing', '2.35', as_=BOB)
    assert (unknown.status, fault(unknown)) == (400, 'Marker nothing could not be found.')
    assert api.get('/os-keypairs?limit=abc', '2.35', as_=BOB).status == 400
    assert api.get('/os-keypairs?limit=0', '2.35', as_=BOB).json == {'keypairs': []}


def test_unknown_parameters_are_refused_from_2_75(api):
    for path in ('/os-keypairs?x=1', '/os-keypairs/mine?x=1'):
        assert api.get(path, '2.74').status in (200, 404)
        assert api.get(path, '2.75').status == 400
    assert api.delete('/os-keypairs/mine?x=1', '2.75').status == 400


def test_a_private_key_does_not_show_in_a_record_that_is_printed(service):
    made = service.cloud.keypairs.generate(Context(user_id='bob', project_id='project'), 'bob', 'mine', 'ssh')
    assert made.private_key and made.private_key not in repr(made)
