"""Logging in to the page: what a session may do, what it cannot be made to do, and when it ends."""

import orjson
import pytest
import requests
import webob

from computeapi.errors import DatabaseError
from computeapi.testing import Cloud
from computeapi.ui import sessions
from computeapi.ui.login import COOKIE, TOKENS, PageLogin, is_open
from computeapi.ui.permissions import PagePermissions
from computeapi.ui.sessions import PageSessions

OWN = {'X-Computeapi-Page': '1'}


@pytest.fixture(scope='module')
def cloud():
    with Cloud() as cloud:
        yield cloud


class Browser:
    """The cookies of a browser, and the header that the page's scripts send."""

    def __init__(self, cloud):
        self.cloud, self.session = cloud, requests.Session()

    def ask(self, path, method='GET', headers=OWN, **more):
        return self.session.request(method, f'{self.cloud.url}/ui{path}', headers=headers, timeout=30, **more)

    def log_in(self, user='demo', password=None, **more):
        given = {'user': user, 'password': password or self.cloud.passwords[user]}
        return self.ask('/session', 'POST', json=given, **more)

    @property
    def name(self):
        return self.session.cookies.get(COOKIE)


@pytest.fixture
def browser(cloud):
    return Browser(cloud)


@pytest.fixture
def logged_in(browser):
    assert browser.log_in().status_code == 200
    return browser


def test_nobody_is_logged_in_at_first(browser):
    assert browser.ask('/session').json() == {'login': True, 'session': None}
    assert browser.ask('/cloud/v2.1/servers').status_code == 401


def test_what_is_no_text_beside_a_session_is_in_nobodys_way(logged_in):
    jar = f'other=\xff; {COOKIE}={logged_in.name}; more="\\377"'.encode('latin-1')
    with requests.Session() as bare:
        headers = {**OWN, 'Cookie': jar}
        assert (
            bare.get(f'{logged_in.cloud.url}/ui/session', headers=headers, timeout=30).json()['session']['user']
            == 'demo'
        )
    assert logged_in.ask('/rules?project_id=%ff&%ff').status_code == 200


def test_a_session_asks_the_cloud_as_its_user(logged_in, cloud):
    shown = logged_in.ask('/session').json()['session']
    assert (shown['user'], shown['project']) == ('demo', 'demo') and 'admin' not in shown['roles']
    answer = logged_in.ask('/cloud/v2.1/os-keypairs', headers=OWN | {'OpenStack-API-Version': 'compute 2.104'})
    assert answer.json() == {'keypairs': []} and answer.headers['OpenStack-API-Version'] == 'compute 2.104'
    group = {'server_group': {'name': 'apart', 'policies': ['anti-affinity']}}
    made = logged_in.ask('/cloud/v2.1/os-server-groups', 'POST', json=group)
    assert made.json()['server_group']['name'] == 'apart' and made.headers['x-compute-request-id']
    assert logged_in.ask('/cloud/v2.1/os-services').status_code == 403


def test_a_session_asks_for_names_in_any_script(logged_in):
    for name, status in (('/servers/x/tags/%D1%8F', 404), ('/%FF', 404)):
        assert logged_in.ask(f'/cloud/v2.1{name}', 'DELETE', OWN).status_code == status


def test_its_cookie_is_for_nobody_else(browser):
    cookie = browser.log_in().headers['Set-Cookie']
    parts = [part.strip() for part in cookie.split(';')]
    assert {'HttpOnly', 'SameSite=Strict', 'Path=/ui/'} <= set(parts) and 'Secure' not in parts
    [seconds] = [int(part.partition('=')[2]) for part in parts if part.startswith('Max-Age=')]
    assert 0 < seconds <= sessions.MAX_SECONDS
    assert len(browser.name) >= 43


TOKEN = {
    'user': {'name': 'demo'},
    'project': {'name': 'demo'},
    'roles': [{'name': 'member'}],
    'issued_at': '2026-01-01T00:00:00.000000Z',
    'expires_at': '2026-01-01T00:00:20.000000Z',
}


