"""Tests against a cloud that runs; without one they are not there, rather than skipped."""

from tests.neighbours.cloud import URL

collect_ignore_glob = [] if URL else ['test_*.py']
