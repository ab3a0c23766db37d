"""The body of a request that is too long to be buffered: the app reads it while it arrives."""

import io
import threading
from collections import deque
from collections.abc import Callable


class StreamedBody(io.RawIOBase):
    """A body that the event loop feeds and a thread of the app reads.

    wanted: called in the reading thread when it has nothing to read, and more may be fed.
    """

    FULL = 256 * 1024
    """Nothing more should be fed while this many bytes are buffered."""

    def __init__(self, wanted: Callable[[], None]):
        self.wanted = wanted
        self.pieces: deque[bytes] = deque()
        self.size = 0
        self.complete = self.broken = False
        self.changed = threading.Condition()

    @property
    def full(self) -> bool:
        return self.size >= self.FULL

    def feed(self, data: bytes) -> None:
        with self.changed:
            self.pieces.append(data)
            self.size += len(data)
            self.changed.notify()

    def end(self, *, broken: bool = False) -> None:
        """No more data follows. broken: the body is incomplete."""
        with self.changed:
            if not self.complete:
                self.complete, self.broken = not broken, broken
            self.changed.notify()

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        """As in RawIOBase; OSError if the client disconnected before the end."""
        if not (self.pieces or self.complete or self.broken):
            self.wanted()
        with self.changed:
            self.changed.wait_for(lambda: self.pieces or self.complete or self.broken)
            if not self.pieces:
                if self.broken:
                    raise ConnectionResetError('The client disconnected before the end of the body.')
                return 0
            piece = self.pieces.popleft()
            taken = min(len(piece), len(target))
            target[:taken] = piece[:taken]
            if taken < len(piece):
                self.pieces.appendleft(piece[taken:])
            self.size -= taken
        return taken
