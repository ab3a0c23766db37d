"""The QEMU monitor client, with fake QEMUs that exit, hang or send nonsense."""

import json
import os
import socket
import threading

import pytest

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu import monitor as module
from computeapi.backends.hypervisor.qemu.monitor import Monitor

VERSION = {'qemu': {'micro': 0, 'minor': 2, 'major': 7}, 'package': ''}
TIMES = 3


def greet(connection):
    say(connection, {'QMP': {'version': VERSION, 'capabilities': []}})


def negotiate(connection):
    greet(connection)
    asked = json.loads(connection.recv(5000))
    say(connection, {'return': {}} | ({'id': asked['id']} if 'id' in asked else {}))


def say(connection, document):
    connection.sendall(json.dumps(document).encode() + b'\r\n')


def be_asked(connection):
    negotiate(connection)
    connection.recv(5000)


def talk_without_end(connection):
    be_asked(connection)
    connection.sendall(b'x' * 2**24)


def talk_nonsense(connection):
    be_asked(connection)
    connection.sendall(b'nonsense\r\n')


def hang(connection):
    be_asked(connection)
    connection.recv(5000)


@pytest.fixture
def conversation(tmp_path, monkeypatch):
    """conversation(way): repeatedly talks to a peer that behaves in this way and disconnects; returns the results."""
    monkeypatch.setattr(module, 'CONNECT_SECONDS', 0.5)
    monkeypatch.setattr(module, 'COMMAND_SECONDS', 0.5)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / 'qmp'))
    listening.listen()

    def conversation(way):
        thread = threading.Thread(target=behave, args=(listening, way))
        thread.start()
        for _ in range(TIMES):
            with pytest.raises(HypervisorError), Monitor(tmp_path / 'qmp', timeout=0) as monitor:
                monitor.execute('query-status')
        thread.join()

    yield conversation
    listening.close()


def behave(listening, way):
    for _ in range(TIMES):
        connection, _ = listening.accept()
        with connection:
            try:
                way(connection)
            except (OSError, ValueError):
                # The other side has disconnected, perhaps in the middle of this.
                continue


@pytest.mark.parametrize('way', [greet, negotiate, be_asked, talk_without_end, talk_nonsense, hang])
def test_what_does_not_answer_is_told_as_such_and_leaves_nothing_open(conversation, way):
    before = len(os.listdir('/proc/self/fd'))
    conversation(way)
    # Files left by others may be closed meanwhile.
    assert len(os.listdir('/proc/self/fd')) < before + TIMES
