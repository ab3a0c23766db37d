"""Webhooks: messages, their order, retries, and forbidden targets."""

import argparse
import base64
import hashlib
import hmac
import json
import logging
import socket
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from computeapi.errors import Invalid
from computeapi.kit import options
from computeapi.kit.webhooks import sending, webhook
from computeapi.kit.webhooks.destinations import HookDestinations, HookTarget
from computeapi.testing import Cloud
from tests.deployment.conftest import free_port
from tests.waiting import eventually

TIMEOUT = 60
SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'


class Receiver(ThreadingHTTPServer):
    """A server that responds with the given statuses in turn, and then with 204; `got` has the requests."""

    daemon_threads = True

    def __init__(self, *statuses, port=0):
        super().__init__(('127.0.0.1', port), ReceiverHandler)
        self.statuses, self.got, self.headers = list(statuses), [], {}
        self.going_on = threading.Event()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.server_port}/hook?a=b'

    def names(self):
        """The names of the resources in the messages."""
        return [json.loads(body)['data']['name'] for _, _, body in self.got]


class ReceiverHandler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        self.server.got.append((self.path, self.headers, body))
        status = self.server.statuses.pop(0) if self.server.statuses else 204
        if status == 'never':
            self.server.going_on.wait(TIMEOUT)
            return
        if status == 'slowly':
            # A line that never ends.
            with suppress(OSError):
                while not self.server.going_on.wait(0.02):
                    self.connection.sendall(b'x')
            return
        self.send_response(status)
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if status == 200:
            # An endless body.
            with suppress(OSError):
                while not self.server.going_on.wait(0):
                    self.wfile.write(b'x' * 2**16)

    def log_message(self, *arguments):
        pass


@contextmanager
def receiving(*statuses, port=0):
    with Receiver(*statuses, port=port) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield server
        finally:
            server.going_on.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def receiver():
    with receiving() as server:
        yield server


@pytest.fixture
def hasty(monkeypatch):
    """Retries happen soon."""
    monkeypatch.setattr(webhook, 'FIRST_WAIT_SECONDS', 0.01)
    monkeypatch.setattr(sending, 'ATTEMPT_SECONDS', 0.3)


@pytest.fixture
def volumes(cloud, http):
    """volumes('a', 'b'): creates volumes with these names."""

    def make(*names):
        for name in names:
            assert http.post('/volume/v3/volumes', {'volume': {'size': 1, 'name': name}}).status_code == 202

    return make


# ------------------------------------------------------------------ messages


def test_a_signature_is_that_of_the_specification():
    headers = sending.signed(
        sending.key_of(SECRET), 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1614265330, b'{"test": 2432232314}'
    )
    assert headers['webhook-signature'] == 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='


def test_a_receiver_gets_what_it_asked_for_with_a_signature(cloud, http, volumes, receiver):
    hook = cloud.webhooks.add(receiver.url, SECRET, types=['volume.created', 'server'])
    volumes('a')
    http.boot('web')
    eventually(lambda: 'web' in receiver.names())
    path, headers, body = receiver.got[0]
    message = json.loads(body)
    assert (path, headers['Content-Type'], message['type']) == ('/hook?a=b', 'application/json', 'volume.created')
    assert message['data'] == cloud.events.entries(type='volume.created')[0].document()
    assert message['timestamp'] == message['data']['time']
    signed = f'{headers["webhook-id"]}.{headers["webhook-timestamp"]}.'.encode() + body
    digest = hmac.new(base64.b64decode(SECRET.removeprefix('whsec_')), signed, hashlib.sha256).digest()
    assert headers['webhook-signature'] == 'v1,' + base64.b64encode(digest).decode()
    assert abs(int(headers['webhook-timestamp']) - time.time()) < TIMEOUT
    assert len({each['webhook-id'] for _, each, _ in receiver.got}) == len(receiver.got)
    hook.remove()
    volumes('b')
    assert cloud.webhooks.list() == [] and 'b' not in receiver.names()


@pytest.mark.parametrize('status', [500, 503, 302, 404, 'never', 'slowly'])
def test_what_fails_comes_again_before_what_comes_next(cloud, volumes, hasty, status):
    with receiving(status, status) as receiver:
        hook = cloud.webhooks.add(receiver.url, types=['volume.created'])
        volumes('a', 'b', 'c')
        eventually(lambda: hook.tally.deliveries == 3)
        assert receiver.names() == ['a', 'a', 'a', 'b', 'c']
        assert len({headers['webhook-id'] for _, headers, _ in receiver.got}) == 3
    assert (hook.tally.failures, hook.tally.given_up, hook.tally.last_status) == (2, 0, 204)


