"""Clients with persistent connections, and whatever else they may do."""

import http.client
import socket
import struct
import threading
import time

import pytest

from computeapi import config
from computeapi.serve.http import keep_alive
from computeapi.serve.http.exchange import Later
from computeapi.serve.http.server import HTTPServer
from computeapi.serve.http.threads import Threads
from tests.deployment.test_http import Wire

LONG = b'0123456789abcdef' * 15_000


class App:
    """/echo: returns the body. /long: more than a client reads at once. /later: at the second attempt. /wait: on
    release."""

    def __init__(self):
        self.tries, self.release, self.asked = 0, threading.Event(), threading.Event()

    def __call__(self, environ, start_response):
        body = {'/long': lambda: LONG, '/later': self.later, '/wait': self.wait}.get(environ['PATH_INFO'])
        text = environ['wsgi.input'].read() if body is None else body()
        start_response('200 OK', [('Content-Type', 'text/plain')])
        return [text or b'nothing']

    def later(self):
        self.tries += 1
        if self.tries == 1:
            raise Later(0.01)
        return b'now'

    def wait(self):
        self.asked.set()
        assert self.release.wait(20)
        return b'waited'


@pytest.fixture
def app():
    return App()


@pytest.fixture
def url(app):
    listening = socket.create_server(('127.0.0.1', 0))
    with HTTPServer(app, [listening], config.load().standalone, 8).in_background():
        yield f'http://127.0.0.1:{listening.getsockname()[1]}'


@pytest.fixture
def jobs(monkeypatch):
    """The jobs given to threads."""
    jobs, run = [], Threads.run

    def noted(threads, job):
        jobs.append(job)
        run(threads, job)

    monkeypatch.setattr(Threads, 'run', noted)
    return jobs


def post(wire, text, path='/echo'):
    wire.send(f'POST {path} HTTP/1.1\r\nContent-Length: {len(text)}\r\n\r\n{text}')
    return wire.answer()[2].decode()


def test_who_asks_again_at_once_has_one_thread(jobs, url):
    with Wire(url) as wire:
        for word in ('one', 'two', 'three'):
            assert post(wire, word) == word
        assert len(jobs) == 1
        assert post(wire, '', '/later') == 'now'


def test_where_clients_are_many_none_keeps_a_thread(jobs, url):
    wires = [Wire(url) for _ in range(5)]
    for word in ('one', 'two', 'three'):
        known = len(jobs)
        for wire in wires:
            assert post(wire, word) == word
    assert len(jobs) == known + 5
    for wire in wires:
        wire.__exit__()


def test_all_that_may_follow_an_answer_is_understood(url):
    with Wire(url) as wire:
        assert post(wire, 'first') == 'first'
        wire.send('POST /echo HTTP/1.1\r\nContent-')
        time.sleep(0.05)
        wire.send('Length: 6\r\n\r\nsec')
        time.sleep(0.05)
        wire.send('ond')
        assert wire.answer()[2] == b'second'
        wire.send('GET /echo HTTP/1.1\r\n\r\n' * 3)
        assert [wire.answer()[2] for _ in range(3)] == [b'nothing'] * 3
        wire.send('POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nthird\r\n0\r\n\r\n')
        assert wire.answer()[2] == b'third'
        wire.send('POST /echo HTTP/1.1\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\n')
        assert wire.file.readline() == b'HTTP/1.1 100 Continue\r\n' and wire.file.readline() == b'\r\n'
        wire.send('fourth')
        assert wire.answer()[2] == b'fourth'
        for size in (keep_alive.SHORT - 100, keep_alive.SHORT + 100, 300_000):
            assert post(wire, 'x' * size) == 'x' * size
        wire.send('GET /echo HTTP/1.1\r\nConnection: close\r\n\r\n')
        assert wire.answer()[1]['Connection'] == 'close' and wire.ended()


def test_who_asks_again_much_later_is_answered(url, monkeypatch):
    monkeypatch.setattr(keep_alive, 'NEXT_REQUEST_SECONDS', 0.01)
    with Wire(url) as wire:
        for word in ('one', 'two', 'three'):
            assert post(wire, word) == word
            time.sleep(0.1)


@pytest.mark.parametrize('head', ['What is this?', 'GET http://[::1/ HTTP/1.1', 'GET http://a:99999999/ HTTP/1.1'])
def test_what_is_no_http_is_refused_after_an_answer(url, head):
    for _ in range(10):
        with Wire(url) as wire:
            assert post(wire, 'first') == 'first'
            wire.send(f'{head}\r\n\r\n')
            assert wire.answer()[0] == 400 and wire.ended()


def test_an_answer_that_is_taken_slowly_is_whole(url):
    with Wire(url) as wire:
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 * 1024)
        for _ in range(3):
            wire.send('GET /long HTTP/1.1\r\n\r\n')
            time.sleep(0.01)
            assert wire.answer()[2] == LONG
        assert post(wire, 'after it') == 'after it'


@pytest.mark.parametrize('linger', [None, struct.pack('ii', 1, 0)])
def test_who_is_gone_before_the_answer_holds_up_nobody(app, url, linger, caplog):
    wire = Wire(url)
    assert post(wire, 'first') == 'first'
    wire.send('GET /wait HTTP/1.1\r\n\r\n')
    assert app.asked.wait(20)
    if linger:
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    wire.__exit__()
    app.release.set()
    for word in ('one', 'two'):
        with Wire(url) as other:
            assert post(other, word) == word
    assert not [record for record in caplog.records if record.exc_info]


def test_what_is_being_answered_at_the_end_is_answered(app):
    listening = socket.create_server(('127.0.0.1', 0))
    with Wire(f'http://127.0.0.1:{listening.getsockname()[1]}') as wire:
        with HTTPServer(app, [listening], config.load().standalone, 8).in_background():
            assert post(wire, 'first') == 'first'
            wire.send('GET /wait HTTP/1.1\r\n\r\n')
            assert app.asked.wait(20)
            threading.Timer(0.1, app.release.set).start()
        assert wire.answer()[2] == b'waited' and wire.ended()


def test_answers_keep_to_their_clients(url):
    """Even if clients connect and disconnect meanwhile, no response goes to another client whose socket has the same
    number."""
    wrong = []

    def client(number):
        for turn in range(30):
            connection = http.client.HTTPConnection(url.removeprefix('http://'), timeout=20)
            for part in range(3):
                text = f'{number}/{turn}/{part}' * 50
                connection.request('POST', '/echo', text)
                if part == 2 and turn % 2:
                    # Disconnect before the response.
                    break
                if connection.getresponse().read().decode() != text:
                    wrong.append(text)
            connection.close()

    clients = [threading.Thread(target=client, args=(number,)) for number in range(4)]
    for each in clients:
        each.start()
    for each in clients:
        each.join()
    assert not wrong
