"""The gate to the consoles of a host: whom it lets in, and what can prevent that."""

import errno
import socket
import threading
from types import SimpleNamespace

import pytest

from computeapi.agent import gate as module
from computeapi.agent.gate import ConsoleGate
from computeapi.backends.hypervisor import Console
from computeapi.backends.hypervisor.remote import consoles

TIMEOUT = 10
SERVER, OTHER = (SimpleNamespace(uuid=f'00000000-0000-4000-8000-00000000000{number}') for number in (1, 2))


class Echo:
    """A driver whose consoles echo their input. inside: our ends of the connections to them."""

    def __init__(self):
        self.inside = []

    def connect(self, server, protocol, console):
        ours, theirs = socket.socketpair()
        self.inside.append(ours)
        threading.Thread(target=self.answer, args=[theirs], daemon=True).start()
        return ours

    def answer(self, console):
        with console:
            while heard := console.recv(100):
                console.sendall(heard)


@pytest.fixture
def gate():
    made = ConsoleGate(Echo(), '127.0.0.1', 0)
    yield made
    made.close()


def asked(gate, server=SERVER):
    return gate.guarded(server, 'serial', Console('/somewhere', 0))


def answers(console):
    with consoles.connect(console, 'serial') as connection:
        connection.settimeout(TIMEOUT)
        connection.sendall(b'hello')
        return connection.recv(5) == b'hello'


class Broken:
    """A listener, or something else to be started, that fails the first time. was: the real one."""

    def __init__(self, was, error):
        self.was, self.errors = was, [error]

    def __getattr__(self, name):
        return getattr(self.was, name)

    def accept(self):
        if self.errors:
            raise self.errors.pop()
        return self.was.accept()


def test_a_host_that_has_no_room_for_a_moment_lets_in_again(gate, monkeypatch):
    monkeypatch.setattr(module, 'REST_SECONDS', 0.01)
    gate.listener = Broken(gate.listener, OSError(errno.EMFILE, 'Too many open files'))
    gate.start()
    assert answers(asked(gate))


def test_a_host_that_has_no_thread_for_a_moment_lets_in_again(gate, monkeypatch):
    gate.places = threading.BoundedSemaphore(1)
    gate.start()
    begin, refused = threading.Thread.start, []

    def start(thread):
        if thread.name == 'console' and not refused:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, 'start', start)
    with socket.create_connection((gate.address, gate.port), TIMEOUT) as sent_away:
        assert sent_away.recv(1) == b''
    assert answers(asked(gate))


def test_a_word_that_comes_slowly_takes_no_longer_than_another(gate, monkeypatch):
    monkeypatch.setattr(module, 'WORD_SECONDS', 0.5)
    gate.start()
    with socket.create_connection((gate.address, gate.port), 0.2) as slow:
        said = 0
        with pytest.raises(OSError):
            while said < 40:
                slow.sendall(b'x')
                said += 1
                try:
                    assert slow.recv(1) == b''
                    raise ConnectionResetError
                except TimeoutError:
                    pass
    assert said < 10


def test_who_asks_for_one_console_again_and_again_takes_no_words_from_others(gate, monkeypatch):
    monkeypatch.setattr(module, 'MAX_WORDS', 20)
    gate.start()
    other = asked(gate, OTHER)
    mine = [asked(gate) for _ in range(50)]
    assert len(gate.routes) == 1 + module.MAX_WORDS_OF_ONE
    assert answers(other) and answers(mine[-1])


def test_both_ends_look_whether_the_other_machine_is_there(gate, monkeypatch):
    kept = []
    monkeypatch.setattr(
        module, 'keep_alive', lambda connection: kept.append(connection) or consoles.keep_alive(connection)
    )
    gate.start()
    with consoles.connect(asked(gate), 'serial') as connection:
        for each in (connection, *kept):
            assert each.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            assert each.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == consoles.SILENT_SECONDS
    assert len(kept) == 1