def test_a_receiver_that_is_not_there_yet_gets_it_later(cloud, volumes, hasty, monkeypatch):
    monkeypatch.setattr(webhook, 'MAX_ATTEMPTS', 10**6)
    monkeypatch.setattr(webhook, 'MAX_WAIT_SECONDS', 0.05)
    port = free_port()
    hook = cloud.webhooks.add(f'http://127.0.0.1:{port}/', types=['volume.created'])
    volumes('a')
    eventually(lambda: hook.tally.failures > 2)
    assert hook.document()['last_error'].startswith('ConnectionRefusedError')
    with receiving(port=port) as receiver:
        eventually(lambda: receiver.names() == ['a'])


def test_it_is_tried_so_often_and_then_the_next_one_is(cloud, volumes, hasty, monkeypatch):
    monkeypatch.setattr(webhook, 'MAX_ATTEMPTS', 3)
    with receiving(500, 500, 500) as receiver:
        hook = cloud.webhooks.add(receiver.url, types=['volume.created'])
        volumes('a', 'b')
        eventually(lambda: hook.tally.deliveries == 1)
        assert receiver.names() == ['a', 'a', 'a', 'b']
    assert (hook.tally.failures, hook.tally.given_up) == (3, 1)


def test_it_waits_longer_each_time(cloud, monkeypatch):
    hook = cloud.webhooks.add('http://127.0.0.1:1/', types=['volume'])
    waits = []
    for attempts in range(webhook.MAX_ATTEMPTS - 1):
        hook.message = webhook.HookMessage(None, b'', attempts)
        before = time.monotonic()
        hook.arrived(500)
        waits.append(hook.message.due - before)
    assert all(2 ** (n - 1) <= wait < 2 ** (n + 1) for n, wait in enumerate(waits))
    hook.message = None


def test_one_that_fails_holds_up_no_other(cloud, volumes, receiver):
    broken = cloud.webhooks.add(f'http://127.0.0.1:{free_port()}/')
    cloud.webhooks.add(receiver.url, types=['volume.created'])
    volumes('a', 'b', 'c')
    eventually(lambda: receiver.names() == ['a', 'b', 'c'])
    assert broken.tally.failures and not broken.tally.deliveries


def test_one_that_does_not_answer_holds_up_no_other(cloud, volumes, receiver, monkeypatch):
    monkeypatch.setattr(sending, 'ATTEMPT_SECONDS', 2 * TIMEOUT)
    with receiving('never') as silent:
        cloud.webhooks.add(silent.url, types=['volume.created'])
        volumes('a')
        eventually(lambda: silent.got)
        cloud.webhooks.add(receiver.url, types=['volume.created'])
        volumes('b')
        eventually(lambda: receiver.names() == ['b'])


def test_who_wants_no_more_is_asked_no_more(cloud, volumes):
    with receiving(410) as receiver:
        cloud.webhooks.add(receiver.url, types=['volume.created'])
        volumes('a', 'b')
        eventually(lambda: not cloud.webhooks.list())
        assert receiver.names() == ['a']


def test_of_an_answer_no_more_is_read_than_the_head(cloud, volumes):
    with receiving(200, 200) as receiver:
        hook = cloud.webhooks.add(receiver.url, types=['volume.created'])
        volumes('a', 'b')
        eventually(lambda: hook.tally.deliveries == 2)


# ------------------------------------------------------------------ permitted targets


FOREIGN = [
    'http://169.254.169.254/latest',
    'http://10.0.0.1/',
    'http://[::ffff:10.0.0.1]/',
    'http://[::ffff:169.254.169.254]/',
    'http://[fe80::1]/',
    'http://0.0.0.0/',
    'http://0x0a000001/',
    'https://192.0.2.1/',
]
NONE = ['ftp://127.0.0.1/', 'file:///etc/passwd', 'http://', 'http://me:secret@127.0.0.1/', 'http://@127.0.0.1/', 'x']
NONE += ['http://127.0.0.1:99999/', 'http://127.0.0.1/a b', 'http://127.0.0.1/\r\nHost: b', 'http://127.0.0.1/ü', '']


