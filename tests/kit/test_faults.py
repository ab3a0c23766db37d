"""Rules that make requests fail, as clients see it."""

import threading
import time
from datetime import timedelta

import pytest
import requests
from openstack import exceptions
from urllib3.exceptions import ProtocolError

from computeapi.clock import utcnow
from computeapi.errors import Invalid
from computeapi.testing import Cloud
from tests.kit.conftest import HTTP

NOBODY = '/v2.1/servers/00000000-0000-4000-8000-000000000000'


@pytest.fixture
def add(cloud):
    return cloud.faults.add


def flavors(http, **headers):
    return http.get('/v2.1/flavors', headers=headers).status_code


# ------------------------------------------------------------------ effects on requests


def test_a_status_in_the_words_of_the_service(http, add):
    with add(operation='POST /servers', status=503, retry_after=7, message='No room.') as rule:
        answer = http.post('/v2.1/servers', {'server': {}})
        assert answer.status_code == 503 and answer.headers['Retry-After'] == '7'
        assert answer.json() == {'serviceUnavailable': {'code': 503, 'message': 'No room.'}}
        assert answer.headers['x-openstack-request-id'].startswith('req-')
        assert http.names() == []
    assert http.post('/v2.1/servers', {'server': {}}).status_code == 400
    assert rule.hits == 1


@pytest.mark.parametrize(
    ('path', 'key'),
    [
        ('/identity/v3/projects', 'error'),
        ('/networking/v2.0/networks', 'NeutronError'),
        ('/volume/v3/volumes', 'itemNotFound'),
        ('/share/v2/shares', 'itemNotFound'),
        ('/v2.1/servers', 'itemNotFound'),
    ],
)
def test_other_services_say_no_in_their_own_way(http, add, path, key):
    add(path=path, status=404)
    answer = http.get(path)
    assert answer.status_code == 404 and list(answer.json()) == [key]


def test_images_say_no_in_pages(http, add):
    add(service='image', status=429, retry_after=1)
    answer = http.get('/image/v2/images')
    assert answer.status_code == 429 and 'json' not in answer.headers['Content-Type']
    assert flavors(http) == 200


@pytest.mark.parametrize(('body', 'text'), [('<html>', '<html>'), ({'a': [1]}, '{"a":[1]}')])
def test_a_body_of_ones_own(http, add, body, text):
    add(path='/v2.1/flavors', status=502, body=body)
    assert http.get('/v2.1/flavors').text == text


def test_a_client_tries_again_when_it_is_told_to(cloud, add):
    connection = cloud.connection(compute_status_code_retries=3)
    rule = add(operation='GET /flavors/detail', status=503, retry_after=0, count=2)
    assert list(connection.compute.flavors())
    assert rule.hits == 2


def test_a_client_gives_up(cloud, add):
    connection = cloud.connection()
    add(operation='GET /flavors/detail', status=500)
    with pytest.raises(exceptions.HttpException):
        list(connection.compute.flavors())


def test_a_delay_holds_nobody_up(cloud, http, add):
    """More requests than there are threads are delayed at the same time."""
    add(operation='GET /servers', delay=0.5, jitter=0.1)
    url, headers = f'{cloud.url}/v2.1/servers', {'X-Auth-Token': http.session.headers['X-Auth-Token']}
    seconds = []

    def ask():
        begun = time.monotonic()
        assert requests.get(url, headers=headers, timeout=30).status_code == 200
        seconds.append(time.monotonic() - begun)

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    assert flavors(http) == 200
    assert time.monotonic() - begun < 0.5
    for thread in threads:
        thread.join()
    assert len(seconds) == 20 and min(seconds) >= 0.5 and max(seconds) < 4


def test_what_waits_does_not_reach_the_cloud_of_the_next_test(cloud, http, add):
    add(path='/v2.1/', delay=0.4)
    errors = []

    def ask():
        try:
            requests.get(f'{cloud.url}/v2.1/', timeout=30)
        except requests.ConnectionError as error:
            errors.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    until = time.monotonic() + 5
    while not cloud.faults.list()[0].hits and time.monotonic() < until:
        time.sleep(0.005)
    cloud.reset()
    thread.join()
    assert len(errors) == 1


@pytest.mark.parametrize(('abrupt', 'told'), [(False, 'without response'), (True, 'reset by peer')])
@pytest.mark.parametrize('cut', ['before', 'after'])
def test_a_connection_is_closed_or_reset(http, add, cut, abrupt, told):
    add(operation='GET /flavors', cut=cut, abrupt=abrupt)
    with pytest.raises(requests.ConnectionError, match=told):
        flavors(http)


def test_an_answer_that_trickles_outlasts_the_timeout_of_each_read(cloud, http, add):
    complete = http.get('/v2.1/flavors/detail')
    rule = add(operation='GET /flavors/detail', trickle=2)
    trickled = http.session.get(f'{cloud.url}/v2.1/flavors/detail', timeout=1)
    assert trickled.json() == complete.json() and rule.hits == 1
    assert trickled.headers['Content-Length'] == complete.headers['Content-Length']
    rule.remove()
    add(operation='GET /flavors', trickle=0.2, status=503, message='Busy.')
    assert http.get('/v2.1/flavors').json()['serviceUnavailable']['message'] == 'Busy.'
    assert [entry.status for entry in cloud.journal.entries('GET /flavors')] == [503]


