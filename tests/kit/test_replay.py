"""`computeapi replay`: recorded requests are sent to other clouds, and the responses compared."""

import json
import time

import pytest

from computeapi import cli
from computeapi.kit.replay.id_mapping import IDMapping
from computeapi.kit.replay.player import plausible
from computeapi.kit.replay.recording import read
from computeapi.kit.replay.shapes import differences
from computeapi.testing import Cloud
from tests.kit.conftest import HTTP


@pytest.fixture(scope='module')
def other_of_module():
    with Cloud(hosts=2) as cloud:
        yield cloud


@pytest.fixture
def other(other_of_module):
    """Another cloud, with other IDs."""
    yield other_of_module
    other_of_module.reset()


def wait(http, path, status):
    """Poll until something has this status, or no longer exists."""
    for _ in range(500):
        answer = http.get(path)
        [thing] = answer.json().values()
        if (thing.get('status') if answer.ok else answer.status_code) == status:
            return
        time.sleep(0.02)
    raise TimeoutError(path)


def story(http):
    """A server on a network, with all requests that a client sends around it."""
    server_id = http.boot('web', networks=[{'uuid': network_of(http)}], adminPass='hunter22', user_data='aGVsbG8=')
    wait(http, f'/v2.1/servers/{server_id}', 'ACTIVE')
    http.post(f'/v2.1/servers/{server_id}/action', {'os-stop': None})
    wait(http, f'/v2.1/servers/{server_id}', 'SHUTOFF')
    [port] = http.get(f'/networking/v2.0/ports?device_id={server_id}').json()['ports']
    http.get(f'/networking/v2.0/ports/{port["id"]}')
    aggregate = http.post('/v2.1/os-aggregates', {'aggregate': {'name': 'fast'}}).json()['aggregate']
    http.get(f'/v2.1/os-aggregates/{aggregate["id"]}')
    http.post('/v2.1/servers', {'server': {'name': 'no flavor'}})
    facts = {'name': 'mine', 'disk_format': 'raw', 'container_format': 'bare'}
    image_id = http.post('/image/v2/images', facts).json()['id']
    http.upload(image_id, b'bits')
    http.get(f'/image/v2/images/{image_id}')
    http.delete(f'/v2.1/servers/{server_id}')
    wait(http, f'/v2.1/servers/{server_id}', 404)
    http.get('/v2.1/servers', headers={'X-Auth-Token': 'expired'})
    http.get('/identity')
    http.log_in()


@pytest.fixture
def recording(http, cloud, tmp_path):
    """recording(story, name): a file of that name with the requests of the story."""

    def record(story, name='x.jsonl'):
        cloud.journal.clear()
        story(http)
        cloud.journal.save(tmp_path / name)
        return tmp_path / name

    return record


@pytest.fixture
def replay(monkeypatch, capsys):
    """replay(file, cloud, *options): the exit status and the output."""

    def run(path, cloud, *options):
        monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', str(cloud.clouds_yaml))
        status = cli.main(['replay', str(path), '--to', cloud.url, '--os-cloud', 'computeapi', *options])
        return status, capsys.readouterr().out

    return run


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', ['x.jsonl', 'x.har'])
def test_another_cloud_answers_alike(recording, replay, other, name):
    there = HTTP(other)
    there.boot('older')
    there.post('/v2.1/os-aggregates', {'aggregate': {'name': 'older'}})
    path = recording(story, name)
    other.journal.clear()
    status, printed = replay(path, other)
    assert status == 0, printed
    assert printed.endswith(' 0 responses differ.\n')
    assert 'POST /auth/tokens was skipped: the replay logs in itself' in printed
    assert 'its token was not valid' in printed and 'GET /identity was skipped: its path is not below' in printed
    # All requests were really sent, about resources that exist.
    assert other.journal.last('POST /servers', status=202).request.body['server']['name'] == 'web'
    assert other.journal.last('GET /os-aggregates/{id}').path == '/v2.1/os-aggregates/2'
    assert other.journal.count('GET /ports/{id}', status=200) == 1
    assert other.journal.last('PUT /images/{id}/file').request.length == 4
    assert there.names() == ['older']
    assert 'hunter22' not in path.read_text()