def test_the_token_stays_between_the_service_and_itself():
    seen = []

    def cloud(environ, start_response):
        """Issues one token, and returns as much as it can of it."""
        seen.append(environ)
        told = webob.Response(json={'token': TOKEN}, status=201 if environ['PATH_INFO'] == TOKENS else 200)
        told.headers.update({'X-Subject-Token': 'secret', 'Set-Cookie': 'other=1', 'Access-Control-Allow-Origin': '*'})
        return told(environ, start_response)

    login = PageLogin(cloud, True)

    def ask(path, **more):
        request = webob.Request.blank(path, base_url='https://cloud.example', headers=OWN, **more)
        request.script_name, request.path_info = '/ui', path
        return request.get_response(login)

    given = orjson.dumps({'user': 'demo', 'password': 'right'})
    opened = ask('/session', method='POST', content_type='application/json', body=given)
    assert opened.status_int == 200, opened.text
    cookie = opened.headers['Set-Cookie']
    assert 'Max-Age=20' in cookie and 'secure' in cookie.lower()
    name = cookie.partition(';')[0]
    sent = {'HTTP_COOKIE': name, 'HTTP_X_AUTH_TOKEN': 'another', 'HTTP_AUTHORIZATION': 'Basic x'}
    asked = ask('/cloud/v2.1/servers', environ=sent)
    assert asked.status_int == 200 and asked.headers['Cache-Control'] == 'no-store'
    inside = seen[-1]
    assert inside['HTTP_X_AUTH_TOKEN'] == 'secret' and (inside['SCRIPT_NAME'], inside['PATH_INFO']) == (
        '',
        '/v2.1/servers',
    )
    assert 'HTTP_COOKIE' not in inside and 'HTTP_AUTHORIZATION' not in inside
    for answer in (opened, asked, ask('/session', environ=sent)):
        assert 'secret' not in f'{answer.headers} {answer.text}'
    assert not {'Set-Cookie', 'Access-Control-Allow-Origin'} & set(asked.headers)


def test_what_hands_out_tokens_is_not_asked(logged_in):
    assert logged_in.ask('/cloud/identity/v3/auth/tokens', 'POST', json={}).status_code == 404


@pytest.mark.parametrize(
    'headers',
    [
        {},
        {'X-Computeapi-Page': '0'},
        OWN | {'Sec-Fetch-Site': 'cross-site'},
        OWN | {'Sec-Fetch-Site': 'same-site'},
        OWN | {'Origin': 'http://127.0.0.1:1'},
        OWN | {'Origin': 'null'},
    ],
)
@pytest.mark.parametrize('method', ['GET', 'POST', 'DELETE'])
def test_no_other_place_asks_in_its_name(logged_in, headers, method):
    """A page at another port of this host sends the cookie with its requests."""
    for path in ('/session', '/cloud/v2.1/servers'):
        answer = logged_in.ask(path, method, headers=headers, json={'server': {}})
        assert answer.status_code == 403 and 'Access-Control-Allow-Origin' not in answer.headers
    assert logged_in.ask('/session').json()['session']


def test_a_browser_is_not_told_that_other_places_may(logged_in):
    asked = {'Origin': 'http://evil.example', 'Access-Control-Request-Method': 'POST'}
    asked['Access-Control-Request-Headers'] = 'x-computeapi-page'
    answer = logged_in.ask('/cloud/v2.1/servers', 'OPTIONS', headers=asked)
    assert answer.status_code == 403 and not [each for each in answer.headers if each.startswith('Access-Control')]


def test_the_page_itself_is_let_in(logged_in, cloud):
    headers = OWN | {'Origin': cloud.url, 'Sec-Fetch-Site': 'same-origin'}
    assert logged_in.ask('/cloud/v2.1/servers', headers=headers).status_code == 200


def test_no_token_that_a_page_brings_counts(logged_in, cloud):
    token = cloud.connection('admin').session.get_token()
    answer = logged_in.ask('/cloud/v2.1/os-services', headers=OWN | {'X-Auth-Token': token})
    assert answer.status_code == 403


def test_logging_out_ends_the_session_and_its_token(logged_in):
    name = logged_in.name
    answer = logged_in.ask('/session', 'DELETE')
    assert answer.json()['session'] is None and logged_in.name is None
    logged_in.session.cookies.set(COOKIE, name)
    assert logged_in.ask('/cloud/v2.1/servers').status_code == 401


def test_who_logs_in_gets_a_session_of_another_name(logged_in):
    before = logged_in.name
    logged_in.session.cookies.clear()
    logged_in.session.cookies.set(COOKIE, 'chosen', path='/ui/')
    assert logged_in.log_in().status_code == 200
    names = {cookie.value for cookie in logged_in.session.cookies} - {'chosen'}
    assert len(names) == 1 and before not in names


def test_a_wrong_password_opens_nothing(browser):
    answer = browser.log_in(password='wrong')
    assert answer.status_code == 401 and answer.json()['message'] and browser.name is None


@pytest.mark.parametrize(
    'body', [b'', b'no json', b'[]', b'{"user": "demo"}', b'{"user": 1, "password": 2}', b' ' * 5000 + b'{}']
)
def test_what_is_no_login(browser, body):
    headers = OWN | {'Content-Type': 'application/json'}
    assert browser.ask('/session', 'POST', headers=headers, data=body).status_code == 400