def test_an_answer_that_trickles_ends_with_the_cloud():
    with Cloud() as own:
        own.faults.add(path='/', trickle=3600)
        answer = requests.get(own.url, stream=True, timeout=30)
        assert answer.raw.read(1)
    with pytest.raises(ProtocolError):
        answer.raw.read()


def test_delays_add_up_until_something_happens(http, add):
    add(path='/v2.1/flavors', delay=0.1)
    add(path='/v2.1/flavors', delay=0.1, status=504)
    last = add(path='/v2.1/flavors', delay=10)
    begun = time.monotonic()
    assert flavors(http) == 504
    assert 0.2 <= time.monotonic() - begun < 5 and last.hits == 0


def test_the_connection_is_cut_before_the_work(http, add):
    add(operation='POST /servers', cut='before', count=1)
    with pytest.raises(requests.ConnectionError):
        http.boot()
    assert http.names() == []
    http.boot()


def test_the_connection_is_cut_after_the_work(http, add):
    add(operation='POST /servers', cut='after', count=1)
    with pytest.raises(requests.ConnectionError):
        http.boot('there')
    assert http.names() == ['there']


def test_an_answer_is_cut_short(http, add):
    with add(operation='GET /flavors/detail', cut='within'), pytest.raises(requests.exceptions.ChunkedEncodingError):
        http.get('/v2.1/flavors/detail')
    answer = http.get('/v2.1/flavors/detail')
    assert len(answer.content) == int(answer.headers['Content-Length'])


def test_what_has_no_body_is_cut_all_the_same(http, add):
    server = http.boot()
    add(operation='DELETE /servers/{server_id}', cut='within')
    with pytest.raises(requests.ConnectionError):
        http.delete(f'/v2.1/servers/{server}')


def test_the_journal_has_what_clients_saw(cloud, http, add):
    add(operation='POST /servers', cut='after', nth=1)
    add(operation='os-stop', status=503, delay=0.05)
    with pytest.raises(requests.ConnectionError):
        http.boot()
    [server] = http.get('/v2.1/servers').json()['servers']
    http.post(f'/v2.1/servers/{server["id"]}/action', {'os-stop': None})
    assert cloud.journal.last('POST /servers').status is None
    stopped = cloud.journal.last('POST /servers/{server_id}/action os-stop')
    assert (stopped.status, stopped.request.body) == (503, {'os-stop': None})


def test_the_journal_has_when_what_was_delayed_had_come(cloud, http, add):
    add(operation='GET /flavors', delay=0.3)
    came = utcnow()
    assert flavors(http) == 200
    entry = cloud.journal.last('GET /flavors')
    assert entry.time - came < timedelta(seconds=0.3) <= timedelta(seconds=entry.duration)


# ------------------------------------------------------------------ selection of requests


def test_an_action_is_an_operation(http, add):
    server = http.boot()
    add(operation='os-start', status=418)
    add(operation='POST /servers/{id}/action reboot', status=419)
    statuses = [
        http.post(f'/v2.1/servers/{server}/action', {name: None}).status_code
        for name in ('os-start', 'reboot', 'nothing')
    ]
    assert statuses == [418, 419, 400]


@pytest.mark.parametrize(
    ('path', 'hit'),
    [
        ('/v2.1/servers', False),
        ('/v2.1/servers/*', True),
        ('*/servers/*', True),
        (r'^/v2\.\d+/servers/[0-9a-f-]{36}', True),
        (r'^/v2\.\d+/servers', False),
        ('/v2.1/serv.rs/*', False),
    ],
)
def test_a_path_is_a_pattern(http, add, path, hit):
    add(path=path, status=418)
    assert (http.get(NOBODY).status_code == 418) == hit


def test_microversions_are_between_bounds(http, add):
    add(operation='GET /flavors', min_version='2.50', max_version='2.60', status=418)
    asked = {version: flavors(http, **{'OpenStack-API-Version': f'compute {version}'}) for version in ('2.49', '2.50')}
    assert asked == {'2.49': 200, '2.50': 418}
    assert flavors(http, **{'OpenStack-API-Version': 'compute latest'}) == 200
    assert flavors(http, **{'OpenStack-API-Version': 'compute 2.60'}) == 418
    assert http.get('/v2/flavors').status_code == 200


def test_a_project_is_known_by_its_token(cloud, http, add):
    add(project='demo', status=418)
    assert flavors(http) == 200
    http.log_in('demo')
    assert flavors(http) == 418
    http.session.headers['X-Auth-Token'] = 'none'
    assert flavors(http) == 401


