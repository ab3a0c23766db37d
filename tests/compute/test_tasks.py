"""The task queue: who claims which task, when, and in which order."""

import threading
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from computeapi.backends.hypervisor import NotYet
from computeapi.compute.tasks.job import FAULT
from computeapi.compute.tasks.queue import Tasks, thawed, tries
from computeapi.compute.tasks.worker import HEAD_START_SECONDS, Worker
from computeapi.context import Context
from computeapi.db import tasks as rows
from computeapi.errors import Conflict, NeighbourAway

BOB = Context(
    user_id='bob', project_id='project', roles=frozenset({'member', 'reader'}), request_id='req-1', auth_token='secret'
)
LEASE = 60
KIND = SimpleNamespace(kind='kind')
# Long enough that a test that reaches it has failed.
TIMEOUT = 30


@pytest.fixture
def process(store, clock):
    """process(): the queue as seen by another process."""
    return lambda: Tasks(store, LEASE, clock)


@pytest.fixture
def queue(process):
    return process()


@pytest.fixture
def add(store, queue):
    """add(server_id): adds a task for a server; returns its ID."""

    def put(server_id, **kwargs):
        with store.write() as connection:
            return queue.add(connection, KIND, server_id, BOB, **kwargs).id

    return put


@pytest.fixture
def finish(store, queue):
    """finish(task): whether the task was still the claimed one, and was removed."""

    def done(task):
        with store.write() as connection:
            return queue.done(connection, task)

    return done


def claimed(queue):
    """The IDs of all tasks that can be claimed now, in order."""
    return [task.id for task in iter(queue.claim, None)]


# ------------------------------------------------------------------ order


def test_the_work_of_a_server_is_done_in_its_order(queue, servers, add, finish):
    one, other = servers.add(), servers.add()
    first, second, third = add(one), add(one), add(other)
    task = queue.claim()
    assert task.id == first
    assert claimed(queue) == [third]
    assert finish(task)
    assert claimed(queue) == [second]


@pytest.mark.postgresql
def test_what_another_worker_is_about_to_claim_keeps_nobody_waiting(store, queue, process, servers, add, clock):
    first, second = (add(servers.add()) for _ in range(2))
    with store.write() as connection:
        assert rows.choose(connection, [first, second], clock.now, wait=False) == first
        with store.write() as other:
            assert rows.choose(other, [first, second], clock.now, wait=False) == second
            assert rows.choose(other, [first], clock.now, wait=False) is None
        assert process().claim().id == second
    assert claimed(queue) == [first]


def test_work_waits_for_its_time(queue, clock, servers, add):
    server_id = servers.add()
    later = add(server_id, not_before=clock.now + timedelta(seconds=10))
    assert queue.idle()
    now = add(server_id)
    assert not queue.idle()
    assert claimed(queue) == [now]
    clock.forward(10)
    assert claimed(queue) == []
    clock.forward(LEASE)
    assert queue.claim().id == later


def test_work_that_waits_is_forgotten(store, queue, clock, servers, add):
    one, other = servers.add(), servers.add()
    soon = clock.now + timedelta(seconds=10)
    add(one, not_before=soon)
    kept = [add(one), add(other, not_before=soon)]
    with store.write() as connection:
        queue.cancel(connection, one)
    clock.forward(10)
    assert claimed(queue) == kept


def test_whose_work_it_is(queue, servers, add):
    add(servers.add(), arguments={'a': 1}, action_id=7)
    task = queue.claim()
    assert (task.kind, task.arguments, task.action_id, task.attempts) == ('kind', {'a': 1}, 7, 1)
    assert thawed(task.context) == replace(BOB, auth_token=None)


def test_a_later_claim_has_a_higher_token(queue, servers, add, finish):
    """A task leased to a request outdates nobody: workers may be working on the server."""
    server_id = servers.add()
    for token in (1, 2):
        add(server_id)
        task = queue.claim()
        assert task.token == token
        request = queue.store.change(queue.add, KIND, server_id, BOB, leased=True)
        assert request.token == token
        assert finish(task) and finish(request)


