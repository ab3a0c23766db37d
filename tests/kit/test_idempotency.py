"""A client whose connection is cut repeats its POST with the same Idempotency-Key."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.kit.conftest import HTTP


@pytest.fixture
def key():
    return {'Idempotency-Key': f'"{uuid.uuid4()}"'}


def wanted(http, **kwargs):
    [image] = http.get('/image/v2/images').json()['images']
    return {'server': {'name': 'web', 'flavorRef': '1', 'imageRef': image['id'], 'networks': 'none', **kwargs}}


@pytest.mark.parametrize(('cut', 'status'), [('after', None), ('within', 202)])
def test_a_connection_that_is_cut_after_the_work(cloud, http, key, cut, status):
    request = wanted(http)
    with cloud.faults.add(operation='POST /servers', cut=cut, count=1), pytest.raises(requests.RequestException):
        http.post('/v2.1/servers', request, headers=key)
    assert http.names() == ['web']
    again = http.post('/v2.1/servers', request, headers=key)
    assert again.status_code == 202 and again.headers['Idempotency-Replayed'].startswith('req-')
    server = again.json()['server']
    assert len(server['adminPass']) == 12 and http.names() == ['web']
    assert http.booted(server['id'])['name'] == 'web'
    [first, second] = cloud.journal.entries('POST /servers')
    assert (first.status, second.status) == (status, 202)
    # The journal shows whether the client sends the same key, but no password.
    assert {each.request.headers['Idempotency-Key'] for each in (first, second)} == set(key.values())
    assert second.response.body['server']['adminPass'] == '***'


OTHERS = {
    'identity': ('/identity/v3/projects', {'project': {'name': 'web'}}, 'error'),
    'image': ('/image/v2/images', {'name': 'web'}, None),
    'network': ('/networking/v2.0/networks', {'network': {'name': 'web'}}, 'NeutronError'),
    'volume': ('/volume/v3/volumes', {'volume': {'name': 'web', 'size': 1}}, 'badRequest'),
    'share': ('/share/v2/shares', {'share': {'name': 'web', 'size': 1, 'share_proto': 'NFS'}}, 'badRequest'),
}


@pytest.mark.parametrize('service', OTHERS)
def test_the_other_services(cloud, http, key, service):
    path, request, _ = OTHERS[service]
    with cloud.faults.add(service=service, cut='after', count=1), pytest.raises(requests.RequestException):
        http.post(path, request, headers=key)
    again = http.post(path, request, headers=key)
    assert again.status_code < 300 and again.headers['Idempotency-Replayed'] != again.headers['x-openstack-request-id']
    collection = path.rpartition('/')[2]
    assert [each['name'] for each in http.get(path).json()[collection]].count('web') == 1
    assert http.post(path, request).headers['x-openstack-request-id']


@pytest.mark.parametrize('service', OTHERS)
def test_the_other_services_say_no_in_their_own_way(http, service):
    path, request, fault = OTHERS[service]
    answer = http.post(path, request, headers={'Idempotency-Key': '"'})
    assert answer.status_code == 400 and 'Idempotency-Key' in answer.text
    assert answer.headers['x-openstack-request-id'].startswith('req-')
    assert fault is None or list(answer.json()) == [fault]


def test_the_other_services_look_at_the_token_first(http, key):
    headers = key | {'X-Auth-Token': 'none'}
    assert http.post(OTHERS['volume'][0], OTHERS['volume'][1], headers=headers).status_code == 401
    log_in = {'auth': {'identity': {'methods': ['password'], 'password': {'user': {}}}}}
    assert http.post('/identity/v3/auth/tokens', log_in, headers=headers).status_code in (400, 401)


@pytest.mark.parametrize(('kind', 'service'), [('compute', None), ('volumev3', 'volume'), ('network', 'network')])
def test_who_may_only_look_is_not_answered_again(http, key, kind, service):
    """The key of the same user in the same project, with a credential that allows less."""
    path, request, _ = OTHERS[service] if service else ('/v2.1/servers', wanted(http), None)
    assert http.post(path, request, headers=key).status_code < 300
    rule = {'service': kind, 'method': 'GET', 'path': '/**'}
    user = http.get('/identity/v3/users?name=admin').json()['users'][0]['id']
    credential = {'name': 'look', 'secret': 'secret', 'access_rules': [rule]}
    credentials = f'/identity/v3/users/{user}/application_credentials'
    made = http.post(credentials, {'application_credential': credential}).json()['application_credential']
    proof = {'methods': ['application_credential'], 'application_credential': {'id': made['id'], 'secret': 'secret'}}
    answer = http.post('/identity/v3/auth/tokens', {'auth': {'identity': proof}})
    token = answer.headers['X-Subject-Token']
    assert http.get(path, headers={'X-Auth-Token': token}).status_code == 200
    answer = http.post(path, request, headers=key | {'X-Auth-Token': token})
    assert answer.status_code == 401 and 'Idempotency-Replayed' not in answer.headers


def test_without_a_key_there_are_two(cloud, http):
    request = wanted(http)
    with cloud.faults.add(operation='POST /servers', cut='after', count=1), pytest.raises(requests.RequestException):
        http.post('/v2.1/servers', request)
    assert http.post('/v2.1/servers', request).status_code == 202
    assert http.names() == ['web', 'web']


def test_an_error_that_a_rule_gives_is_not_kept(cloud, http, key):
    with cloud.faults.add(operation='POST /servers', status=503):
        assert http.post('/v2.1/servers', wanted(http), headers=key).status_code == 503
    assert http.post('/v2.1/servers', wanted(http), headers=key).status_code == 202


@pytest.mark.parametrize('name', ['image', 'network'])
def test_while_a_neighbour_is_away_nothing_is_kept(cloud, http, key, name):
    [network] = http.get('/networking/v2.0/networks').json()['networks'][:1]
    request = wanted(http, networks=[{'uuid': network['id']}])
    with cloud.neighbours.down(name):
        assert http.post('/v2.1/servers', request, headers=key).status_code == 503
    answer = http.post('/v2.1/servers', request, headers=key)
    assert answer.status_code == 202 and 'Idempotency-Replayed' not in answer.headers


def test_a_client_of_openstacksdk(cloud, http, key):
    connection = cloud.connection()
    request = wanted(http)
    with cloud.faults.add(operation='POST /servers', cut='after', count=1):
        # keystoneauth itself repeats a request that was cut off, with the same header.
        answer = connection.compute.post('/servers', json=request, headers=key, microversion='2.96', connect_retries=2)
    assert answer.status_code == 202 and answer.headers['Idempotency-Replayed']
    assert [server.name for server in connection.compute.servers()] == ['web']


def test_many_at_once(cloud, http, key):
    request, together = wanted(http), threading.Barrier(8)
    clients = [HTTP(cloud) for _ in range(8)]

    def ask(client):
        together.wait(60)
        return client.post('/v2.1/servers', request, headers=key)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, clients))
    for client in clients:
        client.session.close()
    assert {answer.status_code for answer in answers} <= {202, 409}
    last = http.post('/v2.1/servers', request, headers=key)
    assert {answer.text for answer in answers if answer.status_code == 202} == {last.text}
    assert http.names() == ['web']


def test_a_key_ends_by_the_clock_of_the_cloud(cloud, http, key):
    request = wanted(http)
    assert http.post('/v2.1/servers', request, headers=key).status_code == 202
    cloud.clock.step(hours=25)
    http.log_in()
    assert 'Idempotency-Replayed' not in http.post('/v2.1/servers', request, headers=key).headers
    assert http.names() == ['web', 'web']


def test_a_reset_forgets_keys_and_a_snapshot_has_them(cloud, http, key):
    request = wanted(http)
    first = http.post('/v2.1/servers', request, headers=key)
    cloud.snapshot('one')
    other = {'Idempotency-Key': 'other'}
    assert http.post('/v2.1/servers', request, headers=other).status_code == 202
    cloud.restore('one')
    assert http.post('/v2.1/servers', request, headers=key).json() == first.json()
    assert 'Idempotency-Replayed' not in http.post('/v2.1/servers', request, headers=other).headers
    assert http.names() == ['web', 'web']
    cloud.reset()
    http.log_in()
    assert 'Idempotency-Replayed' not in http.post('/v2.1/servers', wanted(http), headers=key).headers
    assert http.names() == ['web']
