"""Repeated POSTs with an Idempotency-Key: the same response, and nothing is done twice."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import sqlalchemy as sa

from computeapi import pipeline
from computeapi.db.engine import Store
from computeapi.db.tables.compute import idempotency_keys
from computeapi.main import Service
from computeapi.pipeline import load
from computeapi.versions import MAX
from tests.api.servers.conftest import BOB, body
from tests.conftest import Client
from tests.interruptible import Interruptible, Killed
from tests.invariants import problems

KEY = '"8e03978e-40d5-43dd-bc93-6894a57f9324"'


@pytest.fixture
def conf(conf):
    conf.set_override('idempotency_seconds', 3600, 'api')
    return conf


@pytest.fixture
def send(api, world):
    """send(name='web'): bob's request for a server, with a key."""
    return sending(api)


def sending(api):
    def post(request=None, key=KEY, path='/servers', version='2.95', as_=BOB, **kwargs):
        headers = {} if key is None else {'Idempotency-Key': key}
        return api.post(path, request or body(**kwargs), version, as_=as_, headers=headers)

    return post


@pytest.fixture
def later(store):
    """later(seconds): advances the clock."""
    clock = store.clock

    def go(seconds):
        now = store.clock
        store.clock = lambda: now() + timedelta(seconds=seconds)

    yield go
    store.clock = clock


def names(api, as_=BOB):
    return sorted(server['name'] for server in api.get('/servers', as_=as_).json['servers'])


def rows(store):
    with store.read() as connection:
        return [row._asdict() for row in connection.execute(sa.select(idempotency_keys))]


# ------------------------------------------------------------------ repetition


def test_the_same_answer_and_no_second_server(send, api):
    first, second = send(name='web'), send(name='web')
    assert (first.status, first.text) == (second.status, second.text)
    assert first.status == 202 and second.json['server']['adminPass']
    assert 'Idempotency-Replayed' not in first.headers
    assert second.headers['Idempotency-Replayed'] == first.headers['x-compute-request-id']
    own = ('x-compute-request-id', 'x-openstack-request-id', 'Idempotency-Replayed')
    same = [{name: value for name, value in each.headers.items() if name not in own} for each in (first, second)]
    assert same[0] == same[1] and 'Location' in same[0] and 'OpenStack-API-Version' in same[0]
    # They are separate requests in the log.
    assert first.headers['x-compute-request-id'] != second.headers['x-compute-request-id']
    assert names(api) == ['web']


def test_without_a_key_there_are_two(send, api):
    assert {send(key=None, name='web').status for _ in range(2)} == {202}
    assert names(api) == ['web', 'web'] and api.get('/servers', headers={'Idempotency-Key': KEY}).status == 200


def test_several_servers_at_once(send, api):
    first, second = (send(name='web', min_count=3, return_reservation_id=True) for _ in range(2))
    assert first.json == second.json and first.json['reservation_id']
    assert names(api) == ['web-1', 'web-2', 'web-3']


def test_an_action_is_not_done_again(send, settle, api):
    server = send(key=None).json['server']['id']
    settle()
    asked = {'path': f'/servers/{server}/action', 'request': {'os-stop': None}}
    assert send(**asked).status == 202
    settle()
    again = send(**asked)
    assert again.status == 202 and again.headers['Idempotency-Replayed']
    # It is already stopped.
    assert send(**asked, key='other').status == 409


def test_of_a_private_key_there_is_one(send, api):
    asked = {'path': '/os-keypairs', 'request': {'keypair': {'name': 'pair'}}, 'version': '2.1'}
    first, second = send(**asked), send(**asked)
    assert first.json == second.json and 'PRIVATE KEY' in second.json['keypair']['private_key']


def test_on_the_legacy_endpoint(legacy, world):
    answers = [legacy.post('/servers', body(networks=None), headers={'Idempotency-Key': KEY}) for _ in range(2)]
    assert answers[0].status == 202 and answers[0].json == answers[1].json


# ------------------------------------------------------------------ keys


def test_a_quoted_key_and_a_bare_one_are_the_same(send, api):
    assert send(key='"order-1"').json == send(key=' order-1 ').json
    assert send(key=r'"a\"b\\c"').json == send(key=r'"a\"b\\c"').json
    assert len(names(api)) == 2


@pytest.mark.parametrize('key', ['"' + 'x' * 255 + '"', 'x' * 255, '"a b, c; d"', 'YWJj+/=='])
def test_keys(send, key):
    assert send(key=key).status == 202


@pytest.mark.parametrize(
    'key',
    ['', '""', ' ', '"', '"a', 'a"', 'a b', '"a" "b"', '"a", "b"', '"a\\b"', '"\xfc"', 'a\tb', 'x' * 256,
     '"' + 'x' * 256 + '"', '(a)', '"a";b=1'],
)  # fmt: skip
def test_what_is_no_key(send, api, key):
    answer = send(key=key)
    assert answer.status == 400 and 'Idempotency-Key' in answer.json['badRequest']['message']
    assert names(api) == []


@pytest.mark.parametrize(
    'other',
    [
        {'name': 'other'},
        {'version': '2.96'},
        {'path': '/servers?x=1'},
        {'path': '/os-keypairs', 'request': {'keypair': {'name': 'server'}}},
        {'as_': 'bob:project:reader'},
    ],
)
def test_a_key_is_for_one_request(send, api, other):
    """A caller with fewer rights than before does not get the earlier response."""
    assert send().status == 202
    answer = send(**other)
    assert answer.status == 422 and 'a different request' in answer.json['computeFault']['message']
    assert 'adminPass' not in answer.text and names(api) == ['server']