def network_of(http):
    [network] = [each for each in http.get('/networking/v2.0/networks').json()['networks'] if each['name'] == 'private']
    return network['id']


def boot_on_network(http):
    server_id = http.boot('web', networks=[{'uuid': network_of(http)}])
    wait(http, f'/v2.1/servers/{server_id}', 'ACTIVE')


def boot_only(http):
    wait(http, f'/v2.1/servers/{http.boot("web")}', 'ACTIVE')


@pytest.mark.filterwarnings('ignore')
def test_a_cloud_in_which_boots_fail_is_told_from_one_in_which_they_do_not(recording, replay):
    path = recording(boot_only)
    with Cloud(options={('simulated', 'fail'): ['spawn:web']}) as failing:
        status, printed = replay(path, failing)
    assert status == 1
    assert 'GET /servers/{server_id} 200\n    state: ERROR instead of ACTIVE\n' in printed
    assert '    server.fault: not expected\n' in printed
    assert printed.endswith(' 1 responses differ.\n')


@pytest.mark.filterwarnings('ignore')
def test_what_takes_longer_is_waited_for(recording, replay):
    path = recording(boot_only)
    with Cloud(options={('simulated', 'spawn_seconds'): 0.7}) as slow:
        assert replay(path, slow)[0] == 0
        status, printed = replay(path, slow, '--patience', '0')
    assert status == 1 and 'state: BUILD' in printed


def boot_and_delete(http):
    server_id = http.boot('web')
    wait(http, f'/v2.1/servers/{server_id}', 'ACTIVE')
    http.delete(f'/v2.1/servers/{server_id}')
    wait(http, f'/v2.1/servers/{server_id}', 404)


@pytest.mark.filterwarnings('ignore')
def test_what_is_gone_at_the_first_look_may_take_longer_elsewhere(recording, replay, other):
    path = recording(boot_and_delete)
    # Keep only the last of several polls, as if it had been the first.
    gone = [line for line in path.read_text().splitlines() if json.loads(line)['status'] == 404][-1]
    kept = [line for line in path.read_text().splitlines() if json.loads(line)['status'] != 404]
    deleted = next(at for at, line in enumerate(kept) if json.loads(line)['method'] == 'DELETE')
    path.write_text('\n'.join([*kept[: deleted + 1], gone]) + '\n')
    other.faults.add(hypervisor='destroy', effect='slow', delay=0.5)
    assert replay(path, other)[0] == 0


@pytest.mark.filterwarnings('ignore')
def test_another_microversion_shows_other_fields(recording, replay, other):
    path = recording(boot_on_network)
    status, printed = replay(path, other, '--microversion', '2.1')
    assert status == 1
    assert '    server.tags: missing\n' in printed and '    server.image: ' not in printed
    # A version that no cloud supports.
    status, printed = replay(path, other, '--microversion', '2.999')
    assert 'status: 406 instead of 202 (Version 2.999 is not supported by the API' in printed


@pytest.mark.filterwarnings('ignore')
def test_an_older_cloud_refuses_what_it_does_not_know(recording, replay):
    path = recording(boot_only)
    with Cloud(options={('api', 'max_microversion'): '2.90'}) as old:
        status, printed = replay(path, old)
        assert status == 1 and 'POST /servers 406\n    status: 406 instead of 202 (Version 2.96 is not' in printed
        # At a version that the cloud supports, only the fields differ.
        status, printed = replay(path, old, '--microversion', '2.90')
    assert status == 1 and 'status:' not in printed
    assert '    server.pinned_availability_zone: missing\n' in printed


@pytest.mark.filterwarnings('ignore')
def test_a_status_that_differs_is_named(recording, replay, other):
    path = recording(story)
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    for entry in entries:
        if entry['operation'] == 'GET /networks':
            entry['status'] = 418
    path.write_text('\n'.join(map(json.dumps, entries)))
    assert 'GET /networks 200\n    status: 200 instead of 418' in replay(path, other)[1]


