"""A real service in its own process, for real clients."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import requests

import computeapi

PASSWORD = 'for-tests-only'
# The package under test, installed or in a checkout.
PACKAGE = Path(computeapi.__file__).parent
READY_SECONDS = 30


class Serve:
    """`computeapi serve` on a free port; `data` is its folder, `options` are further command-line arguments."""

    password = PASSWORD
    commands = Path(sys.executable).parent

    def __init__(self, data, *options, environment=None):
        self.data, self.options, self.environment = data, options, environment or {}
        self.port, self.process = 0, None
        self.log = data.parent / f'{data.name}.log'
        self.start()

    def start(self):
        words = ['serve', '--port', str(self.port), '--data-dir', str(self.data), '--admin-password', PASSWORD]
        # The log goes to a file, because nobody would read a pipe.
        with self.log.open('a') as log:
            self.process = subprocess.Popen(
                [sys.executable, '-m', 'computeapi', *words, *self.options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, 'PYTHONPATH': str(PACKAGE.parent), **self.environment},
                cwd=self.data.parent,
            )
        self.shown = ''
        # The greeting ends with the line for curl.
        for line in self.process.stdout:
            self.shown += line
            if line.lstrip().startswith('curl '):
                break
        found = re.search(r'http://127\.0\.0\.1:(\d+)', self.shown)
        if found:
            self.port = int(found[1])
        else:
            self.put_away()
            raise AssertionError(self.log.read_text())
        self.wait_ready()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.port}'

    def wait_ready(self):
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            try:
                if requests.get(self.url, timeout=5).ok:
                    return
            except requests.ConnectionError:
                time.sleep(0.05)
        raise AssertionError('the service did not answer')

    def kill(self):
        """Simulates a power failure."""
        self.process.kill()
        self.put_away()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.put_away()

    def put_away(self):
        self.process.wait(READY_SECONDS)
        self.process.stdout.close()

    def session(self):
        """A requests session with an administrator's token."""
        body = {
            'auth': {
                'identity': {
                    'methods': ['password'],
                    'password': {'user': {'name': 'admin', 'domain': {'id': 'default'}, 'password': PASSWORD}},
                },
                'scope': {'project': {'name': 'admin', 'domain': {'id': 'default'}}},
            }
        }
        answer = requests.post(f'{self.url}/identity/v3/auth/tokens', json=body, timeout=30)
        answer.raise_for_status()
        session = requests.Session()
        session.trust_env = False
        session.headers['X-Auth-Token'] = answer.headers['X-Subject-Token']
        session.headers['OpenStack-API-Version'] = 'compute 2.96'
        return session

    @property
    def environ(self):
        """The environment after sourcing the openrc, for clients in processes of their own."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith('OS_')}
        sourced = dict(re.findall(r'^export (OS_\w+)=(\S+)$', (self.data / 'openrc').read_text(), re.MULTILINE))
        return kept | sourced | {'HOME': str(self.data.parent)}


@pytest.fixture
def serve(tmp_path):
    """Start services: serve('--hosts', '2')."""
    started = []

    def start(*options, **environment):
        started.append(Serve(tmp_path / f'data{len(started)}', *options, environment=environment))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.stop()


@pytest.fixture(scope='module')
def cloud(tmp_path_factory):
    """One service for all tests of a module."""
    service = Serve(tmp_path_factory.mktemp('cloud') / 'data', '--hosts', '2')
    yield service
    service.stop()