def test_a_form_of_another_place_is_no_login(browser):
    body = orjson.dumps({'user': 'demo', 'password': browser.cloud.passwords['demo']})
    answer = browser.ask('/session', 'POST', headers=OWN | {'Content-Type': 'text/plain'}, data=body)
    assert answer.status_code == 400 and browser.name is None


def test_wrong_passwords_count_by_the_address_that_a_proxy_tells(monkeypatch):
    monkeypatch.setenv('OS_OSLO_MIDDLEWARE__ENABLE_PROXY_HEADERS_PARSING', 'true')
    with Cloud() as cloud:
        browser = Browser(cloud)
        for header, form in (('X-Forwarded-For', '{}'), ('Forwarded', 'for={}')):

            def log_in(address, password=None, header=header, form=form):
                told = {header: form.format(address)}
                return browser.log_in('demo', password, headers=OWN | told).status_code

            while log_in('192.0.2.1', 'wrong') == 401:
                pass
            assert (log_in('192.0.2.1'), log_in('192.0.2.2')) == (429, 200)


@pytest.mark.parametrize(
    ('path', 'method', 'let'),
    [
        ('/v2.1/servers', 'POST', True),
        ('/v2.1', 'GET', True),
        ('/networking/v2.0/networks', 'GET', True),
        ('/networking/v2.0/networks', 'POST', False),
        ('/identity/v3/auth/tokens', 'POST', False),
        ('/identity/v3/auth/tokens', 'GET', False),
        ('/image/v2/images', 'GET', True),
        ('/image/v2/images/x/file', 'GET', False),
        ('/control/faults', 'GET', False),
        ('/v2.1/../control/faults', 'GET', False),
        ('/v2.1//servers', 'GET', False),
        ('/ui/session', 'GET', False),
        ('/metrics', 'GET', False),
    ],
)
def test_what_the_page_may_ask(path, method, let):
    assert is_open(path, method) == let


