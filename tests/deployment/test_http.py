"""The HTTP of `computeapi serve`, byte for byte."""

import hashlib
import http.client
import re
import socket
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from computeapi import config
from computeapi.serve.http.connection import ClientConnection
from computeapi.serve.http.request import WholeRequest
from computeapi.serve.http.server import HTTPServer

IMAGE = 3 * 1024 * 1024
TOKEN = 'X-Auth-Token: admin:admin\r\n'
BINARY = 'Content-Type: application/octet-stream\r\n'


class Wire:
    """A connection to the service."""

    def __init__(self, url):
        host, _, port = url.removeprefix('http://').partition(':')
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.file = self.socket.makefile('rb')

    def send(self, text, body=b''):
        self.socket.sendall(text.encode() + body)

    def answer(self, method='GET'):
        """The next response: (status, headers, body)."""
        response = http.client.HTTPResponse(self.socket, method=method)
        response.fp.close()
        response.fp = self.file
        response.close = lambda: None
        response.begin()
        length = response.getheader('Content-Length')
        if method == 'HEAD' or response.status == 204:
            return response.status, response.headers, b''
        return response.status, response.headers, self.file.read(int(length)) if length else self.file.read()

    def ended(self):
        return self.file.read() == b''

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()


def seconds_to_read(count):
    """The CPU time to parse a request head with this many headers of the same name."""
    data, taken = b'GET / HTTP/1.1\r\n' + b'A: b\r\n' * count + b'\r\n', []
    for _ in range(3):
        request = WholeRequest()
        begin = time.process_time()
        request.parser.feed_data(data)
        taken.append(time.process_time() - begin)
    assert request.headers == {'HTTP_A': ','.join(['b'] * count)}
    return min(taken)


def test_a_header_that_comes_very_often_is_read_in_linear_time():
    assert seconds_to_read(160_000) < 30 * seconds_to_read(20_000)


def in_memory(serve):
    return serve('--in-memory', OS_API__AUTH_STRATEGY='none', OS_STANDALONE__REQUEST_TIMEOUT='5')


@pytest.fixture(scope='module')
def served(serve_for_all):
    return in_memory(serve_for_all)


@pytest.fixture
def url(served):
    return served.url


def new_image(url):
    headers = {'X-Auth-Token': 'admin:admin'}
    image = {'name': 'image', 'disk_format': 'raw', 'container_format': 'bare'}
    return requests.post(f'{url}/image/v2/images', json=image, headers=headers, timeout=30).json()['id']


def image_status(url, image_id):
    return requests.get(f'{url}/image/v2/images/{image_id}', headers={'X-Auth-Token': 'admin:admin'}, timeout=30).json()


def test_requests_of_one_connection_are_answered_in_turn(url):
    with Wire(url) as wire:
        for version in ('2.1', '2.53'):
            wire.send(f'GET /v2.1/flavors HTTP/1.1\r\n{TOKEN}OpenStack-API-Version: compute {version}\r\n\r\n')
            status, headers, _ = wire.answer()
            assert (status, headers['OpenStack-API-Version']) == (200, f'compute {version}')
            assert headers['Date'] and 'Connection' not in headers and 'Server' not in headers
        wire.send('GET /v2.1/ HTTP/1.1\r\n\r\n' * 3 + 'HEAD /v2.1/ HTTP/1.1\r\n\r\n')
        bodies = {wire.answer()[2] for _ in range(3)}
        status, headers, _ = wire.answer('HEAD')
        assert (status, headers['Content-Length']) == (200, str(len(bodies.pop()))) and not bodies
        wire.send('GET /v2.1/ HTTP/1.1\r\nConnection: close\r\n\r\n')
        assert wire.answer()[1]['Connection'] == 'close' and wire.ended()


def test_older_clients_and_those_that_stop_speaking_are_answered(url):
    with Wire(url) as wire:
        wire.send('GET /v2.1/ HTTP/1.0\r\n\r\n')
        assert wire.answer()[0] == 200 and wire.ended()
    with Wire(url) as wire:
        wire.send('GET /v2.1/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n' * 2)
        assert [wire.answer()[1]['Connection'] for _ in range(2)] == ['keep-alive'] * 2
    with Wire(url) as wire:
        wire.send('GET /v2.1/ HTTP/1.1\r\n\r\n')
        wire.socket.shutdown(socket.SHUT_WR)
        assert wire.answer()[0] == 200 and wire.ended()
    with Wire(url) as wire:
        wire.send('GET /v2.1/ HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n')
        wire.send('GET http://cloud/v2.1/?a=%2f HTTP/1.1\r\n\r\n')
        assert [wire.answer()[0] for _ in range(2)] == [200, 200]


