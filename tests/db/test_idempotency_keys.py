"""Claims on Idempotency-Keys: a key belongs to one process at a time, and its request is carried out once."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import timedelta

import pytest

from computeapi.clock import utcnow
from computeapi.db import archive, cells
from computeapi.db.engine import Store
from computeapi.db.idempotency_keys import LEASE, KeyClaims
from computeapi.errors import IdempotencyKeyReused, OutcomeUnknown, RequestUnderWay, TooManyIdempotencyKeys
from tests.clock import StandingClock

KEPT, MAX_KEYS = timedelta(hours=1), 20
LAPSE = LEASE + timedelta(seconds=1)

HOLDER = """
import sys, time
from computeapi.db import cells
from computeapi.db.engine import Store
from computeapi.db.idempotency_keys import KeyClaims
store = Store(sys.argv[1])
claims = KeyClaims(store, 3600, 20)
with claims.doing(claims.take('key', 'bob', 'print')):
    if sys.argv[2] == 'late':
        store.change(cells.register, ['left'])
    print('held', flush=True)
    time.sleep(600)
"""
"""A process that never produces a response."""


@pytest.fixture
def time():
    return StandingClock()


@pytest.fixture
def other(store, time):
    """The store of another process."""
    with closing(Store(store.url.render_as_string(hide_password=False), durable=False)) as other:
        other.clock = time
        yield other


@pytest.fixture
def claims(store, time):
    clock, store.clock = store.clock, time
    yield KeyClaims(store, KEPT.seconds, MAX_KEYS)
    store.clock = clock


def change(store, name='new'):
    store.change(cells.register, [name])


def changed(store):
    return [cell.name for cell in store.query(cells.every)]


def test_one_has_it_until_it_has_an_answer(claims, other):
    claim = claims.take('key', 'bob', 'print')
    assert claim.answer is None
    for each in (claims, KeyClaims(other, KEPT.seconds, MAX_KEYS)):
        with pytest.raises(RequestUnderWay):
            each.take('key', 'bob', 'print')
        with pytest.raises(IdempotencyKeyReused):
            each.take('key', 'bob', 'other')
    claims.keep(claim, 'done')
    assert KeyClaims(other, KEPT.seconds, MAX_KEYS).take('key', 'bob', 'print').answer == 'done'


def test_what_changed_nothing_is_forgotten(claims):
    claim = claims.take('key', 'bob', 'print')
    assert claims.drop(claim)
    assert claims.take('key', 'bob', 'other').answer is None


def test_what_changed_something_is_not(claims, store):
    claim = claims.take('key', 'bob', 'print')
    with claims.doing(claim):
        change(store)
    assert not claims.drop(claim)
    with pytest.raises(RequestUnderWay):
        claims.take('key', 'bob', 'print')


def test_what_was_rolled_back_changed_nothing(claims, store):
    claim = claims.take('key', 'bob', 'print')
    with claims.doing(claim), suppress(ZeroDivisionError), store.write() as connection:
        cells.register(connection, ['new'])
        _ = 1 / 0
    assert claims.drop(claim) and changed(store) == []


def test_others_do_not_wait_for_ever(claims, time):
    claims.take('key', 'bob', 'print')
    time.forward(LAPSE.total_seconds())
    assert claims.take('key', 'bob', 'print').answer is None


def test_who_is_taken_for_dead_changes_nothing_more(claims, store, other, time):
    slow, others = claims.take('key', 'bob', 'print'), KeyClaims(other, KEPT.seconds, MAX_KEYS)
    time.forward(LAPSE.total_seconds())
    quick = others.take('key', 'bob', 'print')
    with claims.doing(slow), pytest.raises(RequestUnderWay):
        change(store, 'slow')
    with others.doing(quick):
        change(other, 'quick')
    others.keep(quick, 'quick')
    claims.keep(slow, 'slow')
    assert not claims.drop(slow)
    assert changed(store) == ['quick'] and claims.take('key', 'bob', 'print').answer == 'quick'


def test_who_was_slow_still_has_its_answer_kept(claims, store, time):
    """Others do not repeat what was begun."""
    slow = claims.take('key', 'bob', 'print')
    with claims.doing(slow):
        change(store)
        time.forward(LAPSE.total_seconds())
        with pytest.raises(OutcomeUnknown):
            claims.take('key', 'bob', 'print')
        change(store, 'more')
    claims.keep(slow, 'slow')
    assert claims.take('key', 'bob', 'print').answer == 'slow'


@pytest.mark.parametrize('answered', [True, False])
def test_a_key_is_free_when_its_time_is_over(claims, store, time, answered):
    claim = claims.take('key', 'bob', 'print')
    with claims.doing(claim):
        change(store)
    if answered:
        claims.keep(claim, 'done')
    time.forward((KEPT + LAPSE).total_seconds())
    assert claims.take('key', 'bob', 'other').answer is None


def test_what_is_over_is_purged(claims, store, time):
    time.forward(days=-2)
    claims.keep(claims.take('old', 'bob', 'print'), 'done')
    time.forward(days=2)
    claims.keep(claims.take('new', 'bob', 'print'), 'done')
    assert archive.purge(store, utcnow() + timedelta(days=1), batch=10) == {'idempotency_keys': 1}
    assert claims.take('new', 'bob', 'print').answer == 'done'


def test_a_user_has_so_many_at_a_time(claims, store, time):
    for number in range(MAX_KEYS):
        claims.keep(claims.take(f'{number}', 'bob', 'print'), 'done')
    with pytest.raises(TooManyIdempotencyKeys, match=str(MAX_KEYS)):
        claims.take('more', 'bob', 'print')
    # Refused claims take no space; existing ones continue, and so do those of others.
    assert claims.take('1', 'bob', 'print').answer == 'done'
    assert claims.drop(claims.take('more', 'alice', 'print'))
    time.forward((KEPT + LAPSE).total_seconds())
    assert claims.take('more', 'bob', 'print').answer is None


def test_other_threads_are_not_minded(claims, store):
    claim = claims.take('key', 'bob', 'print')
    with claims.doing(claim), ThreadPoolExecutor(1) as pool:
        pool.submit(change, store).result()
    assert claims.drop(claim)


def test_of_many_at_once_one_wins(claims, store, other):
    """Eight threads compete for each key."""
    processes = [(claims, store), (KeyClaims(other, KEPT.seconds, MAX_KEYS), other)]
    together = threading.Barrier(8)

    def want(number):
        mine, its = processes[number % 2]
        won = []
        for key in range(10):
            together.wait(60)
            with suppress(RequestUnderWay):
                claim = mine.take(f'key{key}', 'bob', 'print')
                if claim.answer is None:
                    with mine.doing(claim):
                        change(its, f'key{key}')
                    mine.keep(claim, 'done')
                    won.append(key)
        return won

    with ThreadPoolExecutor(8) as pool:
        won = sorted(key for keys in pool.map(want, range(8)) for key in keys)
    assert won == list(range(10))
    assert {claims.take(f'key{key}', 'bob', 'print').answer for key in range(10)} == {'done'}


@pytest.mark.parametrize('when', ['early', 'late'])
def test_a_process_that_was_killed(claims, store, time, when):
    url = store.url.render_as_string(hide_password=False)
    with subprocess.Popen([sys.executable, '-c', HOLDER, url, when], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout.readline() == 'held\n'
            with pytest.raises(RequestUnderWay):
                claims.take('key', 'bob', 'print')
        finally:
            holder.kill()
    time.forward(LAPSE.total_seconds(), minutes=10)
    if when == 'early':
        assert claims.take('key', 'bob', 'print').answer is None
        return
    assert changed(store) == ['left']
    with pytest.raises(OutcomeUnknown):
        claims.take('key', 'bob', 'print')