def test_a_server_is_known_by_its_name_or_metadata(http, add):
    web, other = http.boot('web-1', metadata={'kind': 'good'}), http.boot('other', metadata={'kind': 'bad'})
    add(server='web', status=418)
    add(metadata={'kind': 'bad'}, status=419)
    statuses = [http.get(f'/v2.1/servers/{server}').status_code for server in (web, other)]
    assert statuses == [418, 419]
    assert http.get(f'/v2.1/servers/{web}/ips').status_code == 418
    made = [http.post('/v2.1/servers', {'server': {'name': name}}).status_code for name in ('web-2', 'else')]
    assert made == [418, 400]
    assert http.get('/v2.1/servers').status_code == 200


# ------------------------------------------------------------------ selection of occurrences


def test_the_nth_and_how_many(http, add):
    add(operation='GET /flavors', nth=2, status=418)
    assert [flavors(http) for _ in range(4)] == [200, 418, 200, 200]
    add(operation='GET /flavors', nth=2, count=2, status=419)
    assert [flavors(http) for _ in range(5)] == [200, 419, 419, 200, 200]


def test_chance_goes_the_same_way_each_time(http, add):
    runs = []
    for _ in range(2):
        with add(operation='GET /flavors', probability=0.5, seed=3, status=418):
            runs.append([flavors(http) for _ in range(20)])
    assert runs[0] == runs[1] and {200, 418} == set(runs[0])


def test_a_time_by_the_clock_of_the_cloud(cloud, http, add):
    cloud.clock.freeze()
    add(operation='GET /flavors', after=60, lasting=30, status=418)
    seen = []
    for _ in range(4):
        seen.append(flavors(http))
        cloud.clock.step(seconds=30)
    assert seen == [200, 200, 418, 200]


# ------------------------------------------------------------------ rules


@pytest.mark.parametrize(
    ('facts', 'words'),
    [
        ({}, 'needs an effect'),
        ({'operation': 'POST /server', 'status': 500}, 'did you mean POST /servers?'),
        ({'operation': 'os-stopp', 'status': 500}, 'did you mean os-stop?'),
        ({'service': 'image', 'operation': 'POST /servers', 'status': 500}, 'There is no operation POST /servers'),
        ({'path': '^(', 'status': 500}, 'path: missing )'),
        ({'path': 'servers', 'status': 500}, 'did you mean /servers or */servers?'),
        ({'path': '^' + '(a{1000}){1000}', 'status': 500}, 'path: '),
        ({'min_version': '2.999', 'status': 500}, 'no microversion 2.999'),
        ({'min_version': '2.50', 'max_version': '2.10', 'status': 500}, 'no microversion from 2.50 to 2.10'),
        ({'status': 99}, '99'),
        ({'status': 500, 'cut': 'before'}, '`cut` cannot have a `status`'),
        ({'trickle': 1, 'cut': 'before'}, '`cut` cannot have a `status` or `trickle`'),
        ({'trickle': 0}, 'trickle'),
        ({'status': 500, 'abrupt': True}, '`abrupt` requires `cut`'),
        ({'retry_after': 1, 'delay': 1}, 'require a `status`'),
        ({'probability': 0, 'status': 500}, 'probability'),
        ({'colour': 'red', 'status': 500}, 'colour'),
        ({'status': 500, 'body': 'x' * 70_000}, 'bytes at most'),
        ({'hypervisor': 'spawn'}, '`effect`'),
        ({'hypervisor': 'spawn', 'effect': 'fail', 'status': 500}, 'such as status'),
        ({'hypervisor': 'fly', 'effect': 'fail'}, 'fly'),
        ({'hypervisor': 'spawn', 'effect': 'slow'}, '`slow`'),
    ],
)
def test_what_does_not_fit_is_refused(cloud, facts, words):
    with pytest.raises(Invalid) as refused:
        cloud.faults.add(**facts)
    assert words in str(refused.value)
    assert cloud.faults.list() == []


def test_rules_are_listed_with_their_hits(http):
    facts = {'operation': 'GET /flavors', 'status': 418, 'count': 1}
    made = http.control('POST', '/faults', facts).json()
    assert made == {'id': made['id'], 'hits': 0, **facts}
    assert [flavors(http), flavors(http)] == [418, 200]
    assert http.control('GET', '/faults').json() == {'faults': [{**made, 'hits': 1}]}
    assert http.control('GET', f'/faults/{made["id"]}').json()['hits'] == 1
    assert http.control('DELETE', f'/faults/{made["id"]}').status_code == 204
    assert http.control('GET', f'/faults/{made["id"]}').status_code == 404
    assert http.control('GET', '/faults/x').status_code == 404
    assert http.control('POST', '/faults', {'operation': 'GET /flavors'}).status_code == 400
    http.control('POST', '/faults', facts)
    assert http.control('DELETE', '/faults').status_code == 204
    assert http.control('GET', '/faults').json() == {'faults': []}


def test_the_control_api_is_for_no_rule(http, add):
    add(path='*', cut='before')
    assert len(http.control('GET', '/faults').json()['faults']) == 1


def test_a_reset_forgets_the_rules(cloud, add):
    add(path='*', status=500)
    cloud.reset()
    assert HTTP(cloud).names() == []
