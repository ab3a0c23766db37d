"""Answers that go on for as long as the client listens."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator


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