@pytest.mark.filterwarnings('ignore')
def test_a_second_cloud_takes_the_place_of_what_was_recorded(recording, replay, monkeypatch, capsys, cloud, other):
    path = recording(boot_only)
    path.write_text(path.read_text().replace('"status":202', '"status":418'))
    clouds = {
        name: {'auth': auth_of(each), 'region_name': 'RegionOne'} for name, each in (('one', cloud), ('two', other))
    }
    monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', str(path.parent / 'clouds.yaml'))
    (path.parent / 'clouds.yaml').write_text(json.dumps({'clouds': clouds}))
    assert cli.main(['replay', str(path), '--to', 'one', '--and', 'two', '--headers']) == 0
    assert 'POST /servers 202\n' in capsys.readouterr().out
    assert HTTP(cloud).names() == ['web', 'web'] and HTTP(other).names() == ['web']


def auth_of(cloud):
    environ = cloud.environ
    names = ('auth_url', 'username', 'password', 'project_name', 'user_domain_name', 'project_domain_name')
    return {name: environ[f'OS_{name.upper()}'] for name in names}


def test_with_a_token_nothing_else_is_needed(recording, other, capsys):
    path = recording(story)
    token = HTTP(other).session.headers['X-Auth-Token']
    assert cli.main(['replay', str(path), '--to', f'{other.url}/v2.1', '--token', token]) == 0
    assert ' 0 responses differ.' in capsys.readouterr().out
    assert cli.main(['replay', str(path), '--to', other.url, '--token', 'wrong', '--patience', '0']) == 1
    assert 'status: 401 instead of 202' in capsys.readouterr().out


def test_headers_are_compared_if_that_is_asked(recording, other, capsys):
    path = recording(lambda http: http.get('/v2.1/flavors'))
    path.write_text(path.read_text().replace('"x-compute-request-id"', '"X-Novelty"'))
    token = HTTP(other).session.headers['X-Auth-Token']
    arguments = ['replay', str(path), '--to', other.url, '--token', token]
    assert cli.main(arguments) == 0
    assert cli.main([*arguments, '--headers']) == 1
    printed = capsys.readouterr().out
    assert 'header x-novelty: missing' in printed and 'header x-compute-request-id: not expected' in printed


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('path', ['', '/identity', '/identity/v3'])
def test_who_logs_in_is_as_configured_and_where_is_as_said(recording, monkeypatch, tmp_path, capsys, other, path):
    recorded = recording(lambda http: http.get('/v2.1/flavors'))
    wrong = auth_of(other) | {'auth_url': 'http://127.0.0.1:1/v3'}
    (tmp_path / 'clouds.yaml').write_text(json.dumps({'clouds': {'x': {'auth': wrong}}}))
    monkeypatch.setenv('OS_CLIENT_CONFIG_FILE', str(tmp_path / 'clouds.yaml'))
    where = ['--to', other.url + path]
    assert cli.main(['replay', str(recorded), *where, '--os-cloud', 'x']) == 0
    for name, value in wrong.items():
        monkeypatch.setenv(f'OS_{name.upper()}', value)
    assert cli.main(['replay', str(recorded), *where]) == 0
    assert cli.main(['replay', str(recorded)]) == 2


@pytest.mark.filterwarnings('ignore')
def test_what_cannot_be_done_is_told(tmp_path, capsys, monkeypatch, other):
    (tmp_path / 'x.txt').write_text('{"a": 1}\n')
    (tmp_path / 'empty').write_text('')
    arguments = [['x.txt', '--to', other.url], ['none'], ['empty', '--to', other.url, '--os-cloud', 'nobody']]
    monkeypatch.chdir(tmp_path)
    for each in arguments:
        assert cli.main(['replay', *each]) == 2
    told = capsys.readouterr().err
    assert 'neither a journal' in told and 'none' in told and 'nobody' in told
    assert cli.main(['replay', 'empty', '--to', 'http://127.0.0.1:1']) == 2
    assert cli.main(['replay', 'empty', '--token', 'x']) == 2


