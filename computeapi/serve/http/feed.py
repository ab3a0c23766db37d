"""Answers that go on for as long as the client listens."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

TAKEN = 'computeapi.feeds'
"""Is true in the environ of a request whose server takes a Feed; any other would give it a thread for all the time."""


class Feed(ABC):
    """What an app returns as its answer when it does not know yet all that it is going to say.

    An empty piece says that there is no more for now; until there is, or for `seconds`, it occupies no thread.
    """

    seconds: float

    @abstractmethod
    def __iter__(self) -> Iterator[bytes]: ...

    @abstractmethod
    def wait(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, from any thread, as soon as there is a piece: at once if there is one already."""

    @abstractmethod
    def end(self) -> None:
        """Let the next empty piece be the end instead: the client asks no more, or the server ends."""

    @abstractmethod
    def close(self) -> None:
        """Nobody listens any more."""


class RousedFeed(Feed):
    """One that is roused, in any thread, when there is something to say."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wake: Callable[[], None] | None = None
        self._roused = self._is_over = False

    def rouse(self) -> None:
        with self._lock:
            self._roused, wake, self._wake = True, self._wake, None
        if wake is not None:
            wake()

    def wait(self, wake: Callable[[], None]) -> None:
        with self._lock:
            if not self._roused:
                self._wake = wake
                return
        wake()

    def look(self) -> bool:
        """Whether what is there now is all that there will be; what comes from here on rouses it."""
        with self._lock:
            self._roused = False
        return self._is_over

    def end(self) -> None:
        self._is_over = True
        self.rouse()
