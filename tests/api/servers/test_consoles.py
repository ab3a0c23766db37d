"""Consoles: actions until 2.5, remote consoles from 2.6 on, and the look-up of tokens by proxies."""

import re
import uuid
from datetime import timedelta
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from computeapi.clock import utcnow
from computeapi.db.tables.servers import console_tokens

BOB = 'bob:project:member,reader'
MALFORMED = 'The server could not comply with the request since it is either malformed or otherwise incorrect.'
UUID = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'


@pytest.fixture
def conf(conf):
    """All kinds of consoles are enabled."""
    for group in ('spice', 'rdp', 'mks'):
        conf.set_override('enabled', True, group)
    conf.set_override('console_tls_port', 6970, 'simulated')
    return conf


@pytest.fixture
def server(servers):
    return servers.add()


@pytest.fixture
def act(api, server):
    """act('os-getVNCConsole', 'novnc')"""

    def post(name, kind, version='2.1', **more):
        return api.post(f'/servers/{server}/action', {name: {'type': kind}}, version, as_=BOB, **more)

    return post


@pytest.fixture
def remote(api, server):
    """remote('vnc', 'novnc', '2.8')"""

    def post(protocol, kind, version='2.104', server_id=server, as_=BOB):
        body = {'remote_console': {'protocol': protocol, 'type': kind}}
        return api.post(f'/servers/{server_id}/remote-consoles', body, version, as_=as_)

    return post


@pytest.fixture
def token(remote):
    """The token of a serial console."""
    return token_of(remote('serial', 'serial').json['remote_console']['url'])


def token_of(url):
    return re.search(UUID, unquote(url))[0]


def assert_refused(answer, message, status=400):
    fault = 'badRequest' if status == 400 else 'conflictingRequest'
    assert answer.json == {fault: {'code': status, 'message': message}}


# ------------------------------------------------------------------ opening


@pytest.mark.parametrize(
    ('action', 'kind', 'name'),
    [
        ('os-getVNCConsole', 'novnc', 'get-vnc-console-post-resp.json'),
        ('os-getSPICEConsole', 'spice-html5', 'get-spice-console-post-resp.json'),
        ('os-getSerialConsole', 'serial', 'get-serial-console-post-resp.json'),
    ],
)
def test_actions_until_2_5(act, sample, action, kind, name):
    expected = sample(f'os-remote-consoles/{name}')
    for version in ('2.1', '2.5'):
        answer = act(action, kind, version)
        assert answer.status == 200, answer
        assert without_token(answer.json['console']) == without_token(expected['console'])
    assert act(action, kind, '2.6').status == 404


def test_rdp_until_2_5(conf, act, api):
    conf.set_override('html5_proxy_base_url', 'http://example.com:6083/rdp', 'rdp')
    console = act('os-getRDPConsole', 'rdp-html5', '2.5').json['console']
    assert without_token(console) == {'type': 'rdp-html5', 'url': 'http://example.com:6083/rdp?token=TOKEN'}
    assert act('os-getRDPConsole', 'novnc', '2.5').status == 400
    assert act('os-getRDPConsole', 'rdp-html5', '2.6').status == 404
    assert api.post('/servers/1/action', {'os-getRDPConsole': {'type': 'rdp-html5'}}, '2.5').status == 404


def test_a_cloud_without_rdp_refuses_it_whoever_asks_for_whatever_server(conf, api, legacy):
    conf.set_override('enabled', False, 'rdp')
    body = {'os-getRDPConsole': {'type': 'rdp-html5'}}
    for answer in (api.post('/servers/1/action', body, '2.5'), legacy.post('/servers/1/action', body)):
        assert_refused(answer, MALFORMED)
    assert api.post('/servers/1/action', body, '2.6').status == 404


def test_actions_on_v2(legacy, server):
    answer = legacy.post(f'/servers/{server}/action', {'os-getVNCConsole': {'type': 'novnc', 'other': 1}}, as_=BOB)
    assert answer.json['console']['type'] == 'novnc'
    body = {'remote_console': {'protocol': 'vnc', 'type': 'novnc'}}
    assert legacy.post(f'/servers/{server}/remote-consoles', body, as_=BOB).status == 404


