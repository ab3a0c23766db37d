"""Snapshot images in transfer: a worker fetches them piece by piece."""

import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

from computeapi.backends.hypervisor.remote.calls import chunks

# A worker that does not fetch the next piece within this time is gone.
MAX_PAUSE_SECONDS = 120.0
# The maximum number of streams; the one that was idle longest makes room.
MAX_STREAMS = 16


@dataclass
class Stream:
    """number: that of the last piece handed out."""

    pieces: Iterator[bytes]
    lock: threading.Lock = field(default_factory=threading.Lock)
    number: int = -1
    last: bytes = b''
    asked_at: float = field(default_factory=time.monotonic)

    def piece(self, number: int) -> bytes | None:
        with self.lock:
            self.asked_at = time.monotonic()
            if number == self.number + 1:
                self.last, self.number = next(self.pieces, b''), number
            return self.last if number == self.number else None


class Streams:
    def __init__(self) -> None:
        self.lock, self.kept = threading.Lock(), dict[str, Stream]()

    def add(self, blocks: Iterator[bytes]) -> str:
        """Add a stream; returns its name."""
        name = str(uuid.uuid4())
        with self.lock:
            now = time.monotonic()
            for old in [key for key, each in self.kept.items() if now - each.asked_at > MAX_PAUSE_SECONDS]:
                del self.kept[old]
            while len(self.kept) >= MAX_STREAMS:
                del self.kept[min(self.kept, key=lambda key: self.kept[key].asked_at)]
            self.kept[name] = Stream(chunks(blocks))
        return name

    def piece(self, name: str, number: int) -> bytes | None:
        """The next piece, or the last one again: b'' after the end. None if there is no such stream or piece."""
        with self.lock:
            stream = self.kept.get(name)
        return None if stream is None else stream.piece(number)
