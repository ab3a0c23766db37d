"""Tests against a real cloud; without one they are not collected, rather than skipped."""

import fcntl
import os
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.neighbours.cloud import URL

collect_ignore_glob = [] if URL else ['test_*.py']
LENT = 'COMPUTEAPI_TEST_NEIGHBOURS_COMPUTE' in os.environ
if not LENT:
    # These need a cloud without compute, whose compute endpoint tests can use.
    collect_ignore_glob += ['test_deploying.py', 'test_plugging.py']


@pytest.fixture
def compute_port():
    """The port of the compute endpoint in the catalog, used by one test at a time."""
    with lent():
        yield int(os.environ['COMPUTEAPI_TEST_NEIGHBOURS_COMPUTE'])


@pytest.fixture
def compute_in_catalog():
    """Holds the compute endpoint during the test: whoever has its port may start with a catalog without it."""
    with lent() if LENT else nullcontext():
        yield


@contextmanager
def lent():
    with Path(os.environ['COMPUTEAPI_TEST_NEIGHBOURS_FOLDER'], 'compute.lock').open('w') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
