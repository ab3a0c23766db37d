"""A calibration loop, so that figures from different machines can be compared."""

from __future__ import annotations

import time

LOOP = 10_000_000
"""The number of additions."""
REFERENCE = 0.45
"""Seconds of CPU time that the loop takes on the machine for which the aims are stated."""


def calibration() -> float:
    """Seconds of CPU time that the loop takes now; on a shared machine, this changes from one moment to the next."""
    begin, total = time.process_time(), 0
    for number in range(LOOP):
        total += number
    return time.process_time() - begin
