"""How fast the machine is: for figures of different machines to be compared."""

from __future__ import annotations

import time

LOOP = 10_000_000
"""How often something is added."""
REFERENCE = 0.45
"""Seconds of it on the machine where the aims hold."""


def calibration() -> float:
    """Seconds of a processor that so many additions take here and now: machines that others use too go faster and
    slower."""
    begin, total = time.process_time(), 0
    for number in range(LOOP):
        total += number
    return time.process_time() - begin
