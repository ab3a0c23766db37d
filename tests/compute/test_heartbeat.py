"""Processes send heartbeats; if they stop, the tasks of a process are taken over."""

import os
import threading
import time
from datetime import timedelta

import pytest

from computeapi.compute.hosts import HostRegistry
from computeapi.compute.tasks.heartbeat import Heartbeat
from computeapi.compute.tasks.queue import Tasks
from computeapi.compute.tasks.worker import Worker
from computeapi.db import processes, services
from tests.compute.test_tasks import BOB, KIND, TIMEOUT


@pytest.fixture
def known(store):
    """known(): the rows of all processes."""
    return lambda: store.query(processes.select)


def test_a_process_is_known_from_its_beginning_to_its_end(store, clock, known):
    tasks = Tasks(store, 12, clock)
    heartbeat = Heartbeat(tasks, 'computeapi-worker', 'control', 4)
    heartbeat.begin()
    begun = clock()
    clock.forward(4)
    heartbeat.beat()
    [process] = known()
    assert (process.id, process.binary, process.pid) == (tasks.owner, 'computeapi-worker', os.getpid())
    assert (process.started_at, process.seen_at) == (begun, clock())
    assert store.query(processes.workers_since, clock()) == 4
    assert store.query(processes.workers_since, clock() + timedelta(seconds=1)) == 0
    heartbeat.end()
    assert known() == []


def test_control_services_are_gone_with_the_last_process_of_their_machine(store, clock):
    first, second, elsewhere = (
        Heartbeat(Tasks(store, 12, clock), 'computeapi-worker', host, 2) for host in ('one', 'one', 'two')
    )
    answering = Heartbeat(Tasks(store, 12, clock), 'computeapi-api', 'one', 0)
    dead = Heartbeat(Tasks(store, 12, clock), 'computeapi-worker', 'one', 2)
    dead.begin()
    clock.forward(60)
    for each in (first, second, elsewhere, answering):
        each.begin()
        HostRegistry(store, list, control=each.host, beat_seconds=0, clock=clock).register()

    def alive():
        found = store.query(services.select)
        assert len(found) == 4
        return {each.host for each in found if each.seen_at is not None}

    for leaving, left in ((answering, {'one', 'two'}), (first, {'one', 'two'}), (second, {'two'}), (elsewhere, set())):
        leaving.end()
        assert alive() == left


def test_a_machine_that_works_does_not_keep_a_compute_host_of_its_name_alive(store, clock):
    store.change(services.is_seen, 'one', services.COMPUTE, clock())
    begun = clock()
    registry = HostRegistry(store, list, control='one', beat_seconds=0, clock=clock)
    registry.register()
    clock.forward(60)
    registry.report()
    seen = {each.binary: each.seen_at for each in store.query(services.select)}
    assert seen == {services.COMPUTE: begun, **dict.fromkeys(services.CONTROL, clock())}


def test_hosts_live_while_what_is_on_them_is_seen_to_for_long(store):
    heard, over = threading.Semaphore(0), threading.Event()

    def hosts():
        heard.release()
        return []

    facts = {'control': None, 'beat_seconds': 0.05, 'upkeep': lambda: over.wait(TIMEOUT)}
    registry = HostRegistry(store, hosts, **facts)
    registry.start()
    try:
        assert all(heard.acquire(timeout=TIMEOUT / 4) for _ in range(3))
    finally:
        over.set()
        registry.stop()


def test_a_process_that_died_is_remembered_for_a_while(store, clock, known):
    first, second, third = (Heartbeat(Tasks(store, 12, clock), 'computeapi-api', 'control', 0) for _ in range(3))
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
    worker = Worker(Tasks(store, 0.3), lambda task: None, 0, TIMEOUT, beats.release)
    worker.start()
    assert beats.acquire(timeout=TIMEOUT) and beats.acquire(timeout=TIMEOUT)
    worker.stop()


def test_what_a_process_does_is_its_own_until_it_has_ended(store, servers):
    queue, other, begun, let = Tasks(store, 1), Tasks(store, 1), threading.Event(), threading.Event()

    def work(task):
        begun.set()
        let.wait(TIMEOUT)
        store.change(queue.done, task)

    store.change(queue.add, KIND, servers.add(), BOB)
    worker = Worker(queue, work, 1, TIMEOUT)
    worker.start()
    assert begun.wait(TIMEOUT)
    end = threading.Thread(target=worker.stop)
    end.start()
    time.sleep(1.5)
    assert other.claim() is None
    let.set()
    end.join()
    assert other.idle()


def test_a_lease_that_runs_out_is_not_waited_for_any_longer(store, servers):
    """Even though the processes that could take the task over rarely poll."""
    dead, living, taken = Tasks(store, 3), Tasks(store, 3), threading.Event()
    store.change(dead.add, KIND, servers.add(), BOB)
    assert dead.claim()
    begun = time.monotonic()
    worker = Worker(living, lambda task: store.change(living.done, task) and taken.set(), 2, TIMEOUT)
    worker.start()
    assert taken.wait(TIMEOUT)
    assert time.monotonic() - begun < 4
    worker.stop()