@pytest.mark.parametrize(
    ('version', 'protocol', 'kind', 'name'),
    [
        ('2.6', 'vnc', 'novnc', 'v2.6/create-vnc-console-resp.json'),
        ('2.8', 'mks', 'webmks', 'v2.8/create-mks-console-resp.json'),
        ('2.99', 'spice', 'spice-direct', 'v2.99/create-spice-direct-console-resp.json'),
    ],
)
def test_remote_consoles(conf, remote, sample, version, protocol, kind, name):
    conf.set_override('novncproxy_base_url', 'http://example.com:6080/vnc_auto.html', 'vnc')
    conf.set_override('mksproxy_base_url', 'http://example.com:6090/mks.html', 'mks')
    expected = sample(f'os-remote-consoles/{name}')
    answer = remote(protocol, kind, version)
    assert answer.status == 200, answer
    assert without_token(answer.json['remote_console']) == without_token(expected['remote_console'])


def without_token(console):
    return console | {'url': re.sub(UUID, 'TOKEN', console['url'])}


def test_a_proxy_may_have_a_query_of_its_own(conf, remote):
    conf.set_override('novncproxy_base_url', 'https://cloud/vnc.html?autoconnect=true', 'vnc')
    url = remote('vnc', 'novnc').json['remote_console']['url']
    assert parse_qs(urlsplit(url).query) == {'autoconnect': ['true'], 'path': [f'?token={token_of(url)}']}


@pytest.mark.parametrize(
    ('version', 'protocol', 'kind', 'message'),
    [
        ('2.7', 'mks', 'webmks', "'mks' is not one of ['vnc', 'spice', 'serial', 'rdp']"),
        ('2.98', 'spice', 'spice-direct', "'spice-direct' is not one of ['novnc', 'xvpvnc', 'spice-html5', 'serial',"),
        ('2.104', 'vnc', 'serial', 'Invalid console type serial'),
        ('2.104', 'vnc', 'xvpvnc', 'Invalid console type xvpvnc'),
        ('2.104', 'rdp', 'novnc', 'Invalid console type novnc'),
        ('2.104', 'vnc', 'xpvnc', "'xpvnc' is not one of ["),
    ],
)
def test_kinds_that_there_are_not(remote, version, protocol, kind, message):
    answer = remote(protocol, kind, version)
    assert answer.status == 400 and message in answer.text, answer


@pytest.mark.parametrize(
    ('group', 'protocol', 'kind'),
    [
        ('vnc', 'vnc', 'novnc'),
        ('spice', 'spice', 'spice-html5'),
        ('spice', 'spice', 'spice-direct'),
        ('serial_console', 'serial', 'serial'),
        ('mks', 'mks', 'webmks'),
    ],
)
def test_consoles_that_are_switched_off(conf, remote, group, protocol, kind):
    conf.set_override('enabled', False, group)
    assert_refused(remote(protocol, kind), f'Unavailable console type {kind}.')


def test_a_cloud_without_rdp_says_no_more_about_it(conf, remote, servers):
    conf.set_override('enabled', False, 'rdp')
    for kind in ('rdp-html5', 'novnc'):
        assert_refused(remote('rdp', kind), MALFORMED)
    assert_refused(remote('rdp', 'rdp-html5', server_id=servers.add(host=None, vm_state='error')), MALFORMED)


def test_a_server_without_a_host_has_no_console(servers, remote):
    server_id = servers.add(host=None, vm_state='error')
    assert_refused(remote('vnc', 'novnc', server_id=server_id), f'Instance {server_id} is not ready', 409)


@pytest.mark.parametrize('task_state', ['deleting', 'migrating'])
def test_a_server_that_is_about_to_leave_its_host_has_no_console(servers, server, remote, act, task_state):
    servers.change(server, task_state=task_state)
    text = f"Cannot 'get_vnc_console' instance {server} while it is in task_state {task_state}"
    assert_refused(act('os-getVNCConsole', 'novnc'), text, 409)
    assert_refused(remote('vnc', 'novnc'), text, 409)
    servers.change(server, task_state='powering-off')
    assert remote('vnc', 'novnc').status == 200


def test_who_may_open_a_console(remote):
    assert remote('vnc', 'novnc', as_='carol:project:reader').status == 403
    assert remote('vnc', 'novnc', as_='carol:other').status == 404


# ------------------------------------------------------------------ tokens


def test_where_a_token_leads(api, server, token, sample, shape):
    expected = sample('os-console-auth-tokens/v2.31/get-console-connect-info-get-resp.json')
    for version in ('2.31', '2.98', '2.99'):
        answer = api.get(f'/os-console-auth-tokens/{token}', version)
        assert answer.status == 200 and shape(answer.json) == shape(expected), answer
        assert answer.json['console']['instance_uuid'] == server


