"""Responses that continue for as long as the client listens."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

TAKEN = 'computeapi.feeds'
"""True in the environ if the server supports a Feed; with another server, each would occupy a thread."""


class Feed(ABC):
    """A response that an app returns when it does not know all of its content yet.

    An empty piece means that there is no more for now. Until there is, or for `seconds`, no thread is occupied.
    """

    seconds: float

    @abstractmethod
    def __iter__(self) -> Iterator[bytes]: ...

    @abstractmethod
    def wait(self, wake: Callable[[], None]) -> None:
        """Call `wake`, from any thread, as soon as there is a piece; at once if there is one already."""

    @abstractmethod
    def end(self) -> None:
        """Let the next empty piece be the end: the client sends nothing more, or the server stops."""

    @abstractmethod
    def close(self) -> None:
        """Clean up: the client does not listen any more."""


class WakeableFeed(Feed):
    """A feed that is woken, from any thread, when there is something to send."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wake: Callable[[], None] | None = None
        self._woken = self._is_over = False

    def wake(self) -> None:
        with self._lock:
            self._woken, wake, self._wake = True, self._wake, None
        if wake is not None:
            wake()

    def wait(self, wake: Callable[[], None]) -> None:
        with self._lock:
            if not self._woken:
                self._wake = wake
                return
        wake()

    def look(self) -> bool:
        """Returns whether what is available now is the last; what follows will wake the feed."""
        with self._lock:
            self._woken = False
        return self._is_over

    def end(self) -> None:
        self._is_over = True
        self.wake()
