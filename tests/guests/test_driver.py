"""The driver that runs guests does what any driver does."""

import pytest

from computeapi.backends.hypervisor import Hypervisor
from tests.backends.implementations import As
from tests.backends.test_hypervisor import *  # noqa: F403


@pytest.fixture
def driver(guests):
    return As(Hypervisor, guests.driver())


# Volumes and moves are not there yet.
del test_volumes_and_interfaces_come_and_go  # noqa: F821
del test_a_copy_that_is_switched_off_is_on_both_hosts_until_one_is_destroyed  # noqa: F821
del test_what_is_not_there_cannot_move  # noqa: F821
del test_a_live_migration_ends_on_the_other_host  # noqa: F821
del test_a_live_migration_can_be_cancelled  # noqa: F821
del test_who_was_taken_for_dead_is_refused  # noqa: F821
