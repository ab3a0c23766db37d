"""The threads that serve requests: none is idle while a job waits, and the most recently busy one is used first."""

import threading

import pytest

from computeapi.serve.http.threads import Threads

SECONDS = 10


@pytest.fixture
def threads():
    threads = Threads('test', 3)
    yield threads
    threads.stop(SECONDS)


def done_by(threads):
    """The name of the thread that does a job."""
    name, done = [], threading.Event()

    def job():
        name.append(threading.current_thread().name)
        done.set()

    threads.run(job)
    assert done.wait(SECONDS)
    return name[0]


def idle(threads, number):
    """Wait until this many threads are idle."""
    return any(len(threads.idle) == number or threading.Event().wait(0.01) for _ in range(SECONDS * 100))


def test_one_job_after_the_other_is_done_by_one_thread(threads):
    names = set()
    for _ in range(20):
        assert idle(threads, 3)
        names.add(done_by(threads))
    assert len(names) == 1


def test_as_many_jobs_at_once_as_there_are_threads(threads):
    together = threading.Barrier(4)
    for _ in range(3):
        threads.run(lambda: together.wait(SECONDS))
    together.wait(SECONDS)


def test_jobs_wait_while_all_are_busy(threads):
    go, order, last = threading.Event(), [], threading.Event()
    for _ in range(3):
        threads.run(lambda: go.wait(SECONDS))
    assert idle(threads, 0)

    def job(number):
        order.append(number)
        if len(order) == 30:
            last.set()

    for number in range(30):
        threads.run(lambda number=number: job(number))
    assert order == []
    go.set()
    assert last.wait(SECONDS)
    assert sorted(order) == list(range(30))


def test_what_was_given_is_done_before_the_end():
    threads, done = Threads('test', 2), []
    for number in range(50):
        threads.run(lambda number=number: done.append(number))
    threads.stop(SECONDS)
    assert sorted(done) == list(range(50))
    assert not any(thread.is_alive() for thread in threads.threads)
