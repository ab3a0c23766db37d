"""The driver that runs guests does what any driver does."""

import pytest

from computeapi.backends.hypervisor import Hypervisor
from tests.backends.implementations import As
from tests.backends.test_hypervisor import *  # noqa: F403


@pytest.fixture
def driver(guests):
    return As(Hypervisor, guests.driver())


# The volumes of that suite have no data here, and the boot sector lets go of none: see test_volumes.py.
del test_volumes_and_interfaces_come_and_go  # noqa: F821
