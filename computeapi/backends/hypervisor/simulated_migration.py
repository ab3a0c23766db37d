"""Transfers a simulated machine from one process to another, as real ones move between hosts.

The destination listens, and announces its address, port and a secret word; the source sends the machine.
"""

import functools
import hmac
import json
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from computeapi.backends.hypervisor import HypervisorError
from computeapi.db.engine import Store
from computeapi.db.virtual_machines import DOMAINS, VirtualMachine
from computeapi.errors import DatabaseError

SECONDS, PAUSE_SECONDS = 5.0, 0.05
# Most of a machine is its log.
MAX_BYTES = 1024 * 1024
TAKEN = b'taken\n'


class MigrationReceiver:
    """Receives machines into a store; starts to listen when `facts` is first read."""

    def __init__(self, store: Store, host: str, address: str):
        self.store, self.host, self.address = store, host, address
        self.word = secrets.token_hex(16)

    @functools.cached_property
    def facts(self) -> Mapping[str, Any]:
        """The facts that a source needs."""
        listener = socket.create_server((self.address, 0))
        threading.Thread(target=self._listen, args=[listener], name='migration-receiver', daemon=True).start()
        return {'address': self.address, 'port': listener.getsockname()[1], 'word': self.word}

    def _listen(self, listener: socket.socket) -> None:
        with listener:
            while True:
                try:
                    connection, _ = listener.accept()
                    with connection:
                        connection.settimeout(SECONDS)
                        self._take(connection)
                except (OSError, ValueError, KeyError, TypeError, DatabaseError):
                    # The sender retries, or gives up. If it could not be accepted, there may be room in a moment.
                    time.sleep(PAUSE_SECONDS)

    def _take(self, connection: socket.socket) -> None:
        with connection.makefile('rwb') as file:
            message = json.loads(file.readline(MAX_BYTES))
            if hmac.compare_digest(str(message['word']), self.word):
                begun = datetime.fromisoformat(message['machine']['created_at'])
                self.store.change(_put, VirtualMachine(**message['machine'] | {'host': self.host, 'created_at': begun}))
                file.write(TAKEN)


def send(facts: Mapping[str, Any], machine: VirtualMachine) -> None:
    """Copy the machine to the destination; HypervisorError."""
    found = machine._asdict() | {'created_at': machine.created_at.isoformat()}
    try:
        there = socket.create_connection((facts['address'], facts['port']), SECONDS)
        with there, there.makefile('rwb') as file:
            file.write(json.dumps({'word': facts['word'], 'machine': found}).encode() + b'\n')
            file.flush()
            if file.readline(MAX_BYTES) != TAKEN:
                raise HypervisorError('The other host did not accept the virtual machine.')
    except (OSError, KeyError) as error:
        raise HypervisorError(f'The other host cannot be reached: {error}') from error


def _put(connection: Any, machine: VirtualMachine) -> None:
    DOMAINS.delete(connection, server_id=machine.server_id, host=machine.host)
    DOMAINS.insert(connection, **machine._asdict())
