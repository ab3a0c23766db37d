"""Waits for what happens in other threads and processes."""

import time

SECONDS = 60


def eventually(condition):
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)
