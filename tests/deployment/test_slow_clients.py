"""`computeapi serve` with slow, greedy or hostile clients: others are served meanwhile."""

import socket
import time

import pytest
import requests

from computeapi.serve.http.hub import UPLOADS

JSON = 'Content-Type: application/json\r\n'
LARGE = 200 * 1024 * 1024
"""The number of bytes that a client announces, and mostly does not send."""


class Client:
    """A connection to the service; closed at the end."""

    def __init__(self, url, receive_buffer=None):
        host, _, port = url.removeprefix('http://').partition(':')
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(20)
        self.socket.connect((host, int(port)))

    def ask(self, line, headers='', body=b'', times=1):
        self.socket.sendall((f'{line} HTTP/1.1\r\nHost: cloud\r\n{headers}\r\n'.encode() + body) * times)

    def answer(self):
        """Everything received until the connection ends."""
        return b''.join(iter(lambda: self.socket.recv(65536), b'')).decode('latin-1')

    def ended(self):
        """Whether the service closes the connection, after what it sent before is read."""
        try:
            self.answer()
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False
        return True


@pytest.fixture
def connect():
    """connect(url, ...) -> Client"""
    clients = []

    def connect(*arguments, **options):
        clients.append(Client(*arguments, **options))
        return clients[-1]

    yield connect
    for client in clients:
        client.socket.close()


def check_others_are_answered(url, times=5):
    for _ in range(times):
        assert requests.get(f'{url}/v2.1/', timeout=10).status_code == 200


@pytest.fixture(scope='module')
def url(serve_for_all):
    """A shared service, for tests that do not change it."""
    return serve_for_all('--in-memory').url


def test_half_sent_requests_keep_nobody_out(serve, connect):
    url = serve('--in-memory').url
    for _ in range(1100):
        connect(url).socket.sendall(b'GET /v2.1/ HTTP/1.1\r\nHost: cloud\r\n')
    check_others_are_answered(url)


def test_half_sent_bodies_keep_nobody_out(serve, connect):
    url = serve('--in-memory').url
    for _ in range(20):
        connect(url).ask('POST /identity/v3/auth/tokens', f'{JSON}Content-Length: 1000\r\n', b'{')
        connect(url).ask('PUT /image/v2/images/1/file', f'Content-Length: {LARGE}\r\n', b'1')
    check_others_are_answered(url)


def test_who_waits_for_its_turn_to_send_a_body_holds_up_no_upload(serve, connect):
    served = serve('--in-memory', OS_API__AUTH_STRATEGY='none')
    waiting = [connect(served.url) for _ in range(8)]
    for client in waiting:
        client.socket.sendall(b'GET /v2.1/ HTTP/1.1\r\n\r\n')
        client.ask('POST /identity/v3/auth/tokens', f'{JSON}Content-Length: 1000\r\nExpect: 100-continue\r\n')
    for client in waiting:
        told = b''
        while not told.endswith(b'HTTP/1.1 100 Continue\r\n\r\n'):
            told += client.socket.recv(65536)
    with served.connect() as cloud:
        began = time.monotonic()
        cloud.image.create_image('large', data=bytes(1024 * 1024), container_format='bare')
        assert time.monotonic() - began < 15


def test_slow_uploads_keep_no_upload_out(serve, connect):
    """They send as much as they must, and have all threads for uploads."""
    served = serve('--in-memory', OS_API__AUTH_STRATEGY='none')
    with served.connect() as cloud:
        for number in range(UPLOADS):
            image = cloud.image.create_image(f'slow{number}', disk_format='raw', container_format='bare')
            file = f'PUT /image/v2/images/{image.id}/file'
            headers = f'X-Auth-Token: {cloud.auth_token}\r\nContent-Type: application/octet-stream\r\n'
            connect(served.url).ask(file, f'{headers}Content-Length: {LARGE}\r\n', bytes(70_000))
        time.sleep(1)
        began = time.monotonic()
        cloud.image.create_image('large', data=bytes(1024 * 1024), container_format='bare')
        assert time.monotonic() - began < 15


def test_unread_answers_keep_nobody_out(serve, connect):
    url = serve('--in-memory').url
    for _ in range(12):
        connect(url, receive_buffer=4096).ask('GET /openapi/latest.json', times=100)
    time.sleep(2)
    check_others_are_answered(url)


