"""Processes say that they live, and what one of them left is taken over when it does not."""

import os
import threading
import time
from datetime import timedelta

import pytest

from computeapi.compute.tasks.heartbeat import Heartbeat
from computeapi.compute.tasks.queue import Tasks
from computeapi.compute.tasks.worker import Worker
from computeapi.db import processes
from tests.compute.test_tasks import BOB, KIND, PATIENCE


@pytest.fixture
def known(store):
    """known(): the rows of all processes."""
    return lambda: store.ask(processes.select)


def test_a_process_is_known_from_its_beginning_to_its_end(store, clock, known):
    tasks = Tasks(store, 12, clock)
    heartbeat = Heartbeat(tasks, 'computeapi-worker', 4)
    heartbeat.begin()
    begun = clock()
    clock.forward(4)
    heartbeat.beat()
    [process] = known()
    assert (process.id, process.binary, process.pid) == (tasks.owner, 'computeapi-worker', os.getpid())
    assert (process.started_at, process.seen_at) == (begun, clock())
    assert store.ask(processes.workers_since, clock()) == 4
    assert store.ask(processes.workers_since, clock() + timedelta(seconds=1)) == 0
    heartbeat.end()
    assert known() == []


def test_a_process_that_died_is_remembered_for_a_while(store, clock, known):
    first, second, third = (Heartbeat(Tasks(store, 12, clock), 'computeapi-api', 0) for _ in range(3))
    first.begin()
    clock.forward(60)
    second.begin()
    assert [each.id for each in known()] == [first.tasks.owner, second.tasks.owner]
    clock.forward(3600)
    third.begin()
    assert [each.id for each in known()] == [second.tasks.owner, third.tasks.owner]
    second.beat()
    clock.forward(1)
    first.begin(alone=True)
    assert [each.id for each in known()] == [first.tasks.owner]


def test_a_process_without_workers_says_that_it_lives(store):
    beats = threading.Semaphore(0)
    worker = Worker(Tasks(store, 0.3), lambda task: None, 0, PATIENCE, beats.release)
    worker.start()
    assert beats.acquire(timeout=PATIENCE) and beats.acquire(timeout=PATIENCE)
    worker.stop()


def test_what_a_process_does_is_its_own_until_it_has_ended(store, servers):
    queue, other, begun, let = Tasks(store, 1), Tasks(store, 1), threading.Event(), threading.Event()

    def work(task):
        begun.set()
        let.wait(PATIENCE)
        store.tell(queue.done, task)

    store.tell(queue.add, KIND, servers.add(), BOB)
    worker = Worker(queue, work, 1, PATIENCE)
    worker.start()
    assert begun.wait(PATIENCE)
    end = threading.Thread(target=worker.stop)
    end.start()
    time.sleep(1.5)
    assert other.claim() is None
    let.set()
    end.join()
    assert other.idle()


def test_a_lease_that_runs_out_is_not_waited_for_any_longer(store, servers):
    """Though those who could take the task over look for work but seldom."""
    dead, living, taken = Tasks(store, 3), Tasks(store, 3), threading.Event()
    store.tell(dead.add, KIND, servers.add(), BOB)
    assert dead.claim()
    begun = time.monotonic()
    worker = Worker(living, lambda task: store.tell(living.done, task) and taken.set(), 2, PATIENCE)
    worker.start()
    assert taken.wait(PATIENCE)
    assert time.monotonic() - begun < 4
    worker.stop()