# ------------------------------------------------------------------ claims


@pytest.mark.parametrize('known', [True, False])
def test_a_task_is_claimed_once(process, servers, add, known):
    """Even tasks of a server whose row is not written yet, or was deleted."""
    expected = [add(servers.add() if known else str(uuid.uuid4())) for _ in range(12)]
    start = threading.Barrier(8)

    def claim_all():
        queue = process()
        start.wait()
        return claimed(queue)

    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(claim_all) for _ in range(8)]
        assert Counter(task_id for each in found for task_id in each.result()) == Counter(expected)


def test_threads_of_a_process_look_one_after_the_other(queue, clock, servers, add):
    """All would find the same task."""
    expected = [add(servers.add()) for _ in range(4)]
    looking, met = [], threading.Event()

    def look():
        looking.append(None)
        if len(looking) > 1:
            met.set()
        met.wait(0.05)
        looking.pop()
        return clock()

    # Each look-up begins by reading the clock.
    queue.clock = look
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(queue.claim) for _ in range(4)]
        assert sorted(each.result().id for each in found) == expected
    assert not met.is_set()


def test_who_has_the_least_to_do_looks_first(queue, monkeypatch):
    waited = []
    worker = Worker(queue, print, 0, TIMEOUT)
    monkeypatch.setattr(worker.stopping, 'wait', waited.append)
    for at_work in range(3):
        worker.at = dict.fromkeys(range(at_work))
        worker.wake()
    assert waited == [0, HEAD_START_SECONDS, 2 * HEAD_START_SECONDS]
    assert queue.generation == 3


def test_a_claim_in_vain_is_not_counted(queue, store, servers, add, finish, clock):
    server_id = servers.add()
    task_id = add(server_id)
    task = queue.claim()
    with store.write() as connection:
        assert rows.claim(connection, task_id, 'another', clock(), clock() + timedelta(seconds=LEASE)) is None
    assert finish(task)
    add(server_id)
    assert (task.token, queue.claim().token) == (1, 2)


def test_nobody_works_twice_on_one_server(process, servers, add, finish):
    server_id = servers.add()
    expected = [add(server_id) for _ in range(8)]
    busy, start, done = threading.Lock(), threading.Barrier(4), []

    def work():
        queue = process()
        start.wait()
        while len(done) < len(expected):
            task = queue.claim()
            if task is not None:
                assert busy.acquire(blocking=False)
                done.append(task.id)
                busy.release()
                assert finish(task)

    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(work) for _ in range(4)]:
            each.result()
    assert done == expected


def test_a_lease_that_ran_out_is_taken_over(process, clock, servers, add, finish):
    server_id = servers.add()
    first, second = add(server_id), add(server_id)
    dead, living = process(), process()
    lost = dead.claim()
    clock.forward(LEASE)
    assert living.claim() is None
    clock.forward(1)
    taken = living.claim()
    assert (taken.id, taken.attempts, taken.owner) == (first, 2, living.owner)
    assert living.claim() is None
    assert (dead.is_mine(lost), dead.note(lost, {'a': 1}), finish(lost)) == (False, False, False)
    assert (living.is_mine(taken), living.note(taken, {'b': 2}), finish(taken)) == (True, True, True)
    assert claimed(living) == [second]


def test_a_process_without_workers_forgets_what_was_due(process, clock, servers, add):
    queue = process()
    for _ in range(3):
        add(servers.add())
        assert process().claim()
        clock.forward(LEASE / 2 + 1)
        queue.expect_dead()
        clock.forward(LEASE)
    assert len(queue.due) == 1


def test_what_is_under_way_is_kept(process, clock, servers, add):
    first, second = add(servers.add()), add(servers.add())
    queue, other = process(), process()
    assert claimed(queue) == [first, second]
    clock.forward(LEASE - 1)
    queue.renew([first])
    clock.forward(LEASE - 1)
    assert claimed(other) == [second]


