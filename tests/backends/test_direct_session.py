"""Sending requests with nothing but what keystoneauth has prepared."""

import threading
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
import requests
import webob

from computeapi.backends.direct_session import DirectSession, with_query
from computeapi.backends.neighbour import RetryingSession


class Quiet(WSGIRequestHandler):
    def log_message(self, *about):
        pass


def repeat(environ, start_response):
    """Answers with the request, and with a cookie."""
    req = webob.Request(environ)
    body = {'method': req.method, 'url': req.path_qs, 'headers': dict(req.headers), 'body': req.text}
    answer = webob.Response(json=body)
    answer.set_cookie('session', '1')
    if req.path == '/elsewhere':
        answer.status, answer.location = 302, '/'
    return answer(environ, start_response)


@pytest.fixture(scope='module')
def url():
    with make_server('127.0.0.1', 0, repeat, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield f'http://127.0.0.1:{server.server_port}'
        server.shutdown()
        thread.join()


@pytest.fixture
def session():
    with DirectSession(requests.Session().adapters) as session:
        yield session


def test_headers_are_those_given(session, url):
    given = {'Accept': 'application/json', 'User-Agent': 'computeapi'}
    for _ in range(2):
        sent = session.request('GET', f'{url}/ports', headers=given).json()['headers']
        # The first ones come from http.client and from the server.
        assert {name: value for name, value in sent.items() if value} == {
            'Host': url.removeprefix('http://'),
            'Accept-Encoding': 'identity',
            'Content-Type': 'text/plain',
            **given,
        }


def test_there_is_no_netrc(session, url, tmp_path, monkeypatch):
    netrc = tmp_path / 'netrc'
    netrc.write_text('machine 127.0.0.1 login somebody password secret')
    monkeypatch.setenv('NETRC', str(netrc))
    assert 'Authorization' in requests.get(url, timeout=10).json()['headers']
    assert 'Authorization' not in session.request('GET', url, headers={}).json()['headers']


@pytest.mark.parametrize(
    ('given', 'params', 'expected'),
    [
        (
            '/ports',
            {'device_id': ['a', 'b'], 'name': 'ü &=', 'limit': None},
            '/ports?device_id=a&device_id=b&name=%C3%BC+%26%3D',
        ),
        ('/ports?limit=1', {'marker': 7}, '/ports?limit=1&marker=7'),
        ('/ports', {}, '/ports'),
        ('/ports', None, '/ports'),
    ],
)
def test_parameters(session, url, given, params, expected):
    assert with_query(given, params) == expected
    assert session.request('GET', url + given, headers={}, params=params).json()['url'] == expected


@pytest.mark.parametrize('data', ['{"ü": 1}', '{"ü": 1}'.encode(), iter([b'{"', 'ü'.encode(), b'": 1}'])])
def test_bodies(session, url, data):
    sent = session.request('PUT', url, headers={'Content-Type': 'application/json'}, data=data).json()
    assert sent['headers']['Content-Type'] == 'application/json'
    if 'Transfer-Encoding' in sent['headers']:
        # The server does not read chunks.
        assert sent['headers']['Transfer-Encoding'] == 'chunked'
    else:
        assert sent['body'] == '{"ü": 1}'


def test_a_post_without_a_body_has_a_length(session, url):
    assert session.request('POST', url, headers={}).json()['headers']['Content-Length'] == '0'


def test_redirections_are_left_to_keystoneauth(session, url):
    assert session.request('GET', f'{url}/elsewhere', headers={}).status_code == 302
    keystoneauth = RetryingSession(session=session)
    assert keystoneauth.get(f'{url}/elsewhere', authenticated=False).json()['url'] == '/'


def test_a_stream_is_not_read_at_once(session, url):
    with session.request('GET', url, headers={}, stream=True) as response:
        assert not response._content_consumed
        assert b'"method": "GET"' in b''.join(response.iter_content(10)).replace(b'":"', b'": "')


def test_the_environment_is_read_once_for_each_host(session, monkeypatch):
    read, sent = [], []
    monkeypatch.setattr(
        requests.sessions, 'get_environ_proxies', lambda url, no_proxy: read.append(url) or {'http': 'p'}
    )
    monkeypatch.setattr(session, 'get_adapter', lambda url: Adapter(sent))
    monkeypatch.setenv('REQUESTS_CA_BUNDLE', '/ca.pem')
    for url in ('http://cinder:8776/v3/volumes', 'http://cinder:8776/v3/types?name=a', 'http://neutron/v2.0/ports'):
        session.request('GET', url, headers={}, timeout=5, verify=True)
    expected = {'proxies': {'http': 'p'}, 'stream': False, 'verify': '/ca.pem', 'cert': None, 'timeout': 5}
    assert sent == [expected] * 3
    assert read == ['http://cinder:8776', 'http://neutron']


class Adapter:
    def __init__(self, sent):
        self.sent = sent

    def send(self, request, **settings):
        self.sent.append(settings)
        return requests.Response()
