"""The journal: recorded requests without secrets, filtered, exported, counted and checked."""

import base64
import json
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from urllib.parse import urlsplit

import pytest
import requests

from computeapi.errors import Invalid, NotFound
from computeapi.kit import shell
from computeapi.kit.journal import Journal
from computeapi.kit.journal.recorder import MAX_BODY_BYTES, Recorder
from computeapi.kit.variables import TOKEN_VARIABLE, URL_VARIABLE
from computeapi.testing import Cloud
from tests.kit.conftest import HTTP

SECRET = 'hunter22'


@pytest.fixture
def journal(http, cloud):
    """The requests after the login."""
    cloud.journal.clear()
    return cloud.journal


def test_requests_are_counted_by_their_operation(http, journal):
    server_id = http.boot('one')
    http.post(f'/v2.1/servers/{server_id}/action', {'os-stop': None})
    http.post(f'/v2.1/servers/{server_id}/action', {'lock': None})
    http.post(f'/v2.1/servers/{server_id}/action', {'nonsense': None})
    http.get(f'/compute/v2.1/servers/{server_id}')
    assert journal.count() == len(journal) == 6
    assert journal.count('POST /servers') == 1
    assert journal.count('GET /servers/{server_id}') == journal.count('GET /servers/{any}') == 1
    assert journal.count('POST /servers/{id}/action os-stop') == 1
    assert journal.count('POST /servers/{server_id}/action {os-stop}') == 1
    assert journal.count('POST /servers/{id}/action') == 3
    assert journal.count('GET /images', service='image') == 1
    assert journal.count('GET /images', service='compute') == 0
    assert journal.count('os-stop') == 1
    assert journal.count('DELETE /servers/{id}') == 0


def test_a_request_is_waited_for(http, journal):
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(journal.wait_for, 'POST /servers', count=2, status=202)
        http.boot('one')
        assert not waiting.done()
        http.boot('two')
        assert waiting.result(30).request.body['server']['name'] == 'two'
    assert journal.wait_for('POST /servers').number == journal.last('POST /servers').number
    with pytest.raises(TimeoutError, match='There are 2 such requests among\n'):
        journal.wait_for('POST /servers', count=3, timeout=0)
    with pytest.raises(Invalid, match='did you mean POST /servers'):
        journal.wait_for('POST /serverz')


@pytest.mark.parametrize(
    ('asked', 'told'),
    [
        ({'operation': 'POST /serverz'}, 'did you mean POST /servers?'),
        ({'operation': 'os-stopp'}, 'did you mean os-stop?'),
        ({'operation': 'POST'}, 'There is no operation POST'),
        ({'operation': ''}, 'There is no operation'),
        ({'operation': 'POST /servers', 'service': 'volume'}, 'There is no operation POST /servers'),
        ({'service': 'computer'}, 'there are compute, identity'),
    ],
)
def test_what_there_is_not_is_told_and_not_counted(http, cloud, journal, asked, told):
    # Otherwise `assert journal.count('DELETE /serverz') == 0` would hold whatever the client does.
    with pytest.raises(Invalid) as refused:
        journal.count(**asked)
    assert told in str(refused.value)
    answer = requests.get(f'{cloud.url}/control/journal', asked, headers={'X-Control-Token': cloud.control_token})
    assert answer.status_code == 400


def test_entries_are_chosen(http, cloud, journal):
    http.boot('one')
    http.log_in('demo')
    number = journal.last().number
    http.get('/v2.1/os-hypervisors')
    http.get('/v2.1/servers?name=web')
    assert [entry.status for entry in journal.entries(service='compute')] == [202, 403, 200]
    assert [entry.path for entry in journal.entries(status=403)] == ['/v2.1/os-hypervisors']
    assert [entry.operation for entry in journal.entries(since=number)] == ['GET /os-hypervisors', 'GET /servers']
    mine = journal.last('GET /servers')
    assert {entry.project for entry in journal.entries(project=mine.project, user=mine.user)} == {mine.project}
    assert [*journal.entries(user='demo', since=number)] == [*journal.entries(project='demo', since=number)]
    assert journal.count(user='demo', status='403') == journal.count(project='demo', method='get', status=200) == 1
    assert len(journal.entries(path='/servers', method='GET')) == 1
    with pytest.raises(TypeError, match='colour'):
        journal.entries(colour='red')
    with pytest.raises(NotFound, match='GET /v2.1/servers'):
        journal.last('DELETE /servers/{id}')