def test_notes_are_for_whoever_comes_next(process, clock, servers, add):
    add(servers.add(), arguments={'a': 1})
    dead, living = process(), process()
    assert dead.note(dead.claim(), {'b': 2})
    clock.forward(LEASE + 1)
    assert living.claim().arguments == {'a': 1, 'b': 2}


def test_a_process_that_is_alone_takes_all_at_once(process, servers, add):
    expected = [add(servers.add()), add(servers.add())]
    assert claimed(process()) == expected
    alone = process()
    assert claimed(alone) == []
    alone.release_all()
    assert claimed(alone) == expected


def test_work_is_put_off(queue, clock, servers, add):
    server_id = servers.add()
    first = add(server_id)
    add(server_id)
    queue.put_off(queue.claim(), 5)
    assert queue.claim() is None
    clock.forward(6)
    assert claimed(queue) == [first]


def test_what_waits_comes_back_in_its_time_and_has_tried_nothing(queue, clock, servers, add):
    first = add(servers.add(), arguments={'a': 1})
    queue.put_back(queue.claim(), 5)
    assert queue.claim() is None
    clock.forward(6)
    task = queue.claim()
    assert (task.id, tries(task), task.attempts, task.arguments['a']) == (first, 1, 2, 1)
    assert not task.taken_from


def test_what_waits_is_looked_at_again_when_its_server_is_asked_for_more(queue, clock, servers, add):
    one, other = servers.add(), servers.add()
    first, elsewhere = add(one), add(other)
    for task in (queue.claim(), queue.claim()):
        queue.put_back(task, 5)
    second = add(one)
    again = queue.claim()
    assert (again.id, queue.claim()) == (first, None)
    queue.put_back(again, 5)
    assert queue.claim() is None
    clock.forward(6)
    assert claimed(queue) == [first, elsewhere] and second


def test_who_is_at_work_does_not_wait_when_its_server_was_asked_for_more(queue, clock, servers, add):
    server_id = servers.add()
    first = add(server_id)
    task = queue.claim()
    add(server_id)
    queue.put_back(task, 5)
    clock.forward(0.001)
    again = queue.claim()
    assert again.id == first
    queue.put_back(again, 5)
    clock.forward(0.001)
    assert queue.claim() is None


# ------------------------------------------------------------------ tasks leased to a request


def leased(queue, server_id, undo=None):
    return queue.leased(KIND, server_id, BOB, {'a': 1}, undo or (lambda: None))


def test_what_is_leased_to_a_request_is_not_for_workers_until_it_is_released(store, process, servers):
    queue, other = process(), process()
    with leased(queue, servers.add()) as task:
        assert other.claim() is None
        task.arguments['b'] = 2
        with store.write() as connection:
            assert queue.release(connection, task, 7)
    found = other.claim()
    assert (found.id, found.arguments, found.action_id) == (task.id, {'a': 1, 'b': 2}, 7)


def test_a_request_that_is_too_slow_has_lost_its_task(store, process, clock, servers):
    queue, other = process(), process()
    with leased(queue, servers.add()) as task:
        clock.forward(LEASE + 1)
        assert other.claim().id == task.id
        with store.write() as connection:
            assert not queue.release(connection, task, None)


def test_a_request_that_fails_takes_back_what_it_made(queue, servers):
    undone = []
    with pytest.raises(Conflict), leased(queue, servers.add(), lambda: undone.append(1)):
        raise Conflict('No.')
    assert undone == [1]
    assert queue.idle()


@pytest.mark.parametrize('error', [NeighbourAway(name='Glance'), ValueError('a bug')])
def test_what_a_request_could_not_take_back_is_left_to_a_worker(queue, process, servers, error):
    def undo():
        raise error

    with pytest.raises(Conflict), leased(queue, servers.add(), undo) as task:
        raise Conflict('No.')
    assert process().claim().id == task.id