def test_an_archive_of_another_client_is_read(tmp_path):
    document = {
        'log': {
            'entries': [
                {
                    'startedDateTime': '2026-01-01T00:00:00Z',
                    'request': {
                        'method': 'POST',
                        'url': 'https://nova.example:8774/v2.1/0123456789abcdef0123456789abcdef/servers/a%20b/action?x=1',
                        'headers': [{'name': 'X-OpenStack-Nova-API-Version', 'value': '2.3'}],
                        'postData': {'mimeType': 'application/json', 'text': '{"os-stop": null}'},
                    },
                    'response': {
                        'status': 200,
                        'headers': [],
                        'content': {'encoding': 'base64', 'text': 'eyJhIjogMX0='},
                    },
                },
                {
                    'request': {'method': 'GET', 'url': 'http://10.0.0.1:9292/v2/images?limit=1', 'headers': []},
                    'response': {'status': 200, 'headers': []},
                },
                {
                    'request': {'method': 'GET', 'url': 'https://net.example/v2.0/ports', 'headers': []},
                    'response': {'status': 0, 'headers': []},
                },
            ]
        }
    }
    (tmp_path / 'x.har').write_text(json.dumps(document))
    stop, images, ports = read(tmp_path / 'x.har')
    assert (stop.number, stop.service, stop.operation) == (1, 'compute', 'POST /servers/{server_id}/action os-stop')
    assert (stop.path, stop.query, stop.shown) == ('/servers/a b/action', 'x=1', {'a': 1})
    assert (images.service, images.operation) == ('image', 'GET /images')
    assert (ports.service, ports.operation, ports.status) == ('network', 'GET /ports', None)


@pytest.mark.parametrize(
    ('expected', 'given', 'told'),
    [
        ({'a': 1}, {'a': 2.5}, []),
        ({'a': None}, {'a': 'x'}, ['a: string instead of null']),
        ({'a': {'b': {'c': 1}}}, {'a': {}}, ['a.b: missing']),
        ({'a': {}}, {'a': {'b': [1]}}, ['a.b: not expected']),
        ({'a': [{'b': 1}]}, {'a': []}, []),
        ({'a': [{'b': 1}, {'b': None}]}, {'a': [{'b': None}]}, []),
        ({'a': [{'b': 1}]}, {'a': [{'c': 1}]}, ['a[].b: missing', 'a[].c: not expected']),
        ({'a': [1]}, {'a': {'x': 1}}, ['a: object instead of array']),
        ({'a': 1}, [1], ['the body: array instead of object']),
        ({'a': True}, {'a': 'true'}, ['a: string instead of boolean']),
        (None, None, []),
    ],
)
def test_shapes_are_keys_and_types(expected, given, told):
    assert list(differences(expected, given)) == told


def test_ids_are_learnt_from_answers_side_by_side():
    ids = IDMapping()
    one, other = '0' * 32, '1' * 32
    servers = [{'id': 'aa', 'name': 'x'}, {'id': 'bb', 'name': 'y'}]
    ids.learn({'x': servers}, {'x': [{'id': 'dd', 'name': 'y'}, {'id': 'cc', 'name': 'x'}]}, 'x')
    ids.learn(
        {'port': {'device': one, 'ip': '10.0.0.4', 'name': 'same'}}, {'port': {'device': other, 'ip': '10.0.0.9'}}
    )
    ids.learn({'aggregate': {'id': 1}}, {'aggregate': {'id': 7}}, 'os-aggregates')
    assert ids.translate({'imageRef': ['aa', 'bb', 'aabb'], 'name': 'aa', f'k {one}': f'see {one}', 'n': 1}) == {
        'imageRef': ['cc', 'dd', 'aabb'],
        'name': 'aa',
        f'k {other}': f'see {other}',
        'n': 1,
    }
    assert ids.translate('10.0.0.4') == '10.0.0.9'
    assert ids.translate_path('/os-aggregates/1/action') == '/os-aggregates/7/action'
    assert ids.translate_path('/x/aa/y') == '/x/cc/y'
    assert ids.translate_path('/flavors/1') == '/flavors/1'


def test_something_that_will_do_stands_for_what_was_masked():
    masked = {'server': {'user_data': '***', 'adminPass': '***', 'personality': [{'contents': '***', 'path': '/x'}]}}
    server = plausible(masked)['server']
    assert server['user_data'] == server['personality'][0]['contents'] == 'bWFza2Vk'
    assert server['adminPass'] not in ('', '***') and server['personality'][0]['path'] == '/x'