def test_an_entry_has_all_that_was_said(http, cloud, journal):
    http.get('/v2.1/flavors?limit=1', headers={'OpenStack-API-Version': 'compute latest'})
    entry = journal.last()
    assert (entry.method, entry.path, entry.query, entry.status) == ('GET', '/v2.1/flavors', 'limit=1', 200)
    assert (entry.microversion_asked, entry.microversion_used) == ('latest', '2.104')
    assert entry.response.header('content-type') == 'application/json'
    assert len(entry.response.body['flavors']) == 1
    assert 0 < entry.duration < 30
    http.boot('one')
    assert journal.last().request.body['server']['name'] == 'one'
    assert str(journal.last()).endswith('POST /v2.1/servers 202 (POST /servers at 2.96)')
    http.get('/v2/flavors')
    assert (journal.last().operation, journal.last().microversion_used) == ('GET /flavors', None)
    http.get('/no/where')
    assert (journal.last().operation, journal.last().status) == (None, 300)


@pytest.mark.parametrize('tag', ['\u00e9', '\u044f'])
def test_names_in_any_script_are_known(http, journal, tag):
    http.get(f'/v2.1/servers/x/tags/{tag}')
    assert journal.last().path == f'/v2.1/servers/x/tags/{tag}'
    assert journal.count('GET /servers/{id}/tags/{tag}') == 1


def test_paths_of_every_service_are_known(http, journal):
    paths = {
        '/v2.1/': 'GET /',
        '/v2.1//servers': 'GET /servers',
        '/identity/v3/users/x': 'GET /users/{user_id}',
        '/networking/v2.0/networks': 'GET /networks',
        '/volume/v3/volumes/detail': 'GET /volumes/detail',
        '/share/v2/shares': 'GET /shares',
        '/image/v2/images/x/members': 'GET /images/{image_id}/members',
        '/identity': None,
        '/metadata/x': None,
    }
    for path in paths:
        http.get(path)
    assert [entry.operation for entry in journal.entries()] == list(paths.values())
    services = ['compute', 'compute', 'identity', 'network', 'volume', 'share', 'image', 'identity', 'compute']
    assert [entry.service for entry in journal.entries()] == services


# ------------------------------------------------------------------ secrets


def tell_secrets(http):
    """Send SECRET in every place where clients send secrets, and in some where they should not."""
    encoded = base64.b64encode(SECRET.encode()).decode()
    server_id = http.boot('one', adminPass=SECRET, metadata={'db_password': SECRET}, user_data=encoded)
    server = {'name': 'x', 'flavorRef': '1', 'imageRef': 'x', 'personality': [{'path': '/x', 'contents': encoded}]}
    http.post('/v2.1/servers', {'server': server})
    http.post(f'/v2.1/servers/{server_id}/action', {'changePassword': {'adminPass': SECRET}})
    http.post(f'/v2.1/servers/{server_id}/action', {'rebuild': {'adminPass': {'nested': [SECRET]}, 'imageRef': '1'}})
    http.post(f'/v2.1/servers/{server_id}/action', {'changePassword': {'adminPass': [SECRET]}})
    user = http.post('/identity/v3/users', {'user': {'name': 'x', 'password': SECRET}}).json()['user']
    http.post(f'/identity/v3/users/{user["id"]}/password', {'user': {'password': 'y', 'original_password': SECRET}})
    http.post('/identity/v3/credentials', {'credential': {'type': 'x', 'blob': SECRET, 'user_id': user['id']}})
    http.get('/identity/v3/auth/tokens', headers={'X-Subject-Token': SECRET})
    http.get('/v2.1/servers', headers={'X-Auth-Token': SECRET, 'X-Service-Token': SECRET, 'Cookie': f'a={SECRET}'})
    http.get('/v2.1/servers', auth=('admin', SECRET), headers={'X-Auth-Token': None})
    http.get('/v2.1/servers', params={'auth_token': SECRET, 'password': SECRET})
    http.get(f'/v2.1/os-console-auth-tokens/{SECRET}/')
    http.get(f'/identity/v2.0/tokens/{SECRET}')
    http.session.post(f'{http.cloud.url}/v2.1/servers', data='{"adminPass": "' + SECRET, timeout=30)
    plain = {'Content-Type': 'text/plain'}
    http.session.post(f'{http.cloud.url}/v2.1/servers', '{"server": {"adminPass": "' + SECRET + '"}}', headers=plain)
    http.session.post(f'{http.cloud.url}/v2.1/servers', f'adminPass={SECRET}', headers=plain)
    http.request('PATCH', '/image/v2/images/x', [{'op': 'add', 'path': '/x_password', 'value': SECRET}])
    http.post('/identity/v3/auth/tokens', {'auth': {'identity': {'methods': ['token'], 'token': {'id': SECRET}}}})
    return [encoded]


