"""Workers that are stopped past their lease and then continue, and one with a wrong clock: nothing is damaged."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing

import pytest

from computeapi.db.engine import Store
from tests.clients.conftest import PACKAGE
from tests.clients.load import DELAYS, Load, wait_idle
from tests.invariants import problems

LEASE = 2
ROUNDS = int(os.environ.get('COMPUTEAPI_TEST_STOP_ROUNDS', 3))
SEED = os.environ.get('COMPUTEAPI_TEST_STOP_SEED', '1')
AHEAD = """
import datetime, sys
from computeapi import clock
right = clock.utcnow
clock.utcnow = lambda: right() + datetime.timedelta(seconds=90)
from computeapi.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def shared(database_url, serve):
    """A service with three hosts and no workers, and the environment of the service and its workers."""
    environment = {
        **DELAYS,
        'OS_DATABASE__CONNECTION': database_url,
        'OS_DATABASE__LOCK_TIMEOUT': '2',
        'OS_DEFAULT__TASK_LEASE': str(LEASE),
        'OS_SIMULATED__HOSTS': '3',
    }
    service = serve(**environment, OS_DEFAULT__WORKERS='0')
    its = {'PYTHONPATH': str(PACKAGE.parent), 'OS_STANDALONE__DATA_DIR': str(service.data)}
    return service, {**os.environ, **environment, **its}


@pytest.fixture
def workers(shared):
    """Two worker processes, one of which has a clock that is 90 s ahead."""
    service, environment = shared
    with (service.data.parent / 'workers.log').open('a') as log:
        processes = [
            subprocess.Popen([sys.executable, *words, 'worker'], env=environment, stdout=log, stderr=log)
            for words in (['-m', 'computeapi'], ['-c', AHEAD])
        ]
    yield processes
    for process in processes:
        process.send_signal(signal.SIGCONT)
        process.terminate()
    for process in processes:
        process.wait(30)


def stop_one_after_the_other(workers, chance):
    for worker in chance.sample(workers, len(workers)):
        time.sleep(chance.uniform(0.2, 1))
        worker.send_signal(signal.SIGSTOP)
        time.sleep(chance.uniform(LEASE + 0.5, LEASE + 1.5))
        worker.send_signal(signal.SIGCONT)


@pytest.mark.several_writers
def test_workers_that_are_stopped_and_go_on(shared, workers, database_url):
    """COMPUTEAPI_TEST_STOP_ROUNDS=30 stops them more often, COMPUTEAPI_TEST_STOP_SEED=... at other moments."""
    service, environment = shared
    chance = random.Random(SEED)
    with closing(Store(database_url)) as store:
        for number in range(ROUNDS):
            load = Load(service, f'{SEED} {number}')
            with load.going():
                stop_one_after_the_other(workers, chance)
            wait_idle(store)
            # Other services carry out requests of workers that are already taken for dead.
            subprocess.run([sys.executable, '-m', 'computeapi', 'audit', '--repair'], env=environment, timeout=60)
            wait_idle(store)
            # Requests that a stopped worker blocked may have to be repeated.
            wrong = [each for each in load.wrong if ': 503 ' not in each]
            assert load.asked and wrong == [], (SEED, number)
            assert problems(store) == [], (SEED, number)