@pytest.mark.parametrize('other', ['alice:project', 'bob:other'])
def test_a_callers_keys_are_its_own(send, api, other):
    asked = {'path': '/os-server-groups', 'request': {'server_group': {'name': 'x', 'policy': 'affinity'}}}
    mine = send(**asked)
    theirs = send(**asked, as_=other)
    assert mine.status == theirs.status == 200
    assert mine.json['server_group']['id'] != theirs.json['server_group']['id']
    assert 'Idempotency-Replayed' not in theirs.headers


def test_nobody_without_a_token_is_answered(conf, store, world):
    service = Service(conf, store)
    conf.set_override('auth_strategy', 'local', 'api')
    answer = Client(load(service, 'compute'), token='x').post('/servers', body(), headers={'Idempotency-Key': KEY})
    assert answer.status == 401 and rows(store) == []


# ------------------------------------------------------------------ storage of responses


def test_an_error_that_changed_nothing_can_be_tried_again(send, api, world):
    assert send(flavorRef='2').status == 400
    world.flavor('2')
    quota = '/os-quota-sets/project'
    assert api.put(quota, {'quota_set': {'instances': 0}}).status == 200
    assert send(flavorRef='2').status == 403
    assert api.put(quota, {'quota_set': {'instances': 9}}).status == 200
    assert send(flavorRef='2').status == 202 and names(api) == ['server']


def test_a_key_ends_in_time(send, api, later):
    first = send(name='web')
    later(3590)
    assert send(name='web').json == first.json
    later(20)
    assert send(name='db').status == 202
    assert names(api) == ['db', 'web']


def test_a_user_has_so_many_keys(send, service):
    service.conf.set_override('idempotency_keys_per_user', 2, 'api')
    send = sending(Client(load(Service(service.conf, service.store), 'compute')))
    assert [send(key=f'k{number}').status for number in range(3)] == [202, 202, 403]
    assert send(key='k0').status == 202 and send(key='k3', as_='alice:project').status == 202


def test_who_reads_the_table_reads_no_secrets(send, store):
    password = send(name='unusual', user_data='c2VjcmV0').json['server']['adminPass']
    private_key = send(path='/os-keypairs', request={'keypair': {'name': 'a'}}, key='k-2', version='2.1').json
    kept = str(rows(store))
    assert len(rows(store)) == 2
    secrets = (password, 'unusual', 'c2VjcmV0', KEY.strip('"'), private_key['keypair']['private_key'][40:80])
    assert not [each for each in secrets if each in kept]


def test_while_it_is_off_it_is_not_there(conf, service, world):
    conf.set_override('idempotency_seconds', 0, 'api')
    token = pipeline._building.set(service)
    try:
        assert pipeline.idempotency({})(world) is world
    finally:
        pipeline._building.reset(token)
    api = Client(load(service, 'compute'))
    send = sending(api)
    assert send(name='web').json != send(name='web').json
    assert names(api) == ['web', 'web'] and rows(service.store) == []
    document = Client(api.app, prefix='').get('/openapi/2.1.json')
    assert 'Idempotency-Key' not in document.text


def test_openapi_has_the_header(app):
    document = Client(app, prefix='').get(f'/openapi/{MAX}.json').json
    [key] = [name for name, each in document['components']['parameters'].items() if each['name'] == 'Idempotency-Key']
    listed = {
        method: sum({'$ref': f'#/components/parameters/{key}'} in path[method]['parameters'] for path in paths)
        for method in ('get', 'put', 'post', 'delete')
        for paths in [[path for path in document['paths'].values() if method in path]]
    }
    assert listed.pop('post') == sum('post' in path for path in document['paths'].values())
    assert set(listed.values()) == {0}
    assert {'409', '422'} <= document['paths']['/servers']['post']['responses'].keys()


# ------------------------------------------------------------------ concurrency and crashes


def test_many_at_once_make_one_server(service, world, store, conf):
    """Through two processes, as far as the database can distinguish them."""
    other = Store(store.url.render_as_string(hide_password=False), durable=False)
    apps = [Client(load(each, 'compute')) for each in (service, Service(conf, other))]
    together = threading.Barrier(8)

    def ask(number):
        together.wait(60)
        return sending(apps[number % 2])(name='web')

    try:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, range(8)))
        last = sending(apps[1])(name='web')
    finally:
        other.close()
    statuses = Counter(answer.status for answer in answers)
    assert set(statuses) <= {202, 409} and statuses[202] >= 1
    assert {answer.headers['Retry-After'] for answer in answers if answer.status == 409} <= {'1'}
    assert {answer.text for answer in answers if answer.status == 202} == {last.text}
    assert names(apps[0]) == ['web']


class TestKilled:
    """A process that dies between any two of its transactions."""

    @pytest.fixture
    def store(self, store):
        return Interruptible(store)

    def test_a_process_that_died_makes_no_second_server(self, send, api, store, world, settle, later):
        outcomes, steps = Counter(), 0
        while True:
            name, key = f'web{steps}', f'key-{steps}'
            store.after(steps, store.die)
            try:
                first = send(name=name, key=key)
                break
            except Killed:
                store.revive()
            held = send(name=name, key=key)
            assert held.status in (202, 409)
            later(61)
            again = send(name=name, key=key)
            outcomes[again.status] += 1
            made = names(api).count(name)
            # Either nothing was begun, and it is done now, or what was begun is not repeated.
            assert made == 1 if again.status == 202 else (again.status == 409 and made <= 1), again
            steps += 1
        store.plan.left = None
        assert first.status == 202 and outcomes[202] and outcomes[409]
        settle()
        assert list(problems(store)) == []