def answered_secrets(http):
    """Make the cloud generate secrets and return them."""
    token = http.session.headers['X-Auth-Token']
    server_id = http.boot('three')
    while http.get(f'/v2.1/servers/{server_id}').json()['server']['status'] != 'ACTIVE':
        time.sleep(0.02)
    made = http.post('/v2.1/servers', {'server': http.journal_body}).json()['server']['adminPass']
    console = {'remote_console': {'protocol': 'vnc', 'type': 'novnc'}}
    url = http.post(f'/v2.1/servers/{server_id}/remote-consoles', console).json()['remote_console']['url']
    console_token = urlsplit(url).query.partition('token=')[2] or url
    http.get(f'/v2.1/os-console-auth-tokens/{console_token}')
    key = http.post('/v2.1/os-keypairs', {'keypair': {'name': 'k'}}, headers={'OpenStack-API-Version': 'compute 2.1'})
    private = key.json()['keypair']['private_key'].splitlines()[1]
    user_id = http.get('/identity/v3/auth/tokens', headers={'X-Subject-Token': token}).json()['token']['user']['id']
    credential = {'application_credential': {'name': 'a'}}
    path = f'/identity/v3/users/{user_id}/application_credentials'
    secret = http.post(path, credential).json()['application_credential']['secret']
    return [token, made, console_token, private, secret]


def exports(http, journal, folder):
    """Every representation of the journal's content."""
    yield repr(journal)
    yield repr(journal.entries())
    yield repr(journal.findings(0))
    for name in ('x.har', 'x.jsonl'):
        journal.save(folder / name)
        yield (folder / name).read_text()
    for path in ('/journal', '/journal.har', '/journal.jsonl', '/journal/findings?repeats=0', '/journal/coverage'):
        answer = http.control('GET', path)
        assert answer.status_code == 200
        yield answer.text


def test_no_secret_comes_out_of_it(http, journal, tmp_path):
    [image] = http.get('/image/v2/images').json()['images']
    http.journal_body = {'name': 'x', 'flavorRef': '1', 'imageRef': image['id'], 'networks': 'none'}
    secrets = [SECRET, *tell_secrets(http), *answered_secrets(http)]
    assert all(len(secret) >= 8 for secret in secrets)
    asked = len(journal)
    assert asked > 20
    for text in exports(http, journal, tmp_path):
        for secret in secrets:
            assert secret not in text, text[max(0, text.index(secret) - 300) : text.index(secret) + 50]
    assert '***' in repr(journal.entries())


def test_a_secret_is_masked_however_a_message_has_it(http, journal):
    secret = 'it\'s "qüoted\\'
    for server in (
        {'adminPass': secret},
        {'adminPass': {'x': [secret]}, 'name': 'x', 'flavorRef': '1', 'imageRef': ''},
    ):
        message = http.post('/v2.1/servers', {'server': server}).json()['badRequest']['message']
        assert 'qüoted' in message
        assert 'qüoted' not in repr(journal.last()) + str(journal.last().response.body)
        assert '***' in journal.last().response.body['badRequest']['message']


