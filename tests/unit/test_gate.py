"""A gate that closes while nobody is inside."""

import signal
import threading

import pytest

from computeapi.gate import Gate


class Interrupted(Exception):
    """Raised as by Ctrl-C, or by whatever ends a test that takes too long."""


@pytest.fixture
def interrupting():
    """Interrupts the waiting thread after a moment."""

    def interrupt(*_):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_who_is_interrupted_before_it_is_closed_leaves_it_open(interrupting):
    gate, passed = Gate(), threading.Event()
    with gate.passing(), pytest.raises(Interrupted), gate.closed():
        pass

    def go_through():
        with gate.passing():
            passed.set()

    threading.Thread(target=go_through, daemon=True).start()
    assert passed.wait(5)
