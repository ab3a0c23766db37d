"""Processes started by the driver that runs guests, without QEMU."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from computeapi.backends.hypervisor import HypervisorError
from computeapi.backends.hypervisor.qemu import detached_process
from computeapi.backends.hypervisor.qemu import process as module
from computeapi.backends.hypervisor.qemu.detached_process import DetachedProcess
from computeapi.backends.hypervisor.qemu.folder import GuestFolder
from computeapi.backends.hypervisor.qemu.process import FolderProcess
from tests.waiting import eventually

TIMEOUT = 20
COMPLAINS = 'import time\nwhile True:\n    print("amiss " * 100, flush=True)\n    time.sleep(0.001)'
# Its first thread exits at once, another one a second after it could.
EXITS = """
import ctypes, os, sys, threading, time
def leave():
    sys.stdin.read()
    time.sleep(1)
    os._exit(0)
threading.Thread(target=leave).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.fixture
def complaining(tmp_path):
    """A process that logs endlessly, like QEMU with a guest that keeps breaking its devices."""
    made = FolderProcess(GuestFolder(tmp_path), 'guest', str(tmp_path))
    made.begin([sys.executable, '-c', COMPLAINS, str(tmp_path)], lambda: True)
    yield made
    made.end()


def test_what_a_guest_makes_its_qemu_complain_of_is_kept_short(complaining, monkeypatch):
    monkeypatch.setattr(module, 'MAX_OUTPUT_BYTES', 10_000)
    output, deadline = complaining.folder / 'guest.output', time.monotonic() + TIMEOUT
    while not (output.exists() and output.stat().st_size > 100_000):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    complaining.trim()
    time.sleep(0.05)
    # It continues at the new end of the file.
    assert output.stat().st_size < 100_000 and output.read_bytes()[:1] != b'\0'
    assert complaining.runs


def test_what_starts_slowly_on_a_busy_machine_is_waited_for(tmp_path, monkeypatch):
    *command, script = module.START
    monkeypatch.setattr(module, 'START', (*command, f'sleep {2 * module.STARTING_SECONDS}; {script}'))
    made = FolderProcess(GuestFolder(tmp_path), 'guest', str(tmp_path))
    made.begin([sys.executable, '-c', COMPLAINS, str(tmp_path)], lambda: made.runs)
    made.end()


def test_what_does_not_start_is_told_of_soon(tmp_path):
    began = time.monotonic()
    with pytest.raises(HypervisorError, match='could not be started'):
        FolderProcess(GuestFolder(tmp_path), 'guest', str(tmp_path)).begin(['no-such-program'], lambda: False)
    assert time.monotonic() < began + TIMEOUT


@pytest.fixture
def exiting(tmp_path):
    """A process that has begun to exit, as one with a large memory does for long: it is there without its arguments."""
    with subprocess.Popen([sys.executable, '-c', EXITS, str(tmp_path)], stdin=subprocess.PIPE) as made:
        (tmp_path / 'guest.pid').write_text(str(made.pid))
        eventually(lambda: 'State:\tZ' in Path(f'/proc/{made.pid}/status').read_text())
        yield made
        made.kill()


def test_what_is_exiting_is_waited_for(tmp_path, exiting):
    ending = DetachedProcess(tmp_path / 'guest.pid', str(tmp_path))
    assert not ending.runs
    exiting.stdin.close()
    assert ending.end() and exiting.poll() == 0
    assert not ending.number.exists()


def test_what_never_exits_is_told_of_and_gets_no_signal(tmp_path, exiting, monkeypatch):
    monkeypatch.setattr(detached_process, 'END_SECONDS', 0.1)
    ending = DetachedProcess(tmp_path / 'guest.pid', str(tmp_path))
    assert not ending.end() and ending.number.exists()
    assert exiting.poll() is None


def test_what_exits_is_gone_before_its_successor_starts(tmp_path, exiting):
    exiting.stdin.close()
    made = FolderProcess(GuestFolder(tmp_path), 'guest', str(tmp_path))
    made.begin([sys.executable, '-c', COMPLAINS, str(tmp_path)], lambda: made.runs)
    made.end()
    assert exiting.poll() == 0