def test_what_is_no_secret_stays(http, journal):
    http.log_in()
    login = journal.last('POST /auth/tokens')
    user = login.request.body['auth']['identity']['password']['user']
    assert (user['name'], user['password']) == ('admin', '***')
    assert login.response.header('X-Subject-Token') == '***'
    assert login.response.body['token']['catalog']
    http.get('/v2.1/servers?name=a&name=b%20c')
    assert journal.last().query == 'name=a&name=b%20c'


# ------------------------------------------------------------------ bodies and bounds


def test_of_images_only_the_length_is_kept(http, cloud, journal):
    facts = {'name': 'mine', 'disk_format': 'raw', 'container_format': 'bare'}
    image_id = http.post('/image/v2/images', facts).json()['id']
    data = b'{"a": 1}' * 200_000
    http.upload(image_id, data)
    upload = journal.last()
    assert (upload.operation, upload.status) == ('PUT /images/{image_id}/file', 204)
    assert (upload.request.body, upload.request.length) == (None, len(data))
    assert http.get(f'/image/v2/images/{image_id}/file').content == data
    download = journal.last()
    assert (download.response.body, download.response.length) == (None, len(data))
    content = cloud.journal.har()['log']['entries'][-1]['response']['content']
    assert (content['size'], content['text']) == (len(data), '')


def ask(app, path='/v2.1/servers', **more):
    """The response of an app, without a network."""
    environ = {'REQUEST_METHOD': 'GET', 'PATH_INFO': path, 'QUERY_STRING': '', 'wsgi.input': None, **more}
    answer = app(environ, lambda status, headers, exc_info=None: None)
    try:
        return b''.join(answer)
    finally:
        getattr(answer, 'close', bool)()


def test_long_documents_are_not_kept():
    def app(environ, start_response):
        start_response('200 OK', [('Content-Type', 'application/json')])
        yield b'["'
        yield b'x' * MAX_BODY_BYTES
        yield b'"]'

    journal = Journal()
    assert len(ask(Recorder(app, journal))) == MAX_BODY_BYTES + 4
    entry = journal.last()
    assert (entry.response.data, entry.response.length) == (b'', MAX_BODY_BYTES + 4)


def test_it_holds_so_much_and_counts_the_rest():
    def app(environ, start_response):
        start_response('200 OK', [('Content-Type', 'application/json')])
        return [b'["', b'x' * 1000, b'"]']

    journal = Journal(most_entries=5)
    recorded = Recorder(app, journal)
    for _ in range(8):
        ask(recorded)
    assert [entry.number for entry in journal.entries()] == [4, 5, 6, 7, 8]
    assert journal.forgotten == 3
    [servers] = [each for each in journal.coverage().operations if each.operation == 'GET /servers']
    assert servers.requests == 8
    small = Journal(most_bytes=5000)
    recorded = Recorder(app, small)
    for _ in range(8):
        ask(recorded)
    assert (len(small), small.forgotten) == (2, 6)
    small.clear()
    assert (len(small), small.forgotten) == (0, 0)
    small.on = False
    ask(recorded)
    assert len(small) == 0


def test_what_ends_without_an_answer_is_in_it_too():
    def failing(environ, start_response):
        raise ConnectionResetError

    def breaking(environ, start_response):
        start_response('200 OK', [])
        yield b'half'
        raise ConnectionResetError

    journal = Journal()
    for app in (failing, breaking):
        with pytest.raises(ConnectionResetError):
            ask(Recorder(app, journal))
    assert [(entry.status, entry.error) for entry in journal.entries()] == [(None, 'ConnectionResetError')] * 2
    assert 'ConnectionResetError' in repr(journal)
    assert journal.har()['log']['entries'][0]['response']['status'] == 0


def test_a_reset_forgets_it_and_a_restore_does_not(http, cloud, journal):
    cloud.snapshot('one')
    http.boot()
    cloud.restore('one')
    assert journal.count('POST /servers') == 1
    cloud.reset()
    assert repr(journal) == '0 requests'


# ------------------------------------------------------------------ exports


