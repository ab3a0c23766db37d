"""Notifications are sent in their order, by one process at a time, and wait for a broker that is away."""

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from computeapi.compute.notifications.sender import BATCH, LEASE, Sender
from computeapi.db import notifications as rows
from computeapi.errors import NeighbourAway


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
    return Sender(store, broker.send)


@pytest.fixture
def announce(store):
    """announce(name, ...): write notifications of these types in one transaction each. most: how many are kept."""

    def add(*names, most=1000):
        for name in names:
            facts = {'format': 'versioned', 'priority': 'info', 'publisher_id': 'nova-compute:compute1'}
            facts |= {'event_type': name, 'context': {}, 'payload': {'name': name}, 'created_at': store.clock()}
            store.change(rows.add, most, [facts])

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
        rows.add(connection, 1000, [facts | {'context': {}, 'payload': {}, 'created_at': store.clock()}])
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
    Sender(store, other.send).catch_up()
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


def test_the_oldest_are_dropped_while_the_broker_is_away(announce, store, monkeypatch):
    monkeypatch.setattr(rows, 'TRIM_EVERY', 10)
    announce(*map(str, range(50)), most=20)
    left = store.query(rows.NOTIFICATIONS.all, rows.OLDEST)
    assert 20 <= len(left) < 30
    assert [each.event_type for each in left] == [str(number) for number in range(50 - len(left), 50)]


def test_the_oldest_are_also_dropped_when_several_are_added_at_once(store, monkeypatch):
    monkeypatch.setattr(rows, 'TRIM_EVERY', 10)
    facts = {'format': 'versioned', 'priority': 'info', 'publisher_id': 'p', 'context': {}, 'payload': {}}
    for number in range(0, 52, 4):
        some = [facts | {'event_type': f'{number + each}', 'created_at': store.clock()} for each in range(4)]
        store.change(rows.add, 20, some)
    left = store.query(rows.NOTIFICATIONS.all, rows.OLDEST)
    assert 20 <= len(left) < 32
    assert [each.event_type for each in left] == [str(number) for number in range(52 - len(left), 52)]


@pytest.mark.several_writers
def test_who_has_nothing_to_drop_does_not_wait_for_the_sender(announce, store, monkeypatch):
    monkeypatch.setattr(rows, 'TRIM_EVERY', 1)
    announce('a', 'b')
    now = store.clock()
    with ThreadPoolExecutor() as pool, store.write() as connection:
        rows.claim(connection, now, now + LEASE, BATCH)
        pool.submit(announce, 'c').result(5)
    assert store.query(rows.waiting) == 3
