"""A simulated machine is received from another process, also after one that could not be received."""

import socket
from datetime import datetime

import pytest

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.simulated_migration import MigrationReceiver, send
from computeapi.db.virtual_machines import DOMAINS, VirtualMachine
from computeapi.errors import DatabaseError

MACHINE = VirtualMachine('70a599e0-31e7-49b7-b260-868f441e862b', 'compute1', 1, '', datetime(2026, 1, 1))


def landed(store):
    with store.read() as connection:
        return DOMAINS.find(connection, server_id=MACHINE.server_id).host


def test_a_connection_that_there_is_no_room_for_ends_nothing(store, monkeypatch):
    accept = socket.socket.accept

    def full(listener):
        monkeypatch.setattr(socket.socket, 'accept', accept)
        raise OSError('Too many open files')

    monkeypatch.setattr(socket.socket, 'accept', full)
    send(MigrationReceiver(store, 'compute2', '127.0.0.1').facts, MACHINE)
    assert landed(store) == 'compute2'


def test_a_database_that_is_full_for_a_moment_ends_nothing(store, monkeypatch):
    facts = MigrationReceiver(store, 'compute2', '127.0.0.1').facts

    def full(*arguments):
        raise DatabaseError('It is full.')

    with monkeypatch.context() as patched:
        patched.setattr(store, 'change', full)
        with pytest.raises(HypervisorError):
            send(facts, MACHINE)
    send(facts, MACHINE)
    assert landed(store) == 'compute2'