def test_unread_images_keep_nobody_out(serve, connect):
    served = serve('--in-memory', OS_API__AUTH_STRATEGY='none')
    with served.connect() as cloud:
        image = cloud.image.create_image('large', data=bytes(24 * 1024 * 1024), container_format='bare')
        token = cloud.auth_token or 'admin:admin'
    for _ in range(12):
        client = connect(served.url, receive_buffer=4096)
        client.ask(f'GET /image/v2/images/{image.id}/file', f'X-Auth-Token: {token}\r\n')
        assert client.socket.recv(12) == b'HTTP/1.1 200'
    time.sleep(1)
    check_others_are_answered(served.url)


def test_many_clients_that_keep_their_connections_are_answered(serve, run_load):
    run_load(serve('--in-memory', OS_API__AUTH_STRATEGY='none').url)


def test_who_is_too_slow_is_sent_away(serve, connect):
    timeouts = {f'OS_STANDALONE__{name}_TIMEOUT': '1' for name in ('REQUEST', 'RESPONSE', 'KEEPALIVE')}
    url = serve('--in-memory', **timeouts).url
    idle, half, body, unread = (connect(url, receive_buffer=4096) for _ in range(4))
    half.socket.sendall(b'GET /v2.1/ HTTP/1.1\r\nHost:')
    body.ask('POST /identity/v3/auth/tokens', f'{JSON}Content-Length: 1000\r\n', b'{')
    unread.ask('GET /openapi/latest.json', times=100)
    assert half.answer().startswith('HTTP/1.1 408 ')
    assert body.answer().startswith('HTTP/1.1 408 ')
    assert idle.answer() == ''
    assert unread.ended()


def test_what_came_along_with_a_refused_request_is_not_waited_for(serve, connect):
    url = serve('--in-memory', OS_STANDALONE__REQUEST_TIMEOUT='1').url
    client = connect(url)
    client.ask('POST /v2.1/', 'Transfer-Encoding: gzip, chunked\r\n', b'0\r\n\r\nGET /v2.1/ HT')
    assert client.answer().startswith('HTTP/1.1 501 ')
    time.sleep(3)
    check_others_are_answered(url)


def test_a_drop_now_and_then_is_too_slow(serve, connect):
    url = serve('--in-memory', OS_STANDALONE__REQUEST_TIMEOUT='2').url
    client = connect(url)
    client.ask('POST /identity/v3/auth/tokens', f'{JSON}Content-Length: 1000\r\n')
    client.socket.settimeout(0.2)
    for _ in range(50):
        client.socket.send(b' ')
        try:
            assert client.socket.recv(12) == b'HTTP/1.1 408'
            return
        except TimeoutError:
            pass
    raise AssertionError('It was waited for.')


@pytest.mark.parametrize('length', [f'Content-Length: {LARGE}\r\n', 'Transfer-Encoding: chunked\r\n'])
def test_what_is_too_long_is_refused_before_it_has_come(url, connect, length):
    sent = bytes(150_000) if 'Length' in length else b'%x\r\n%b\r\n' % (150_000, bytes(150_000))
    for path, status in {'/identity/v3/auth/tokens': '413', '/image/v2/images/1/file': '404'}.items():
        client = connect(url)
        client.ask(f'POST {path}', JSON + length, sent)
        answer = client.answer()
        assert answer.startswith(f'HTTP/1.1 {status} ')
        assert '\r\nConnection: close\r\n' in answer


def test_an_image_is_not_listened_to_without_a_token(url, connect):
    for expect in ('', 'Expect: 100-continue\r\n'):
        client = connect(url)
        client.ask('PUT /image/v2/images/1/file', f'Content-Length: {LARGE}\r\n{expect}')
        assert client.answer().startswith('HTTP/1.1 401 ')


def test_a_connection_too_many_takes_the_place_of_the_one_that_waits_longest(serve, connect):
    url = serve('--in-memory', OS_STANDALONE__MAX_CONNECTIONS_PER_ADDRESS='3').url
    clients = [connect(url) for _ in range(3)]
    clients[0].ask('GET /v2.1/')
    assert clients[0].socket.recv(12) == b'HTTP/1.1 200'
    connect(url).ask('GET /v2.1/')
    assert clients[1].answer() == ''
    clients[2].ask('GET /v2.1/')
    assert clients[2].socket.recv(12) == b'HTTP/1.1 200'
