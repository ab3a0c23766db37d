"""The console proxy: who is let in, for how long, and what is forwarded."""

import logging
import socket
import time
from contextlib import ExitStack, suppress
from datetime import timedelta
from threading import Event

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from computeapi.backends.hypervisor import PowerState
from computeapi.clock import utcnow
from computeapi.consoles import proxy as module
from tests.consoles.spice_viewer import SpiceViewer
from tests.consoles.viewers import TIMEOUT, Terminal, Viewer, closing, refused

WRONG = '00000000-0000-4000-8000-000000000000'


@pytest.fixture
def quick(monkeypatch):
    """The proxy checks frequently whether visits are over."""
    monkeypatch.setattr(module, 'LOOK_SECONDS', 0.05)


# ------------------------------------------------------------------ admission


@pytest.mark.parametrize(
    'form', ['/?token={}', '/websockify?a=b&token={}', '/?path=%3Ftoken%3D{}', '/x/y?path=?token={}']
)
def test_a_token_may_stand_where_clients_put_it(url, form):
    address, _, token = url('serial').partition('/?token=')
    with Terminal(address + form.format(token)) as terminal:
        assert 'web: ready' in terminal.read_until('web> ')


def test_a_token_may_be_a_cookie(url):
    address, _, token = url('serial').partition('?token=')
    headers = {'Cookie': f'a=b=c; other="; token={token}; more'}
    with Terminal(address, additional_headers=headers) as terminal:
        terminal.read_until('web> ')


@pytest.mark.parametrize('query', ['', f'?token={WRONG}', '?token=', '?token=%00%FF', '?path=x', '?' + '&' * 200])
def test_others_are_not_let_in(url, query):
    status, text = refused(url('serial').partition('?')[0] + query)
    assert (status, text) == (403, 'This is not a token for a console of type serial, or it has expired')


@pytest.mark.parametrize(('kind', 'other'), [('novnc', 'serial'), ('serial', 'novnc'), ('spice-html5', 'serial')])
def test_a_token_opens_only_what_it_is_for(proxy, url, kind, other):
    token = url(kind).partition('?')[2]
    assert refused(f'ws://{proxy[other]}/?{token}')[0] == 403


def test_a_token_is_valid_for_a_while(service, url):
    address = url('serial')
    service.cloud.consoles.clock = lambda: utcnow() + timedelta(seconds=601)
    assert refused(address)[0] == 403


def test_a_token_leads_to_no_other_host(servers, server, url):
    address = url('serial')
    servers.change(server.uuid, host='compute2')
    assert refused(address)[0] == 403


@pytest.mark.parametrize(
    ('origin', 'allowed'),
    [
        (None, True),
        ('http://127.0.0.1', True),
        ('https://127.0.0.1:8443', True),
        ('http://dashboard.example.org', True),
        ('http://DASHBOARD.example.org:8080', True),
        ('http://evil.example.org', False),
        ('http://127.0.0.1.evil.example.org', False),
        ('http://[', False),
        ('null', False),
        ('', False),
    ],
)
def test_pages_of_other_sites_are_not_let_in(conf, url, origin, allowed):
    conf.set_override('allowed_origins', ['dashboard.example.org'], 'console')
    if allowed:
        with Terminal(url('serial'), origin=origin) as terminal:
            terminal.read_until('web> ')
    else:
        headers = {'Origin': origin}
        assert refused(url('serial'), additional_headers=headers)[0] == 403


def test_clients_that_ask_for_binary_frames_get_them(url):
    with connect(url('serial'), subprotocols=['base64', 'binary']) as client:
        assert client.subprotocol == 'binary' and isinstance(client.recv(timeout=TIMEOUT), bytes)


# ------------------------------------------------------------------ ends of connections


def off(servers, server):
    servers.change(server.uuid, vm_state='stopped')


def elsewhere(servers, server):
    servers.change(server.uuid, host='compute2')


def deleted(servers, server):
    servers.change(server.uuid, deleted_at=utcnow())


@pytest.mark.parametrize('change', [off, elsewhere, deleted])
def test_a_connection_ends_with_its_server(quick, servers, server, url, change):
    """Even if the host keeps the connection open, as here, where the virtual machine still runs."""
    with Terminal(url('serial')) as terminal:
        terminal.read_until('web> ')
        change(servers, server)
        assert closing(terminal) == (1000, 'The server is no longer running there.')


@pytest.mark.parametrize('kind', ['serial', 'novnc', 'spice-html5'])
def test_a_connection_ends_with_its_virtual_machine(service, server, url, kind):
    with {'serial': Terminal, 'novnc': Viewer, 'spice-html5': SpiceViewer}[kind](url(kind)) as client:
        client.read_until('web> ')
        service.hypervisor.power_off(server)
        assert closing(client) == (1000, 'The console has ended.')


def test_nobody_answers_where_no_virtual_machine_runs(service, server, url):
    service.hypervisor.power_off(server)
    with Terminal(url('serial')) as terminal:
        assert closing(terminal) == (1011, 'web is not running.')


def test_clients_that_say_nothing_are_cut_off(quick, conf, url):
    conf.set_override('idle_timeout', 1, 'console')
    address = url('serial')
    with Terminal(url('serial')) as silent, Terminal(address) as typing, Terminal(address) as beside:
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                typing.type('x')
                with suppress(TimeoutError):
                    silent.socket.recv(timeout=0.1)
        assert closed.value.rcvd.reason == 'The console was idle for too long.'
        # A viewer with several connections for one token, as with SPICE, types on one of them.
        typing.type('\x15there\r')
        beside.read_until('web> there')


