"""Responses that arrive in small pieces, so slowly that a client waits long, but no single read times out."""

from collections.abc import Iterable, Iterator

from computeapi.serve.http.feed import WakeableFeed
from computeapi.web.filters import close

PIECES_A_SECOND = 5


class TrickledAnswer(WakeableFeed):
    """The data, in equal pieces over these seconds. No thread is occupied between them."""

    def __init__(self, data: bytes, seconds: float):
        super().__init__()
        number = max(1, min(len(data), round(seconds * PIECES_A_SECOND)))
        self.seconds = seconds / number
        self.data, self.size = data, -(-len(data) // number)

    def __iter__(self) -> Iterator[bytes]:
        for start in range(0, len(self.data), self.size):
            if start and self.look():
                # The client or the cloud has ended; the client sees that the response is incomplete.
                return
            yield b''
            yield self.data[start : start + self.size]

    def close(self) -> None:
        """There is nothing to clean up."""


def trickled(answer: Iterable[bytes], seconds: float) -> TrickledAnswer:
    """This response, sent slowly, over *seconds*."""
    try:
        return TrickledAnswer(b''.join(answer), seconds)
    finally:
        close(answer)