@pytest.mark.parametrize(
    'length', ['Content-Length: %d\r\n\r\n%s', 'Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n']
)
def test_the_body_of_who_offers_to_speak_another_protocol_is_no_request(url, length):
    flavor = f'{{"flavor": {{"name": "{uuid.uuid4()}", "ram": 1, "vcpus": 1, "disk": 1}}}}'
    offer = 'Content-Type: application/json\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n'
    for body, status in ((flavor, 200), ('GET /v2.1/ HTTP/1.1\r\n\r\n', 400)):
        with Wire(url) as wire:
            wire.send(f'POST /v2.1/flavors HTTP/1.1\r\n{TOKEN}{offer}{length % (len(body), body)}')
            wire.send('HEAD /v2.1/ HTTP/1.1\r\nConnection: close\r\n\r\n')
            assert wire.answer()[0] == status
            assert wire.answer('HEAD')[0] == 200 and wire.ended()


def test_many_offers_in_one_piece_are_answered_like_any_requests(url):
    offer = b'HEAD /v2.1/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'
    for more in (20, 2000):
        with Wire(url) as wire:
            wire.send('', offer * more)
            assert {wire.answer('HEAD')[0] for _ in range(20)} == {200}
    with Wire(url) as wire:
        wire.send('HEAD /v2.1/ HTTP/1.1\r\n\r\n')
        assert wire.answer('HEAD')[0] == 200


def test_what_is_no_http_is_refused(url):
    head = 'POST /v2.1/flavors HTTP/1.1\r\n'
    refused = {
        'nonsense\r\n\r\n': 400,
        f'{head}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n': 400,
        f'{head}Content-Length: 1\r\nContent-Length: 2\r\n\r\n': 400,
        f'{head}Transfer-Encoding: gzip, chunked\r\n\r\n': 501,
        'GET /v2.1/ HTTP/1.1\r\nHost: one\r\nHost: two\r\n\r\n': 400,
        'POST /v2.1/flavors HTTP/1.0\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n': 400,
        'CONNECT cloud:80 HTTP/1.1\r\nContent-Length: 23\r\n\r\nGET /v2.1/ HTTP/1.1\r\n\r\n': 501,
    }
    for text, status in refused.items():
        with Wire(url) as wire:
            wire.send('GET /v2.1/ HTTP/1.1\r\n\r\n' + text)
            assert [wire.answer()[0] for _ in range(2)] == [200, status] and wire.ended()
        with Wire(url) as wire:
            wire.send(text)
            assert wire.answer()[0] == status and wire.ended()
    check_it_is_too_long(url, f'{head}X-Long: ')


def check_it_is_too_long(url, beginning):
    with Wire(url) as wire:
        wire.send(beginning)
        for _ in range(70):
            time.sleep(0.005)
            wire.send('x' * 1024)
        assert wire.answer()[0] == 431 and wire.ended()


def test_what_is_beside_a_body_is_passed_over_and_has_an_end(url):
    head = f'POST /v2.1/flavors HTTP/1.1\r\n{TOKEN}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
    with Wire(url) as wire:
        wire.send(f'{head}2;a=b\r\n{{}}\r\n0\r\nOpenStack-API-Version: compute 2.53\r\n\r\n')
        status, headers, _ = wire.answer()
        assert (status, headers['OpenStack-API-Version']) == (400, 'compute 2.1')
    check_it_is_too_long(url, f'{head}2;')
    check_it_is_too_long(url, f'{head}2\r\n{{}}\r\n0\r\nX-Long: ')


def test_a_header_with_underscores_is_not_taken_for_another(url):
    with Wire(url) as wire:
        wire.send('GET /v2.1/flavors HTTP/1.1\r\nOpenStack_API_Version: compute 2.53\r\n\r\n')
        assert wire.answer()[1]['OpenStack-API-Version'] == 'compute 2.1'