@pytest.mark.parametrize('enforced', [True, False])
def test_a_connection_may_end_with_its_token(quick, conf, service, servers, server, url, enforced):
    conf.set_override('enforce_session_timeout', enforced, 'consoleauth')
    with Terminal(url('serial')) as terminal:
        terminal.read_until('web> ')
        service.cloud.consoles.clock = lambda: utcnow() + timedelta(seconds=601)
        if not enforced:
            off(servers, server)
        reason = 'The token has expired.' if enforced else 'The server is no longer running there.'
        assert closing(terminal) == (1000, reason)


# ------------------------------------------------------------------ bounds


def test_so_many_consoles_are_open_at_a_time(conf, url):
    conf.set_override('max_connections', 1, 'console')
    with Terminal(url('serial')) as terminal:
        terminal.read_until('web> ')
        assert refused(url('novnc')) == (503, 'Too many consoles are open')
    # The next one is let in as soon as the proxy has noticed that the first one is gone.
    until = time.monotonic() + TIMEOUT
    while True:
        try:
            with Terminal(url('serial')) as terminal:
                terminal.read_until('web> ')
            return
        except InvalidStatus:
            assert time.monotonic() < until


def test_one_address_does_not_open_all_places(monkeypatch, url):
    monkeypatch.setattr(module, 'MAX_PER_SERVER', 1)
    address = url('serial')
    with Terminal(address) as terminal:
        terminal.read_until('web> ')
        for another in (address, url('novnc')):
            assert refused(another) == (503, 'Too many consoles of this server are open')


def test_hosts_that_are_slow_to_answer_keep_nobody_from_other_consoles(monkeypatch, service, url):
    connect, answered = service.hypervisor.connect, Event()

    def slowly(server, protocol, console):
        if protocol == 'vnc':
            assert answered.wait(TIMEOUT)
        return connect(server, protocol, console)

    monkeypatch.setattr(service.hypervisor, 'connect', slowly)
    with ExitStack() as stack:
        stack.callback(answered.set)
        for _ in range(module.THREADS):
            stack.enter_context(Terminal(url('novnc')))
        with Terminal(url('serial')) as terminal:
            terminal.read_until('web> ')


def test_so_many_wait_to_be_authorized_and_who_says_nothing_keeps_nobody_out(monkeypatch, proxy, url):
    monkeypatch.setattr(module, 'MAX_WAITING', 3)
    host, port = proxy['serial'].split(':')
    with Terminal(url('serial')) as inside:
        inside.read_until('web> ')
        clients = [socket.create_connection((host, int(port)), TIMEOUT) for _ in range(4)]
        with suppress(ConnectionResetError):
            assert clients[0].recv(1) == b''
        for client in clients[1:]:
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                client.recv(1)
        with Terminal(url('serial')) as terminal:
            terminal.read_until('web> ')
        inside.type('still here\r')
        inside.read_until('web> still here')
    for client in clients:
        client.close()


def test_messages_that_are_too_long_end_a_connection(conf, url):
    conf.set_override('max_frame_bytes', 1024, 'console')
    with Terminal(url('serial')) as terminal:
        terminal.read_until('web> ')
        terminal.type('x' * 2000)
        code, _ = closing(terminal)
        assert code == 1009


def test_consoles_are_open_beside_each_other(url):
    with Terminal(url('serial')) as one, Terminal(url('serial')) as other, Viewer(url('novnc')) as viewer:
        one.read_until('web> ')
        one.type('hello\r')
        other.read_until('web> hello\r\nweb> ')
        viewer.read_until('web> hello\nweb> ')


# ------------------------------------------------------------------ secrets


def test_tokens_are_not_logged(caplog, proxy, url):
    caplog.set_level(logging.DEBUG)
    address = url('serial')
    token = address.partition('?token=')[2]
    with Terminal(address) as terminal:
        terminal.read_until('web> ')
    refused(f'ws://{proxy["novnc"]}/?token={token}')
    host, port = proxy['serial'].split(':')
    requests = (
        f'GET /%3Ftoken={token} HTTP/1.1\r\n\r\n',
        f'GET /?token={token}\r\n\r\n',
        f'GET /?token={token} HTTP/1.1\r\nno header\r\n\r\n',
    )
    for request in requests:
        with socket.create_connection((host, int(port)), TIMEOUT) as client:
            client.sendall(request.encode())
            client.recv(100)
    lines = [record.getMessage() for record in caplog.records if record.name.startswith('computeapi.consoles')]
    assert any('requested the serial console, status: 101' in line for line in lines)
    ours = [record for record in caplog.records if record.threadName != 'MainThread']
    assert token not in '\n'.join(f'{record.getMessage()} {record.exc_text}' for record in ours)


def test_a_paused_guest_hears_nothing(service, server, url):
    with Terminal(url('serial')) as terminal:
        terminal.read_until('web> ')
        service.hypervisor.pause(server)
        terminal.read_until('paused\r\nweb> ')
        terminal.type('unheard')
        service.hypervisor.unpause(server)
        terminal.read_until('unpaused\r\nweb> ')
        terminal.type('heard')
        terminal.read_until('web> heard')
    assert service.hypervisor.power_state(server) is PowerState.RUNNING
