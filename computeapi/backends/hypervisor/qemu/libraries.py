"""Translates errors of third-party libraries."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from computeapi.backends.hypervisor import HypervisorError

LOG = logging.getLogger(__name__)


@contextmanager
def failing(problem: str, *, secrets: bool = False) -> Iterator[None]:
    """Turn any exception of a library in the block into a HypervisorError with this message; the log has the cause.

    secrets: the exception's text may contain secrets, so only its type is logged."""
    try:
        yield
    except HypervisorError:
        raise
    except Exception as error:
        LOG.warning('%s %s', problem, type(error).__name__ if secrets else error)
        raise HypervisorError(problem) from None