def test_the_port_for_tls(api, remote, sample, shape):
    token = token_of(remote('spice', 'spice-direct').json['remote_console']['url'])
    expected = sample('os-console-auth-tokens/v2.99/get-console-connect-info-get-resp.json')
    assert shape(api.get(f'/os-console-auth-tokens/{token}', '2.99').json) == shape(expected)
    assert 'tls_port' not in api.get(f'/os-console-auth-tokens/{token}', '2.98').json['console']


def test_only_administrators_see_where_a_token_leads(api, token):
    answer = api.get(f'/os-console-auth-tokens/{token}', '2.31', as_=BOB)
    assert answer.status == 403


def test_only_tokens_of_rdp_are_shown_before_2_31(api, legacy, remote, server, token):
    rdp = token_of(remote('rdp', 'rdp-html5', '2.6').json['remote_console']['url'])
    for answer in (api.get(f'/os-console-auth-tokens/{rdp}?x=1', '2.30'), legacy.get(f'/os-console-auth-tokens/{rdp}')):
        assert answer.status == 200 and answer.json['console']['instance_uuid'] == server
    assert api.get(f'/os-console-auth-tokens/{rdp}', '2.31').status == 200
    assert api.get(f'/os-console-auth-tokens/{rdp}', '2.30', as_=BOB).status == 403
    refused = api.get(f'/os-console-auth-tokens/{token}', '2.30')
    assert refused.status == 401 and 'details are not accessible' in refused.json['unauthorized']['message']
    assert api.get('/os-console-auth-tokens/x', '2.30').status == 404


def test_no_tokens_are_shown_before_2_31_where_there_is_no_rdp(conf, api, legacy, token):
    conf.set_override('enabled', False, 'rdp')
    answers = [
        api.get(f'/os-console-auth-tokens/{token}?x=1', '2.30', as_=BOB),
        legacy.get('/os-console-auth-tokens/x'),
    ]
    for answer in answers:
        assert_refused(answer, MALFORMED)


def test_unknown_parameters(api, token):
    assert api.get(f'/os-console-auth-tokens/{token}?x=1', '2.98').status == 200
    assert api.get(f'/os-console-auth-tokens/{token}?x=1', '2.99').status == 400


@pytest.mark.parametrize('token', [str(uuid.UUID(int=0)), 'x' * 5000, '%C3%A9'])
def test_unknown_tokens(api, store, token):
    answer = api.get(f'/os-console-auth-tokens/{token}', '2.104')
    assert answer.json == {'itemNotFound': {'code': 404, 'message': 'Token not found'}}


def test_a_token_is_valid_for_a_while(service, api, token):
    service.cloud.consoles.clock = lambda: utcnow() + timedelta(seconds=590)
    assert api.get(f'/os-console-auth-tokens/{token}', '2.31').status == 200
    service.cloud.consoles.clock = lambda: utcnow() + timedelta(seconds=601)
    assert api.get(f'/os-console-auth-tokens/{token}', '2.31').status == 404


def test_expired_tokens_do_not_pile_up(service, remote, stored):
    remote('vnc', 'novnc')
    service.cloud.consoles.clock = lambda: utcnow() + timedelta(seconds=601)
    remote('vnc', 'novnc')
    assert len(stored()) == 1


def test_a_token_does_not_follow_its_server_to_another_host(servers, server, api, token):
    servers.change(server, host='compute2')
    assert api.get(f'/os-console-auth-tokens/{token}', '2.31').status == 404


def test_a_token_is_not_kept_in_the_clear(token, stored):
    (row,) = stored()
    assert token not in str(row)


def test_a_token_is_not_logged(api, token, caplog):
    caplog.set_level('INFO')
    for as_ in ('admin:admin', BOB):
        api.get(f'/os-console-auth-tokens/{token}', '2.31', as_=as_)
    assert token not in caplog.text and caplog.text.count('/v2.1/os-console-auth-tokens/{id}"') == 2


def test_a_token_is_not_logged_where_nothing_is_found_at_it(api, token, caplog):
    caplog.set_level('INFO')
    path = f'/os-console-auth-tokens/{token}'
    api.get(path, 'nonsense')
    api.get(f'{path}/', '2.31')
    api.get(f'{path}/more', '2.31')
    api.delete(path, '2.31')
    assert token not in caplog.text and caplog.text.count('/v2.1/os-console-auth-tokens/{id}') == 4


def test_tokens_go_with_their_server(settle, server, api, token, stored):
    assert api.delete(f'/servers/{server}').status == 204
    settle()
    assert api.get(f'/os-console-auth-tokens/{token}', '2.31').status == 404 and stored() == []


@pytest.fixture
def stored(store):
    def rows():
        with store.read() as connection:
            return connection.execute(console_tokens.select()).all()

    return rows
