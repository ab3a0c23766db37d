"""Processes of the service, started as by a user or an operator."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
import yaml
from openstack.config import OpenStackConfig
from openstack.connection import Connection

import computeapi

ROOT = Path(computeapi.__file__).parent.parent
BENCHMARK = Path(__file__).parents[2] / 'benchmarks/load.py'


class Process:
    """A command with its output; `stop` sends SIGTERM, as an operator's tools do."""

    def __init__(self, arguments, folder, environment=None):
        self.log = folder / 'stderr'
        environment = os.environ | {'PYTHONPATH': str(ROOT)} | (environment or {})
        with self.log.open('a') as log:
            self.process = subprocess.Popen(
                arguments, stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder, env=environment
            )

    def lines_until(self, text):
        """The output up to the line with `text`."""
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if text in line:
                return ''.join(lines)
        raise AssertionError(f'{text!r} was not printed, but: {"".join(lines)} {self.log.read_text()}')

    def answer(self, url):
        """The response at that URL, as soon as there is one."""
        for _ in range(300):
            try:
                return requests.get(url, timeout=60)
            except requests.ConnectionError:
                assert self.process.poll() is None, self.log.read_text()
                time.sleep(0.1)
        raise AssertionError(self.log.read_text())

    def memory(self):
        """The resident memory, in MB."""
        status = Path(f'/proc/{self.process.pid}/status').read_text()
        [line] = [line for line in status.splitlines() if line.startswith('VmRSS')]
        return int(line.split()[1]) / 1024

    def stop(self, signal_number=signal.SIGTERM):
        """Returns the exit status; it may be called again."""
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
            self.process.communicate(timeout=30)
        self.process.stdout.close()
        return self.process.returncode


@contextmanager
def starting(folder):
    """start(arguments, environment) -> Process in that folder; stopped at the end."""
    started = []

    def start(arguments, environment=None):
        process = Process([sys.executable, *arguments], folder, environment)
        started.append(process)
        return process

    yield start
    for process in started:
        process.stop()


@pytest.fixture
def start(tmp_path):
    """start(arguments, environment) -> Process in a folder of its own; stopped at the end."""
    with starting(tmp_path) as start:
        yield start


def free_port():
    with socket.create_server(('127.0.0.1', 0)) as unused:
        return unused.getsockname()[1]


class Served:
    """A running `computeapi serve` and its output."""

    def __init__(self, process):
        self.process = process
        self.greeting = process.lines_until('curl')
        self.url = re.search('ready at (https?://\\S+)', self.greeting)[1]
        self.openrc, self.clouds = re.findall(r'are in (\S+)\.\n', self.greeting)

    @property
    def password(self):
        """The administrator's password, which is in files, and printed on terminals only."""
        return yaml.safe_load(Path(self.clouds).read_text())['clouds']['computeapi']['auth']['password']

    def connect(self, cloud='computeapi'):
        """An unmodified SDK, configured by the file that the service wrote."""
        config = OpenStackConfig(config_files=[self.clouds], vendor_files=[], secure_files=[])
        return Connection(config=config.get_one(cloud))


def serving(start):
    def serve(*arguments, **environment):
        command = ['-m', 'computeapi', 'serve', '--port', '0', *arguments]
        return Served(start(command, environment))

    return serve


@pytest.fixture
def serve(start):
    return serving(start)


@pytest.fixture(scope='module')
def serve_for_all(tmp_path_factory):
    """Like `serve`, for services that all tests of a module share, because starting one takes seconds."""
    with starting(tmp_path_factory.mktemp('shared')) as start:
        yield serving(start)


@pytest.fixture
def run_load():
    """run_load(url): 200 concurrent clients, each with a persistent connection, are served without an error."""

    def run_load(url):
        command = [sys.executable, str(BENCHMARK), '--url', url, '--seconds', '5', '--writes']
        result = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, result.stdout + result.stderr

    return run_load