@pytest.mark.parametrize('url', FOREIGN + NONE)
def test_where_they_may_not_lead(cloud, http, url):
    with pytest.raises(Invalid):
        cloud.webhooks.add(url)
    answer = http.control('POST', '/webhooks', {'url': url})
    assert answer.status_code == 400 and 'secret' not in answer.text
    assert cloud.webhooks.list() == []


def test_what_is_allowed_besides():
    destinations = HookDestinations(['10.1.0.0/16', '2001:db8::/32'])
    allowed = ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1', '10.1.2.3', '::ffff:10.1.2.3', '2001:db8::1']
    refused = ['10.2.0.1', '::ffff:10.2.0.1', '2001:db9::1', '0.0.0.0', '::']
    assert all(map(destinations.are_allowed, allowed)) and not any(map(destinations.are_allowed, refused))
    for wrong in ('10.1.0.1/16', 'here', ''):
        with pytest.raises(Invalid, match='Webhooks cannot'):
            HookDestinations([wrong])


def test_a_cloud_is_told_what_is_allowed():
    with Cloud(webhook_allow=['192.0.2.0/24']) as own:
        assert own.webhooks.add('http://192.0.2.1/', types=['cell']).url == 'http://192.0.2.1/'
        with pytest.raises(Invalid):
            own.webhooks.add('http://198.51.100.1/')
    with pytest.raises(Invalid), Cloud(webhook_allow=['nowhere']):
        pass


@pytest.fixture
def resolver(monkeypatch):
    """resolver['hook.test'] = [address of the first look-up, of the second ...]; the last one is repeated."""
    known, really = {}, socket.getaddrinfo

    def look_up(host, port, *more, **options):
        if host in known:
            addresses = known[host]
            host = addresses.pop(0) if len(addresses) > 1 else addresses[0]
        return really(host, port, *more, **options)

    monkeypatch.setattr(socket, 'getaddrinfo', look_up)
    return known


def test_a_name_is_what_it_resolves_to(cloud, resolver, receiver, volumes):
    resolver['hook.test'] = ['10.0.0.1']
    with pytest.raises(Invalid, match=r'hook\.test is neither'):
        cloud.webhooks.add('http://hook.test/')
    resolver['hook.test'] = ['127.0.0.1']
    cloud.webhooks.add(f'http://hook.test:{receiver.server_port}/', types=['volume.created'])
    volumes('a')
    eventually(lambda: receiver.names() == ['a'])
    assert receiver.got[0][1]['Host'] == f'hook.test:{receiver.server_port}'


def test_a_name_that_leads_elsewhere_later_is_not_followed(cloud, resolver, receiver, volumes, hasty, monkeypatch):
    connected, really = [], socket.create_connection

    def connect(address, *more, **options):
        connected.append(address[0])
        return really(address, *more, **options)

    monkeypatch.setattr(socket, 'create_connection', connect)
    # One look-up when the webhook is added, one for the first delivery, and one for the next.
    resolver['hook.test'] = ['127.0.0.1', '127.0.0.1', '10.0.0.1']
    hook = cloud.webhooks.add(f'http://hook.test:{receiver.server_port}/', types=['volume.created'])
    volumes('a', 'b')
    eventually(lambda: hook.tally.failures)
    assert receiver.names() == ['a']
    assert hook.document()['last_error'].startswith('AddressRefused: hook.test')
    hook.remove()
    assert '10.0.0.1' not in connected


def test_no_redirect_is_followed(cloud, volumes, hasty):
    with receiving() as other, receiving(307, 307, 307) as receiver:
        receiver.headers['Location'] = other.url
        hook = cloud.webhooks.add(receiver.url, types=['volume.created'])
        volumes('a')
        eventually(lambda: hook.tally.failures == 3)
        assert other.got == []


def test_proxies_of_the_environment_are_not_asked(cloud, http, volumes, receiver, monkeypatch):
    http.session.trust_env = False
    for name in ('http_proxy', 'HTTP_PROXY', 'ALL_PROXY'):
        monkeypatch.setenv(name, f'http://127.0.0.1:{free_port()}')
    cloud.webhooks.add(receiver.url, types=['volume.created'])
    volumes('a')
    eventually(lambda: receiver.names() == ['a'])


