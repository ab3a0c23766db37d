"""What tests of work share: time."""

import pytest

from tests.clock import StandingClock


@pytest.fixture
def clock():
    return StandingClock()
