"""A test's own virtual machine: plain QEMU, without a driver."""

import json
import os
import selectors
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

SECONDS = 180
"""The timeout of everything that a guest does, far longer than it takes on a machine that is busy with others."""


class Machine:
    """QEMU in software emulation, with the serial port on its standard input and output."""

    def __init__(self, folder: Path, *arguments: str, memory: int = 128):
        self.monitor = folder / 'qmp'
        self.output = b''
        self.process = subprocess.Popen(
            ['qemu-system-x86_64', '-accel', 'tcg', '-machine', 'pc', '-m', str(memory), '-nodefaults']
            + ['-display', 'none', '-vga', 'std', '-serial', 'stdio', '-qmp', f'unix:{self.monitor},server=on,wait=off']
            + list(arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        os.set_blocking(self.process.stdout.fileno(), False)

    def expect(self, text: str) -> str:
        """Wait until the guest writes *text*; returns the output up to it, which is then consumed."""
        wanted, deadline = text.encode(), time.monotonic() + SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while wanted not in self.output:
                assert selector.select(deadline - time.monotonic()), self.missing(text)
                more = self.process.stdout.read()
                assert more, self.missing(text)
                self.output += more
        before, found, self.output = self.output.partition(wanted)
        return (before + found).decode(errors='replace')

    def missing(self, text: str) -> str:
        return f'{text!r} does not come; what came: {self.output.decode(errors="replace")[-2000:]}'

    def type(self, text: str) -> None:
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def ask(self, command: str) -> str:
        """The output of a command in the shell that the guest runs on its serial port."""
        # The shell's echo of the command must not look like its end.
        self.type(f'{command}; echo "do""ne: $?"\n')
        return self.expect('done: 0')

    def execute(self, command: str, **arguments: object) -> object:
        """The return value of a QMP command."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(SECONDS)
            connection.connect(str(self.monitor))
            with connection.makefile('rw') as stream:
                for name, values in (('qmp_capabilities', {}), (command, arguments)):
                    print(json.dumps({'execute': name, 'arguments': values}), file=stream, flush=True)
                    answer = answer_of(stream)
                return answer

    def wait(self) -> int:
        """Wait until QEMU exits by itself; returns its exit status."""
        return self.process.wait(SECONDS)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def answer_of(stream) -> object:
    """The next response; the greeting and events are skipped."""
    for line in stream:
        message = json.loads(line)
        assert 'error' not in message, message
        if 'return' in message:
            return message['return']
    raise AssertionError('QEMU hung up.')


@contextmanager
def machine(folder: Path, *arguments: str, memory: int = 128):
    running = Machine(folder, *arguments, memory=memory)
    try:
        yield running
    finally:
        running.end()


def disk(path: Path, disk_format: str = 'raw') -> list[str]:
    """The arguments for the disk to boot from."""
    drive = f'file={path},format={disk_format},if=none,id=root'
    return ['-drive', drive, '-device', 'virtio-blk-pci,drive=root,bootindex=1']
