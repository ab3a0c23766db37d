"""Workers on other machines are notified at once about queued tasks, and again after a lost connection."""

import threading
from contextlib import closing, contextmanager
from queue import Queue

import pytest
import sqlalchemy as sa

from computeapi.compute.tasks.queue import Tasks
from computeapi.compute.tasks.worker import Worker
from computeapi.context import Context
from computeapi.db import actions, wakeups
from computeapi.db.engine import Store
from computeapi.db.wakeups import Listener
from tests.waiting import eventually

TIMEOUT, FOREVER = 20, 3600
LISTENING = sa.text(
    'SELECT pid FROM pg_stat_activity WHERE query = :listen AND datname = current_database() ORDER BY pid'
)


class Work:
    kind = 'pause'


@pytest.fixture
def elsewhere(store):
    """The queue as seen by a process on another machine."""
    with closing(Store(store.url.render_as_string(hide_password=False))) as other:
        yield Tasks(other, 60)


@pytest.fixture
def done(store):
    """The kinds of the tasks completed by a worker that does not poll the queue, but listens."""
    queue, kinds = Tasks(store, 60), Queue()

    def work(task):
        assert store.change(queue.done, task)
        kinds.put(task.kind)

    worker = Worker(queue, work, 3, FOREVER)
    # Reconnect at once.
    worker.listening.seconds = 0.05
    worker.start()
    eventually(lambda: listening(store))
    yield kinds
    worker.stop()
    eventually(lambda: not listening(store))


def listening(store):
    with store.read() as connection:
        return connection.scalars(LISTENING, {'listen': f'LISTEN {wakeups.CHANNEL}'}).all()


def add(queue, *server_ids, **kwargs):
    with queue.store.write() as connection:
        added = [
            queue.add(connection, Work, each, Context(user_id='bob', project_id='p'), **kwargs) for each in server_ids
        ]
    return added[-1]


@contextmanager
def listening_to(store):
    """The notifications that a listener received."""
    heard = Queue()
    listener = Listener(store, lambda: heard.put('heard'))
    thread = threading.Thread(target=listener.listen)
    thread.start()
    yield heard
    listener.stop()
    thread.join(TIMEOUT)
    assert not thread.is_alive()


@pytest.mark.postgresql
def test_what_another_process_queues_is_begun_at_once(elsewhere, done, servers):
    """The worker itself would poll after an hour."""
    for _ in range(2):
        add(elsewhere, servers.add())
        assert done.get(timeout=TIMEOUT) == 'pause'


@pytest.mark.postgresql
def test_several_that_are_queued_together(elsewhere, done, servers):
    add(elsewhere, *(servers.add() for _ in range(5)))
    assert [done.get(timeout=TIMEOUT) for _ in range(5)] == ['pause'] * 5


@pytest.mark.postgresql
def test_several_of_one_request(elsewhere, done, servers):
    ids, bob = [servers.add() for _ in range(5)], Context(user_id='bob', project_id='p')
    with elsewhere.store.write() as connection:
        begun = actions.start_all(connection, bob, ids, 'pause', elsewhere.clock())
        elsewhere.add_all(connection, Work, begun, bob, {})
    assert [done.get(timeout=TIMEOUT) for _ in ids] == ['pause'] * 5


@pytest.mark.postgresql
def test_what_another_process_prepares(elsewhere, done, servers):
    """Others get it when it is released, and no sooner."""
    task = add(elsewhere, servers.add(), leased=True)
    assert done.empty()
    assert elsewhere.store.change(elsewhere.release, task, None)
    assert done.get(timeout=TIMEOUT) == 'pause'


@pytest.mark.postgresql
def test_what_waits_and_is_hastened_by_another_process(elsewhere, done, servers):
    server_id = servers.add()
    elsewhere.put_back(add(elsewhere, server_id, leased=True), FOREVER)
    elsewhere.store.change(elsewhere.hasten, server_id)
    assert done.get(timeout=TIMEOUT) == 'pause'


@pytest.mark.postgresql
def test_a_connection_that_was_lost_is_made_anew(elsewhere, done, servers, store):
    [former] = listening(store)
    with store.read() as connection:
        connection.execute(sa.select(sa.func.pg_terminate_backend(former)))
    eventually(lambda: listening(store) not in ([], [former]))
    add(elsewhere, servers.add())
    assert done.get(timeout=TIMEOUT) == 'pause'


@pytest.mark.postgresql
def test_what_is_told_is_what_was_committed_and_once(elsewhere, store, servers):
    ids = [servers.add(), servers.add()]
    with listening_to(store) as heard:
        assert heard.get(timeout=TIMEOUT), 'Earlier notifications are not repeated.'
        with pytest.raises(ZeroDivisionError), elsewhere.store.write() as connection:
            elsewhere.add(connection, Work, ids[0], Context(user_id='bob', project_id='p'))
            raise ZeroDivisionError()
        add(elsewhere, *ids)
        assert heard.get(timeout=TIMEOUT)
    assert heard.empty()


def test_nobody_listens_where_nothing_is_told(store):
    assert Listener(store, print).possible is (store.dialect == 'postgresql')
    store.change(wakeups.notify)
