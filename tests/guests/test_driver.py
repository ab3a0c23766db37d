"""The driver that runs guests behaves like any driver."""

import pytest

from computeapi.backends.hypervisor import Capability, Hypervisor
from tests.backends.implementations import As
from tests.backends.test_hypervisor import *  # noqa: F403


@pytest.fixture
def driver(guests, conf):
    conf.set_override('enabled', True, 'spice')
    return As(Hypervisor, guests.driver())


# The boot sector has no agent that could set a password: see test_qemu_linux.py.
@pytest.mark.parametrize('capability', [each for each in OPTIONAL if each is not Capability.SET_PASSWORD])  # noqa: F405
def test_what_a_driver_says_it_can_do_it_does_and_the_rest_it_refuses(driver, running, capability):
    check_capability(driver, running, capability)  # noqa: F405


# The volumes of that suite have no data here, and the boot sector does not release devices: see test_volumes.py.
del test_volumes_and_interfaces_come_and_go  # noqa: F821