def test_sessions_end_and_are_not_many(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(sessions.time, 'monotonic', lambda: now[0])
    own = PageSessions()
    first = own.open('demo', 'demo', (), 'token', 10)
    long = own.open('demo', 'demo', (), 'token', 10 * sessions.MAX_SECONDS)
    now[0] = 11.0
    assert own.get(first) is None and own.get(long).token == 'token'
    assert 'token' not in repr(own.get(long))
    now[0] = sessions.MAX_SECONDS + 1
    assert own.get(long) is None
    names = [own.open('demo', 'demo', (), 'token', 1000) for _ in range(sessions.MAX_SESSIONS + 1)]
    assert own.get(names[0]) is None and all(map(own.get, names[1:]))


def test_who_logs_in_again_and_again_logs_out_nobody_else():
    own = PageSessions()
    first = own.open('admin', 'admin', (), 'token', 1000)
    for _ in range(sessions.MAX_SESSIONS + 1):
        own.open('demo', 'demo', (), 'token', 1000)
    assert own.get(first) is not None


def test_the_control_api_is_for_administrators(browser, cloud):
    browser.log_in('demo')
    assert browser.ask('/session').json()['session']['control'] is False
    assert browser.ask('/control/clock').status_code == 404
    browser.log_in('admin')
    assert browser.ask('/session').json()['session']['control'] is True
    assert browser.ask('/control/clock').json()['rate'] == 1
    stepped = browser.ask('/control/clock/step', 'POST', json={'seconds': 60})
    assert stepped.status_code == 200
    assert browser.ask('/control/clock', 'DELETE').status_code == 204
    assert cloud.control_token not in f'{stepped.headers} {stepped.text}'
    browser.log_in('demo')
    given = OWN | {'X-Control-Token': cloud.control_token}
    assert browser.ask('/control/clock', headers=given).status_code == 404
    assert browser.ask('/cloud/control/clock', headers=given).status_code == 404


@pytest.mark.parametrize('how', ['without the role', 'disabled', 'deleted'])
def test_the_control_api_is_not_for_former_administrators(browser, cloud, how):
    identity = cloud.connection('admin').identity
    project, role = identity.find_project('admin'), identity.find_role('admin')
    user = identity.create_user(name=how, password='secret', default_project_id=project.id)
    identity.assign_project_role_to_user(project, user, role)
    browser.log_in(how, 'secret')
    assert browser.ask('/control/clock').status_code == 200
    if how == 'disabled':
        identity.update_user(user, is_enabled=False)
    elif how == 'deleted':
        identity.delete_user(user)
    else:
        identity.unassign_project_role_from_user(project, user, role)
    assert browser.ask('/session').json()['session']['control'] is False
    assert browser.ask('/control/snapshots', 'POST', json={'name': how}).status_code == 404


@pytest.mark.parametrize('path', ['/session', '/control/clock'])
def test_while_the_database_is_away_the_page_is_asked_to_come_back(browser, cloud, monkeypatch, path):
    browser.log_in('admin')

    def is_administrator(*args):
        raise DatabaseError('away')

    monkeypatch.setattr(PagePermissions, 'is_administrator', is_administrator)
    answer = browser.ask(path)
    assert answer.status_code == 503 and int(answer.headers['Retry-After']) > 0
    monkeypatch.undo()
    assert browser.ask(path).status_code == 200


def test_an_administrator_controls_a_cloud_whose_tokens_have_expired(browser, cloud):
    browser.log_in('admin')
    assert browser.ask('/control/clock/step', 'POST', json={'seconds': 30 * 3600}).status_code == 200
    assert browser.ask('/control/clock', 'DELETE').status_code == 204


def test_who_looks_on_is_in_no_journal_and_meets_no_fault(browser, cloud):
    browser.log_in('demo')
    rule = cloud.faults.add(operation='GET /servers', status=503)
    before = len(cloud.journal.entries(operation='GET /servers'))
    look = OWN | {'X-Computeapi-Look': '1'}
    assert browser.ask('/cloud/v2.1/servers', headers=look).status_code == 200
    assert rule.hits == 0 and len(cloud.journal.entries(operation='GET /servers')) == before
    assert browser.ask('/cloud/v2.1/servers').status_code == 503
    assert rule.hits == 1 and len(cloud.journal.entries(operation='GET /servers')) == before + 1
    assert requests.get(f'{cloud.url}/v2.1/', headers=look, timeout=30).status_code == 200
    assert cloud.journal.entries(path='/v2.1/')
    rule.remove()


def test_what_is_slow_by_a_rule_comes_to_an_end_for_the_page_too(browser, cloud):
    with cloud.faults.add(path='*', delay=0.1) as rule:
        assert browser.log_in('demo').status_code == 200
        assert rule.hits == 1
        group = {'server_group': {'name': 'slow', 'policies': ['affinity']}}
        assert browser.ask('/cloud/v2.1/os-server-groups', 'POST', json=group).status_code == 200
        assert rule.hits == 2
        revoked = len(cloud.journal.entries('DELETE /auth/tokens'))
        assert browser.ask('/session', 'DELETE').json()['session'] is None
        assert rule.hits == 3 and len(cloud.journal.entries('DELETE /auth/tokens')) == revoked + 1


def test_what_is_changed_is_recorded_though_it_says_that_it_looks(browser, cloud):
    browser.log_in('demo')
    group = {'server_group': {'name': 'seen', 'policies': ['affinity']}}
    before = len(cloud.journal.entries(operation='POST /os-server-groups'))
    browser.ask('/cloud/v2.1/os-server-groups', 'POST', json=group, headers=OWN | {'X-Computeapi-Look': '1'})
    assert len(cloud.journal.entries(operation='POST /os-server-groups')) == before + 1


def test_the_rules_in_force_say_what_a_user_may_do(tmp_path):
    rules = {
        'os_compute_api:servers:stop': 'role:admin',
        'os_compute_api:servers:start': 'project_id:%(project_id)s',
        'os_compute_api:servers:detail:get_all_tenants': 'role:member',
    }
    (tmp_path / 'policy.yaml').write_text(orjson.dumps(rules).decode())
    with Cloud(options={('oslo_policy', 'policy_file'): str(tmp_path / 'policy.yaml')}) as cloud:
        browser = Browser(cloud)
        assert browser.ask('/rules').status_code == 401
        session = browser.log_in('demo').json()['session']
        assert (session['all'], session['admin']) == (True, False)
        refused = {'os_compute_api:servers:stop', 'os_compute_api:servers:start'}
        assert refused & set(session['refused']) == {'os_compute_api:servers:stop'}
        other = browser.ask('/rules', params={'project_id': 'other', 'user_id': 'other'}).json()
        assert refused <= set(other['refused'])
        assert browser.ask('/rules', 'POST', json={}).status_code == 405
        assert browser.log_in('admin').json()['session']['admin'] is True
        cloud.reset()
        assert browser.ask('/rules').status_code == 401
        assert browser.ask('/session').json()['session'] is None


def test_a_session_ends_with_its_token():
    with Cloud() as cloud:
        browser = Browser(cloud)
        browser.log_in('demo')
        cloud.reset()
        assert browser.ask('/cloud/v2.1/servers').status_code == 401
        assert browser.ask('/session').json()['session'] is None


def test_without_passwords_of_its_own_nobody_logs_in():
    with Cloud(options={('api', 'auth_strategy'): 'none'}) as cloud:
        browser = Browser(cloud)
        assert browser.ask('/session').json() == {'login': False, 'session': None}
        assert browser.log_in('admin', 'x').status_code == 405
