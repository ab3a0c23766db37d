"""When Python looks for garbage: objects that only know each other. What a process of the service loads is none."""

import gc

NEW_OBJECTS = 10_000
"""From so many on it is looked for. With the usual 700, a start takes a tenth longer, and so does a page of servers."""


def begin() -> None:
    """Look for it seldom enough for a start, and for large answers."""
    gc.set_threshold(NEW_OBJECTS)


def spare_what_is_there() -> None:
    """Look only through what is made from now on: through all of it takes longer than hundreds of requests."""
    gc.freeze()