def test_a_file_has_each_request_as_a_line(tmp_path):
    path = tmp_path / 'x.jsonl'
    with Cloud(journal=path) as cloud:
        http = HTTP(cloud)
        http.boot()
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        cloud.reset()
        assert lines == [json.loads(line) for line in path.read_text().splitlines()]
        http.session.close()
    assert [line['operation'] for line in lines] == ['POST /auth/tokens', 'GET /images', 'POST /servers']
    assert path.stat().st_mode & 0o077 == 0
    assert cloud.passwords['admin'] not in path.read_text()


STRINGS = {'name', 'value', 'method', 'url', 'httpVersion', 'statusText', 'redirectURL', 'mimeType', 'startedDateTime'}
NUMBERS = {'time', 'status', 'headersSize', 'bodySize', 'size', 'send', 'wait', 'receive'}
REQUIRED = {
    'log': {'version', 'creator', 'entries'},
    'creator': {'name', 'version'},
    'entries': {'startedDateTime', 'time', 'request', 'response', 'cache', 'timings'},
    'request': {'method', 'url', 'httpVersion', 'cookies', 'headers', 'queryString', 'headersSize', 'bodySize'},
    'response': {
        *('status', 'statusText', 'httpVersion', 'cookies', 'headers', 'content', 'redirectURL'),
        *('headersSize', 'bodySize'),
    },
    'content': {'size', 'mimeType'},
    'postData': {'mimeType', 'text'},
    'timings': {'send', 'wait', 'receive'},
    'headers': {'name', 'value'},
    'queryString': {'name', 'value'},
}
OPTIONAL = {'request': {'postData'}, 'content': {'text', 'comment'}, 'postData': {'comment'}}
"""The required and optional members of HAR 1.2."""


def check_archive(part, name):
    for each in part if isinstance(part, list) else [part]:
        own = {key for key in each if not key.startswith('_')}
        assert REQUIRED.get(name, set()) <= own <= REQUIRED.get(name, set()) | OPTIONAL.get(name, set()), name
        for key in own:
            if key in STRINGS:
                assert isinstance(each[key], str)
            elif key in NUMBERS:
                assert isinstance(each[key], int | float)
            elif isinstance(each[key], dict | list):
                check_archive(each[key], key)


def test_an_archive_is_one(http, journal, tmp_path):
    http.boot('näme')
    http.get('/v2.1/servers?name=n%C3%A4me&limit=1')
    http.delete('/v2.1/servers/no%20such%3F')
    journal.save(tmp_path / 'x.har')
    document = json.loads((tmp_path / 'x.har').read_text())
    check_archive(document['log'], 'log')
    assert document['log']['version'] == '1.2'
    images, boot, listed, deleted = document['log']['entries']
    assert datetime.fromisoformat(boot['startedDateTime']).tzinfo is not None
    assert boot['request']['url'] == f'{http.cloud.url}/v2.1/servers'
    assert json.loads(boot['request']['postData']['text'])['server']['name'] == 'näme'
    assert json.loads(boot['response']['content']['text'])['server']['id']
    assert boot['response']['redirectURL'].startswith(http.cloud.url)
    assert (boot['_operation'], boot['_service']) == ('POST /servers', 'compute')
    assert listed['request']['queryString'][0] == {'name': 'name', 'value': 'näme'}
    assert deleted['request']['url'].endswith('/servers/no%20such%3F')


def test_the_control_api_has_it(http, journal):
    http.boot()
    http.get('/v2.1/servers')
    http.get('/v2.1/servers/none')
    found = http.control('GET', '/journal?operation=GET /servers').json()
    assert (found['count'], found['forgotten'], found['entries'][0]['status']) == (1, 0, 200)
    assert http.control('GET', '/journal?status=404&service=compute').json()['count'] == 1
    assert len(http.control('GET', '/journal.jsonl?service=compute').text.splitlines()) == 3
    assert len(http.control('GET', '/journal.har?method=GET').json()['log']['entries']) == 3
    for wrong in ('status=x', 'colour=red', 'service=metering', 'since=-1', 'status=1&status=2', 'path='):
        assert http.control('GET', f'/journal?{wrong}').status_code == 400
    assert http.control('DELETE', '/journal').status_code == 204
    assert http.control('GET', '/journal').json() == {'entries': [], 'count': 0, 'forgotten': 0}
    assert http.control('GET', '/journal', token='').status_code == 401


