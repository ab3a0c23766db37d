"""Notifications are sent in their order, by one process at a time, and wait for a broker that is away."""

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from computeapi.compute.notifications.sender import BATCH, LEASE, Sender
from computeapi.db import notifications as rows
from computeapi.errors import NeighbourAway

MOST_WAITING = 60


class Broker:
    """Receives notifications. left: how many it accepts before it goes away; None: all."""

    def __init__(self):
        self.received, self.left = [], None

    def send(self, notification):
        if self.left == 0:
            raise NeighbourAway(name='the message broker')
        self.left = None if self.left is None else self.left - 1
        self.received.append(notification)

    @property
    def types(self):
        return [each.event_type for each in self.received]


@pytest.fixture
def broker():
    return Broker()


@pytest.fixture
def sender(store, broker):
    return Sender(store, broker.send, MOST_WAITING)


@pytest.fixture
def announce(store):
    """announce(name, ...): write notifications of these types in one transaction each."""

    def add(*names):
        for name in names:
            facts = {'format': 'versioned', 'priority': 'info', 'publisher_id': 'nova-compute:compute1'}
            facts |= {'event_type': name, 'context': {}, 'payload': {'name': name}, 'created_at': store.clock()}
            store.change(rows.add, [facts])

    return add


def test_all_are_sent_in_order(sender, broker, announce, store):
    wanted = [f'event-{number}' for number in range(BATCH + 2)]
    announce(*wanted)
    sender.catch_up()
    assert broker.types == wanted
    assert store.query(rows.waiting) == 0


def test_a_writer_wakes_the_sender(announce, store):
    store.announced.clear()
    announce('event')
    assert store.announced.is_set()


def test_a_transaction_that_fails_announces_nothing(store, sender, broker):
    store.announced.clear()
    with pytest.raises(RuntimeError), store.write() as connection:
        facts = {'format': 'versioned', 'priority': 'info', 'publisher_id': 'p', 'event_type': 'e'}
        rows.add(connection, [facts | {'context': {}, 'payload': {}, 'created_at': store.clock()}])
        raise RuntimeError('The process dies.')
    sender.catch_up()
    assert not store.announced.is_set() and broker.received == []


def test_those_that_the_broker_does_not_take_wait(sender, broker, announce, store, caplog):
    announce('a', 'b', 'c')
    broker.left = 1
    with caplog.at_level(logging.WARNING):
        sender.catch_up()
        sender.catch_up()
    assert broker.types == ['a']
    assert [each.getMessage() for each in caplog.records] == [
        '2 notifications wait for the broker: the message broker is currently unavailable.'
    ]
    broker.left = None
    sender.catch_up()
    assert broker.types == ['a', 'b', 'c']
    assert store.query(rows.waiting) == 0


def test_one_process_sends_at_a_time(sender, announce, store):
    announce('a', 'b')
    now = store.clock()
    assert len(store.change(rows.claim, now, now + LEASE, BATCH)) == 2
    announce('c')
    other = Broker()
    Sender(store, other.send, MOST_WAITING).catch_up()
    assert other.received == []


def test_those_of_a_process_that_died_are_sent_again_with_the_same_ids(sender, broker, announce, store):
    announce('a')
    long_ago = store.clock() - timedelta(minutes=5)
    (lost,) = store.change(rows.claim, long_ago, long_ago + LEASE, BATCH)
    sender.catch_up()
    assert [each.message_id for each in broker.received] == [lost.message_id]


@pytest.mark.several_writers
def test_two_processes_that_begin_at_once(announce, store):
    announce('a', 'b')
    now = store.clock()
    with ThreadPoolExecutor() as pool:
        with store.write() as connection:
            first = rows.claim(connection, now, now + LEASE, BATCH)
            second = pool.submit(store.change, rows.claim, now, now + LEASE, BATCH)
            with pytest.raises(TimeoutError):
                second.result(0.5)
        assert (len(first), second.result(10)) == (2, [])


def test_the_oldest_are_dropped_while_the_broker_is_away(sender, broker, announce, store, caplog):
    announce(*map(str, range(MOST_WAITING + 5)))
    broker.left = 0
    sender.catch_up()
    sender.catch_up()
    left = store.query(rows.NOTIFICATIONS.all, rows.OLDEST)
    assert [each.event_type for each in left] == [str(number) for number in range(5, MOST_WAITING + 5)]
    broker.left = None
    sender.catch_up()
    assert 'The broker is available again; 5 notifications were dropped meanwhile' in caplog.text
    assert broker.types == [each.event_type for each in left]


def test_all_are_sent_while_the_broker_is_there(sender, broker, announce):
    wanted = [str(number) for number in range(2 * MOST_WAITING)]
    announce(*wanted)
    sender.catch_up()
    assert broker.types == wanted


@pytest.mark.several_writers
def test_writers_do_not_wait_for_the_sender(announce, store):
    announce('a', 'b')
    now = store.clock()
    with ThreadPoolExecutor() as pool, store.write() as connection:
        rows.claim(connection, now, now + LEASE, BATCH)
        pool.submit(announce, 'c').result(5)
    assert store.query(rows.waiting) == 3
