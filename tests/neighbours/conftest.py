"""Tests against a cloud that runs; without one they are not there, rather than skipped."""

import fcntl
import os
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.neighbours.cloud import URL

collect_ignore_glob = [] if URL else ['test_*.py']
LENT = 'COMPUTEAPI_TEST_NEIGHBOURS_COMPUTE' in os.environ
if not LENT:
    # It needs a cloud without compute, whose endpoint is for tests to take.
    collect_ignore_glob += ['test_deploying.py', 'test_plugging.py']


@pytest.fixture
def compute_port():
    """The port that the catalog has for compute, which one test has at a time."""
    with lent():
        yield int(os.environ['COMPUTEAPI_TEST_NEIGHBOURS_COMPUTE'])


@pytest.fixture
def compute_in_catalog():
    """Compute is there while the test runs: who has its port may begin with a catalog without it."""
    with lent() if LENT else nullcontext():
        yield


@contextmanager
def lent():
    with Path(os.environ['COMPUTEAPI_TEST_NEIGHBOURS_FOLDER'], 'compute.lock').open('w') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