def test_commands_choose_from_it(http, cloud, journal, monkeypatch, capsys):
    for name in (URL_VARIABLE, TOKEN_VARIABLE):
        monkeypatch.setenv(name, cloud.environ[name])
    http.boot()
    shell.run(['list-requests', '--operation', 'POST /servers', '--status', '202'])
    assert json.loads(capsys.readouterr().out)['count'] == 1
    shell.run(['export-journal', '--service', 'image'])
    assert json.loads(capsys.readouterr().out)['operation'] == 'GET /images'
    shell.run(['print-coverage'])
    assert capsys.readouterr().out.startswith('compute: 1 of ')


# ------------------------------------------------------------------ coverage and findings


def test_coverage_tells_operations_and_versions(http, journal):
    http.boot()
    for version in ('2.1', '2.2', '2.96'):
        http.get('/v2.1/servers/detail', headers={'OpenStack-API-Version': f'compute {version}'})
    http.get('/v2.1/flavors/none')
    coverage = journal.coverage()
    document = coverage.document()
    assert document['used'] == 3 < document['of']
    assert document['steps_used'] == 4 < document['steps']
    [servers] = [each for each in document['resources'] if each['resource'] == 'servers']
    assert servers['used'] == 2
    [detail] = [each for each in servers['covered'] if each['operation'] == 'GET /servers/detail']
    # Nothing changes for this operation at 2.2.
    assert (detail['requests'], detail['microversions'], detail['steps_used']) == (3, ['2.1', '2.2', '2.96'], 2)
    assert 'GET /flavors/{id}: 1 requests at 2.96, answered 404' in str(coverage)
    assert http.control('GET', '/journal/coverage').json() == document
    assert http.control('GET', '/journal/coverage.txt').text == f'{coverage}\n'
    assert 'image: 1 of' in http.control('GET', '/journal/coverage.txt?service=image').text
    with pytest.raises(NotFound, match='metering'):
        journal.coverage('metering')


def test_the_same_again_is_pointed_out(http, journal):
    for _ in range(4):
        http.get('/v2.1/flavors')
        http.get('/v2.1/os-keypairs')
        http.boot()
    assert journal.findings() == []
    for _ in range(4):
        http.get('/v2.1/flavors')
    [finding] = http.control('GET', '/journal/findings').json()['findings']
    assert finding['kind'] == 'repeated'
    assert finding['entries'] == [entry.number for entry in journal.entries('GET /flavors')[-4:]]
    assert 'GET /v2.1/flavors was requested 4 times' in finding['message']
    assert journal.findings(repeats=4) == []


def test_logging_in_again_and_again_is_pointed_out(http, journal):
    for _ in range(4):
        http.log_in()
    assert [finding.kind for finding in journal.findings()] == ['repeated']


def test_what_a_list_told_is_pointed_out(http, journal):
    flavors = [flavor['id'] for flavor in http.get('/v2.1/flavors').json()['flavors']]
    for flavor_id in flavors[:2]:
        http.get(f'/v2.1/flavors/{flavor_id}')
    assert journal.findings() == []
    http.get(f'/v2.1/flavors/{flavors[2]}')
    [finding] = journal.findings()
    assert (finding.kind, finding.entries) == ('n_plus_1', [entry.number for entry in journal.entries()])
    assert 'GET /v2.1/flavors was followed by GET /flavors/{id} for each of 3 members' in finding.message


def test_polling_in_a_hurry_is_pointed_out(http, cloud, journal):
    server_id = http.boot()
    while http.get(f'/v2.1/servers/{server_id}').json()['server']['status'] != 'ACTIVE':
        pass
    number = journal.count('GET /servers/{id}')
    kinds = [finding.kind for finding in journal.findings(repeats=1000)]
    assert kinds == (['polling'] if number > 3 else [])