# ------------------------------------------------------------------ workers


@pytest.fixture
def worker(queue):
    """worker(function): threads that process tasks with this function."""
    started = []

    def start(function, sweep_seconds=TIMEOUT, threads=2):
        started.append(Worker(queue, function, threads, sweep_seconds))
        started[-1].start()
        return started[-1]

    yield start
    for each in started:
        each.stop()


def test_a_worker_that_is_woken_starts_at_once(queue, servers, add, finish, worker):
    done = threading.Event()
    worker(lambda task: finish(task) and done.set())
    add(servers.add())
    queue.wake()
    assert done.wait(TIMEOUT / 2)


def test_a_worker_looks_for_itself_now_and_then(servers, add, finish, worker):
    done = threading.Event()
    worker(lambda task: finish(task) and done.set(), sweep_seconds=0.05)
    add(servers.add())
    assert done.wait(TIMEOUT)


def test_a_worker_that_stops_finishes_first(servers, add, finish, worker):
    begun, let, done = threading.Event(), threading.Event(), threading.Event()

    def work(task):
        begun.set()
        let.wait(TIMEOUT)
        if finish(task):
            done.set()

    add(servers.add())
    working = worker(work)
    assert begun.wait(TIMEOUT)
    threading.Timer(0.1, let.set).start()
    working.stop()
    assert done.is_set()


def test_a_worker_does_others_while_one_waits_and_is_there_when_it_is_due(store, servers):
    queue, done, over = Tasks(store, LEASE), [], threading.Event()

    def work(task):
        done.append((task.id, task.attempts))
        if task.attempts == 1 and len(done) == 1:
            raise NotYet(0.2)
        store.change(queue.done, task)
        if len(done) == 3:
            over.set()

    waits, other = (store.change(queue.add, KIND, servers.add(), BOB).id for _ in range(2))
    working = Worker(queue, work, 1, TIMEOUT)
    working.start()
    assert over.wait(TIMEOUT / 2)
    working.stop()
    assert done == [(waits, 1), (other, 1), (waits, 2)]


def test_work_that_hangs_has_failed_and_stops_nothing_else(store, servers):
    """Its thread is replaced, the next worker knows the reason, and the outcome of the thread is discarded."""
    queue, hangs, over, ended = Tasks(store, 0.3), threading.Event(), threading.Event(), []

    def work(task):
        if task.id == first.id and task.attempts == 1:
            hangs.wait(TIMEOUT)
        ended.append((task.id, task.attempts, FAULT in task.arguments, store.change(queue.done, task)))
        if len(ended) == 2:
            over.set()

    first, second = (store.change(queue.add, KIND, servers.add(), BOB) for _ in range(2))
    working = Worker(queue, work, 1, TIMEOUT, timeout_seconds=0.5)
    working.start()
    hung = working.threads[0]
    assert over.wait(TIMEOUT)
    hangs.set()
    hung.join(TIMEOUT)
    working.stop()
    assert sorted(ended[:2]) == [(first.id, 2, True, True), (second.id, 1, False, True)]
    assert ended[2] == (first.id, 1, False, False)


def test_what_was_released_meanwhile_is_not_hastened(store, queue, servers, add, monkeypatch):
    """It would look like a task scheduled for later, and be forgotten with it."""
    server_id = servers.add()
    task = store.change(queue.add, KIND, server_id, BOB, leased=True)
    among = rows._among

    def release_between(connection, *arguments):
        found = among(connection, *arguments)
        queue.release(connection, task, None)
        return found

    monkeypatch.setattr(rows, '_among', release_between)
    with store.write() as connection:
        queue.hasten(connection, server_id)
    monkeypatch.undo()
    with store.write() as connection:
        queue.cancel(connection, server_id)
    assert claimed(queue) == [task.id]