def test_who_asks_first_is_told_to_go_on(url):
    flavor = b'{"flavor": {"name": "new", "ram": 1, "vcpus": 1, "disk": 1}}'
    expecting = f'Content-Type: application/json\r\nContent-Length: {len(flavor)}\r\nExpect: 100-continue\r\n'
    with Wire(url) as wire:
        wire.send(f'POST /v2.1/flavors HTTP/1.1\r\n{TOKEN}{expecting}\r\n')
        assert [wire.file.readline() for _ in range(2)] == [b'HTTP/1.1 100 Continue\r\n', b'\r\n']
        wire.send('', flavor)
        assert wire.answer()[0] == 200
        wire.send(f'GET /v2.1/ HTTP/1.1\r\n\r\nPOST /v2.1/flavors HTTP/1.1\r\n{TOKEN}{expecting}\r\n')
        assert wire.answer()[0] == 200
        assert [wire.file.readline() for _ in range(2)] == [b'HTTP/1.1 100 Continue\r\n', b'\r\n']
        wire.send('', flavor)
        assert wire.answer()[0] == 409
        length = f'Content-Length: {IMAGE}\r\nExpect: 100-continue\r\n'
        wire.send(f'PUT /image/v2/images/{new_image(url)}/file HTTP/1.1\r\n{TOKEN}{BINARY}{length}\r\n')
        assert [wire.file.readline() for _ in range(2)] == [b'HTTP/1.1 100 Continue\r\n', b'\r\n']
        wire.send('', bytes(IMAGE))
        assert wire.answer()[0] == 204
        wire.send('GET /v2.1/ HTTP/1.1\r\n\r\n')
        assert wire.answer()[0] == 200


def test_images_are_written_and_read_whole(url):
    data = bytes(range(256)) * (IMAGE // 256)
    for body in (data, iter([data[:100], data[100:5000], data[5000:]]), data[:5], iter([data[:5]])):
        image_id = new_image(url)
        file = f'{url}/image/v2/images/{image_id}/file'
        headers = {'X-Auth-Token': 'admin:admin', 'Content-Type': 'application/octet-stream'}
        assert requests.put(file, data=body, headers=headers, timeout=30).status_code == 204
        found = requests.get(file, headers=headers, timeout=30)
        assert found.content in (data, data[:5])
        assert found.headers['Content-MD5'] == hashlib.md5(found.content).hexdigest()


def test_an_upload_that_breaks_off_leaves_nothing(served, url):
    image_id = new_image(url)
    for shut in (True, False):
        with Wire(url) as wire:
            headers = f'{TOKEN}{BINARY}Content-Length: {IMAGE}\r\n'
            wire.send(f'PUT /image/v2/images/{image_id}/file HTTP/1.1\r\n{headers}\r\n', b'1')
            if shut:
                wire.socket.shutdown(socket.SHUT_WR)
                assert wire.answer()[0] == 400
        while image_status(url, image_id)['status'] != 'queued':
            time.sleep(0.1)
    assert 'Traceback' not in served.process.log.read_text()


def test_long_documents_in_chunks_are_read_up_to_their_limit(url):
    headers = {'X-Auth-Token': 'admin:admin', 'Content-Type': 'application/json'}
    pieces = [b'{"name": "', *[b'x' * 65536] * 15, b'"}']
    for times, status in ((1, 400), (2, 413)):
        sent = iter([*pieces[:-1] * times, pieces[-1]])
        assert requests.post(f'{url}/image/v2/images', data=sent, headers=headers, timeout=30).status_code == status


def test_what_is_being_answered_when_it_ends_is_answered(serve):
    served = in_memory(serve)
    url = served.url
    image_id = new_image(url)
    file = f'{url}/image/v2/images/{image_id}/file'

    def data():
        for number in range(20):
            if number == 5:
                served.process.process.terminate()
            time.sleep(0.02)
            yield bytes(65536)

    with ThreadPoolExecutor(1) as pool, Wire(url) as idle:
        headers = {'X-Auth-Token': 'admin:admin', 'Content-Type': 'application/octet-stream'}
        sent = pool.submit(requests.put, file, data=data(), headers=headers, timeout=30)
        assert sent.result().status_code == 204
        assert idle.ended()
    assert served.process.process.wait(timeout=30) == 0
    assert not re.search('Traceback|never awaited', served.process.log.read_text())


def test_what_goes_wrong_with_one_connection_ends_no_other(monkeypatch, caplog):
    def fail(connection):
        raise RuntimeError('This is a test.')

    def app(environ, start_response):
        start_response('204 No Content', [])
        return []

    monkeypatch.setattr(ClientConnection, 'expire', fail)
    listening = socket.create_server(('127.0.0.1', 0))
    options = config.load(overrides={('standalone', 'keepalive_timeout'): 1}).standalone
    with HTTPServer(app, [listening], options, 1).in_background():
        url = f'http://127.0.0.1:{listening.getsockname()[1]}'
        with Wire(url):
            assert any('This is a test.' in caplog.text or time.sleep(0.1) for _ in range(300))
        with Wire(url) as wire:
            wire.send('GET / HTTP/1.1\r\n\r\n')
            assert wire.answer()[0] == 204


def test_a_server_that_cannot_begin_says_so():
    closed = socket.create_server(('127.0.0.1', 0))
    closed.close()
    with pytest.raises(OSError), HTTPServer(None, [closed], config.load().standalone, 1).in_background():
        pass
