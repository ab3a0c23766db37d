"""When Python collects garbage (unreachable cycles of objects). What a process loads at its start is never garbage."""

import gc

NEW_OBJECTS = 10_000
"""Collect after this many new objects. With the default of 700, startup takes a tenth longer, and so does a page of
servers."""


def begin() -> None:
    """Collect rarely enough for a fast startup and for large answers."""
    gc.set_threshold(NEW_OBJECTS)


def exempt_existing_objects() -> None:
    """Exempt the existing objects: to search all of them takes longer than hundreds of requests."""
    gc.freeze()
