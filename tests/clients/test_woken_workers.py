"""A worker in another process starts at once with what a request has queued; it would poll only after an hour."""

import os
import subprocess
import sys

import pytest

from tests.clients.conftest import PACKAGE
from tests.clients.test_kill import boot, wait_settled


@pytest.fixture
def service(database_url, serve):
    """A service without workers, and a worker in a process of its own."""
    shared = {'OS_DATABASE__CONNECTION': database_url, 'OS_DEFAULT__TASK_SWEEP_INTERVAL': '3600'}
    service = serve(**shared, OS_DEFAULT__WORKERS='0')
    its = {'PYTHONPATH': str(PACKAGE.parent), 'OS_STANDALONE__DATA_DIR': str(service.data)}
    with (service.data.parent / 'worker.log').open('a') as log:
        words = [sys.executable, '-m', 'computeapi', 'worker']
        worker = subprocess.Popen(words, env={**os.environ, **shared, **its}, stdout=log, stderr=log)
    yield service
    worker.terminate()
    worker.wait(30)


@pytest.mark.postgresql
def test_servers_that_one_process_is_asked_for_are_booted_by_another(service):
    session = service.session()
    # The worker may find the first one when it starts, but it must be notified of the others.
    for number in range(3):
        boot(service, session, f'server{number}')
        assert set(wait_settled(service, session).values()) == {'ACTIVE'}