def test_https_needs_a_certificate_that_is_trusted(cloud, volumes, hasty):
    with receiving() as receiver:
        hook = cloud.webhooks.add(f'https://127.0.0.1:{receiver.server_port}/', types=['volume.created'])
        volumes('a')
        eventually(lambda: hook.tally.failures)
        assert receiver.got == []
        assert 'SSL' in hook.document()['last_error'] or 'Timeout' in hook.document()['last_error']
        hook.remove()


# ------------------------------------------------------------------ the control API, and removal


@pytest.mark.parametrize('secret', ['hush', 'whsec_', 'whsec_aHVzaA==', 'whsec_' + 'A' * 100, 'whsec_ü'])
def test_a_secret_that_is_none_is_not_repeated(http, secret):
    answer = http.control('POST', '/webhooks', {'url': 'http://127.0.0.1:1/', 'secret': secret})
    assert answer.status_code == 400
    assert secret.removeprefix('whsec_') == '' or secret not in answer.json()['badRequest']['message']


def test_the_control_api_and_its_secrets(cloud, http, volumes, receiver, caplog):
    caplog.set_level(logging.DEBUG)
    made = http.control('POST', '/webhooks', {'url': receiver.url, 'types': ['volume'], 'project': 'none'}).json()
    given = {'url': receiver.url, 'secret': SECRET, 'types': ['volume.created']}
    added = http.control('POST', '/webhooks', given)
    assert added.status_code == 201 and SECRET not in added.text
    assert sending.key_of(made['secret'])
    volumes('a')
    eventually(lambda: cloud.webhooks.get(added.json()['id']).tally.deliveries == 1)
    listed = http.control('GET', '/webhooks')
    assert [each['deliveries'] for each in listed.json()['webhooks']] == [0, 1]
    shown = http.control('GET', f'/webhooks/{added.json()["id"]}')
    assert shown.json()['last_status'] == 204
    journal = str(cloud.journal.lines())
    for secret in (SECRET, made['secret']):
        key = secret.removeprefix('whsec_')
        assert key not in listed.text + shown.text + str(cloud.webhooks.list()) + journal + caplog.text
    assert http.control('DELETE', f'/webhooks/{made["id"]}').status_code == 204
    assert http.control('DELETE', f'/webhooks/{made["id"]}').status_code == 404
    assert http.control('POST', '/webhooks', {'url': receiver.url, 'types': ['volume.gone']}).status_code == 400
    assert http.control('DELETE', '/webhooks').status_code == 204
    assert http.control('GET', '/webhooks').json() == {'webhooks': []}


def test_there_are_so_many(cloud, http):
    for _ in range(20):
        cloud.webhooks.add('http://127.0.0.1:1/', types=['cell'])
    assert http.control('POST', '/webhooks', {'url': 'http://127.0.0.1:1/'}).status_code == 400
    cloud.reset()
    assert cloud.webhooks.list() == [] and not cloud.events.readers


def test_a_cloud_ends_while_a_receiver_does_not_answer():
    before = set(threading.enumerate())
    with receiving('never') as receiver:
        with Cloud() as own:
            own.webhooks.add(receiver.url, types=['volume'])
            own.connection().block_storage.create_volume(size=1, name='data')
            eventually(lambda: receiver.got)
        assert not any(thread.name.startswith('webhook-') for thread in set(threading.enumerate()) - before)
        receiver.going_on.set()
    eventually(lambda: set(threading.enumerate()) <= before)


def test_an_option_needs_another():
    parser = argparse.ArgumentParser()
    options.add_serve(parser)
    given = ['--webhook-allow', '10.0.0.0/8']
    where = {'in_memory': True, 'host': '127.0.0.1'}
    with (
        pytest.raises(Invalid, match='--control-token'),
        options.kit_of(parser.parse_args(given, argparse.Namespace(**where))),
    ):
        pass
    with options.kit_of(parser.parse_args([*given, '--control-token', 'x'], argparse.Namespace(**where))) as kit:
        assert kit.tools.webhooks.destinations.are_allowed('10.1.2.3')


def test_a_target_is_what_is_asked_for():
    assert HookTarget.of('http://127.0.0.1?a=b') == ('http', '127.0.0.1', 80, '127.0.0.1', '/?a=b')
    assert HookTarget.of('https://[::1]:8443/x#y') == ('https', '::1', 8443, '[::1]:8443', '/x')
