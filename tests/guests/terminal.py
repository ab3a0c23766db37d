"""The serial console of a guest that a driver runs: waits for its output, and types."""

import contextlib
import socket
import time

from tests.guests.machine import SECONDS


class Terminal:
    """Starts at the current end of the guest's output; must be closed."""

    def __init__(self, driver, server):
        self.driver, self.server, self.seen = driver, server, 0
        self.socket = driver.connect(server, 'serial', driver.console(server, 'serial'))

    def expect(self, text):
        """Wait until the guest writes the text; returns the output up to it, which is then consumed."""
        deadline = time.monotonic() + SECONDS
        while True:
            self.drain()
            written = self.driver.console_output(self.server, None)
            at = written.find(text, self.seen)
            if at >= 0:
                found, self.seen = written[self.seen : at + len(text)], at + len(text)
                return found
            assert time.monotonic() < deadline, f'{text!r} does not come; what came: {written[-2000:]}'
            time.sleep(0.05)

    def drain(self):
        """A guest blocks if its viewer does not read. The log also has the output, including that from before."""
        with contextlib.suppress(BlockingIOError):
            while self.socket.recv(4096, socket.MSG_DONTWAIT):
                pass

    def type(self, text):
        self.socket.sendall(text.encode())

    def ask(self, command):
        """The output of a command, which must succeed, on the tiny Linux."""
        # The echo of the command must not look like its end.
        self.type(f'{command}; echo "do""ne: $?"\n')
        return self.expect('done: 0')

    def close(self):
        self.socket.close()
