"""Tests against a cloud that runs; without one they are not there, rather than skipped."""

import os

from tests.neighbours.cloud import URL

collect_ignore_glob = [] if URL else ['test_*.py']
if 'COMPUTEAPI_TEST_NEIGHBOURS_COMPUTE' not in os.environ:
    # It needs a cloud without compute, whose endpoint is for tests to take.
    collect_ignore_glob.append('test_deploying.py')
