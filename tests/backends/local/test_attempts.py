"""Failed logins slow down the caller, and nobody else."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from computeapi import errors
from computeapi.backends.identity.local import LocalIdentity, attempts
from computeapi.backends.identity.local.attempts import FREE, MAX_PAUSE_SECONDS, Attempts, origin

ALICE, BOB = ('here', 'alice'), ('here', 'bob')


class Time:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def tried(time):
    return Attempts(time)


def fail(tried, caller, times=1):
    for _ in range(times):
        with pytest.raises(errors.NotAuthenticated) as caught, tried.counted(caller):
            raise errors.NotAuthenticated()
        assert type(caught.value) is errors.NotAuthenticated


def refused(tried, caller):
    """The remaining pause, in seconds."""
    with pytest.raises(errors.TooManyAttempts) as caught, tried.counted(caller):
        pass
    return caught.value.seconds


def test_each_failure_doubles_the_pause(tried, time):
    fail(tried, ALICE, FREE)
    for pause in (1, 2, 4):
        time.now += pause - 0.5
        assert refused(tried, ALICE) == 1
        time.now += 0.5
        fail(tried, ALICE)
    for _ in range(9):
        time.now += MAX_PAUSE_SECONDS
        fail(tried, ALICE)
    assert refused(tried, ALICE) == MAX_PAUSE_SECONDS + 1


def test_who_tries_many_at_once_learns_no_more_than_one_by_one(tried):
    begun, looked = threading.Barrier(FREE + 1), threading.Event()
    outcomes = []

    def guess():
        try:
            with tried.counted(ALICE):
                begun.wait(10)
                looked.wait(10)
                raise errors.NotAuthenticated()
        except errors.NotAuthenticated as error:
            outcomes.append(type(error))

    guesses = [threading.Thread(target=guess) for _ in range(3 * FREE)]
    for each in guesses:
        each.start()
    begun.wait(10)
    looked.set()
    for each in guesses:
        each.join()
    assert Counter(outcomes) == {errors.NotAuthenticated: FREE, errors.TooManyAttempts: 2 * FREE}
    assert not tried.under_way


def test_many_who_know_the_password_log_in_at_once(tried):
    fail(tried, ALICE, FREE - 1)

    def log_in(number):
        with tried.counted(ALICE):
            return number

    with ThreadPoolExecutor(3 * FREE) as pool:
        assert list(pool.map(log_in, range(100))) == list(range(100))


def test_nobody_else_waits_and_who_succeeds_starts_anew(tried, time):
    fail(tried, ALICE, FREE)
    for caller in (BOB, ('elsewhere', 'alice')):
        with tried.counted(caller):
            pass
    time.now += 1
    with tried.counted(ALICE):
        pass
    fail(tried, ALICE, FREE - 1)


def test_failures_are_forgotten(tried, time):
    fail(tried, ALICE, FREE)
    time.now += attempts.FORGOTTEN
    fail(tried, ALICE, FREE)


def test_memory_is_bounded(tried, monkeypatch):
    monkeypatch.setattr(attempts, 'MAX_CALLERS', 3)
    for number in range(9):
        fail(tried, number)
    assert list(tried.failures) == [6, 7, 8]


def test_a_right_password_works_after_the_pause(store, time):
    identity = LocalIdentity(store, bcrypt_cost=4, cache_seconds=0, monotonic=time)
    identity.populate('right', 'other')
    for _ in range(FREE):
        with pytest.raises(errors.NotAuthenticated):
            identity.authenticate_password('admin', 'wrong', 'here')
    with pytest.raises(errors.TooManyAttempts):
        identity.authenticate_password('admin', 'right', 'here')
    assert identity.authenticate_password('demo', 'other', 'here').user_name == 'demo'
    assert identity.authenticate_password('admin', 'right', 'elsewhere').user_name == 'admin'
    time.now += 1
    assert identity.authenticate_password('admin', 'right', 'here').user_name == 'admin'


@pytest.mark.parametrize(
    ('address', 'stands_for'),
    [
        ('2001:db8:0:1:2:3:4:5', '2001:db8:0:1::/64'),
        ('[2001:db8:0:1::7]', '2001:db8:0:1::/64'),
        ('[2001:db8:0:1::7]:4711', '2001:db8:0:1::/64'),
        ('fe80::1%eth0', 'fe80::/64'),
        ('::ffff:192.0.2.1', '192.0.2.1'),
        ('192.0.2.1', '192.0.2.1'),
        ('192.0.2.1:4711', '192.0.2.1'),
        ('_hidden', '_hidden'),
        ('', ''),
        (None, None),
    ],
)
def test_attempts_are_counted_by_what_a_client_has_all_of(address, stands_for):
    assert origin(address) == stands_for


def test_other_addresses_of_a_network_give_no_further_attempts(store, time):
    identity = LocalIdentity(store, bcrypt_cost=4, cache_seconds=0, monotonic=time)
    user = {'name': 'nobody', 'domain': {'id': 'default'}}
    for host in range(FREE):
        with pytest.raises(errors.NotAuthenticated):
            identity.logins.with_password(user, 'wrong', f'2001:db8::{host}')
    with pytest.raises(errors.TooManyAttempts):
        identity.logins.with_password(user, 'wrong', '2001:db8::ffff')
    with pytest.raises(errors.NotAuthenticated) as caught:
        identity.logins.with_password(user, 'wrong', '2001:db8:0:1::1')
    assert type(caught.value) is errors.NotAuthenticated
