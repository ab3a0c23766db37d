"""Tests against a cloud that runs; without one they are not there, rather than skipped."""

import fcntl
import os
from pathlib import Path

import pytest

from tests.neighbours.cloud import URL

collect_ignore_glob = [] if URL else ['test_*.py']
if 'COMPUTEAPI_TEST_NEIGHBOURS_COMPUTE' not in os.environ:
    # It needs a cloud without compute, whose endpoint is for tests to take.
    collect_ignore_glob += ['test_deploying.py', 'test_plugging.py']


@pytest.fixture
def compute_port():
    """The port that the catalog has for compute, which one test has at a time."""
    with Path(os.environ['COMPUTEAPI_TEST_NEIGHBOURS_FOLDER'], 'compute.lock').open('w') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield int(os.environ['COMPUTEAPI_TEST_NEIGHBOURS_COMPUTE'])
