"""Shared fixtures of the tests of compute: a clock."""

import pytest

from tests.clock import StandingClock


@pytest.fixture
def clock():
    return StandingClock()
