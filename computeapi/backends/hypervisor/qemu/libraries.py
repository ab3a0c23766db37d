"""Errors of what others wrote, as ours."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from computeapi.backends.hypervisor import HypervisorError

LOG = logging.getLogger(__name__)


@contextmanager
def failing(problem: str, *, secrets: bool = False) -> Iterator[None]:
    """Whatever a library comes up with in the block is a HypervisorError in these words, which the log explains.

    secrets: what it says of itself may hold some, and stays out of the log."""
    try:
        yield
    except HypervisorError:
        raise
    except Exception as error:
        LOG.warning('%s %s', problem, type(error).__name__ if secrets else error)
        raise HypervisorError(problem) from None
