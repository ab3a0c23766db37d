"""Events for clients over HTTP: server-sent events, lines of JSON, or a list that can be waited for."""

import time
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol

import orjson

from computeapi.kit.events import Events
from computeapi.kit.events.event import CloudEvent, EventFilter
from computeapi.kit.variables import LINES
from computeapi.serve.http.feed import WakeableFeed

BEAT_SECONDS = 15.0
"""The interval of heartbeats to a client, with which both sides notice a broken connection."""
BATCH = 100
"""How many events are written at a time."""
RETRY_MILLISECONDS = 1000
OVER = 'The cloud is shutting down, or the client left.'


class Form(Protocol):
    """The format of a stream. opening: its first bytes.  beat: a heartbeat, without content."""

    media_type: str
    opening: bytes
    beat: bytes

    def event(self, event: CloudEvent) -> bytes:
        """An event."""

    def last(self, place: int, reason: str) -> bytes:
        """The end of the stream, with the reason. A client can resume after *place* without missing events that are
        kept."""


class ServerSentEvents:
    """The format of the HTML standard. Events have no type, so that browsers pass them to `onmessage`, except for the
    last one, `end`."""

    media_type = 'text/event-stream'
    opening = b'retry: %d\n\n' % RETRY_MILLISECONDS
    beat = b':\n\n'

    def event(self, event: CloudEvent) -> bytes:
        return b'id: %d\ndata: %b\n\n' % (event.id, orjson.dumps(event.document()))

    def last(self, place: int, reason: str) -> bytes:
        return b'id: %d\nevent: end\ndata: %b\n\n' % (place, orjson.dumps({'reason': reason}))


class EventLines:
    """A line of JSON for each event; an empty line is a heartbeat."""

    media_type = LINES
    opening = beat = b'\n'

    def event(self, event: CloudEvent) -> bytes:
        return orjson.dumps(event.document(), option=orjson.OPT_APPEND_NEWLINE)

    def last(self, place: int, reason: str) -> bytes:
        document = {'id': place, 'type': 'stream.end', 'reason': reason}
        return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


class EventFeed(WakeableFeed):
    """A response that continues as events happen. since: the number after which to begin. Raises Unavailable."""

    def __init__(self, events: Events, wanted: EventFilter, since: int):
        super().__init__()
        self.events = events
        self.reader = events.read(wanted, since, self.wake)

    def look(self) -> bool:
        return super().look() or self.events.is_over

    def close(self) -> None:
        self.reader.close()

    @abstractmethod
    def __iter__(self) -> Iterator[bytes]: ...


class EventStream(EventFeed):
    """An endless stream of events. If a client is so slow that events are dropped before it gets them, the stream ends
    with a message that says so, and the client may resume it."""

    seconds = BEAT_SECONDS

    def __init__(self, events: Events, wanted: EventFilter, since: int, form: Form):
        super().__init__(events, wanted, since)
        self.form = form

    def __iter__(self) -> Iterator[bytes]:
        yield self.form.opening
        while True:
            beat = self.form.beat
            is_over = self.look()
            while found := self.reader.take(BATCH):
                if self.reader.lost:
                    break
                beat = b''
                for event in found:
                    yield self.form.event(event)
            if self.reader.lost:
                place = found[0].id - 1 if found else self.reader.place
                yield self.form.last(place, f'{self.reader.lost} events were dropped before they were read.')
                return
            if is_over:
                yield self.form.last(self.reader.place, OVER)
                return
            if beat:
                yield beat
            yield b''


class AwaitedList(EventFeed):
    """A list of events in JSON, as soon as there is one, or after `wait` seconds."""

    def __init__(self, events: Events, wanted: EventFilter, since: int, wait: float):
        super().__init__(events, wanted, since)
        self.until = time.monotonic() + wait

    @property
    def seconds(self) -> float:  # type: ignore[override]
        return max(0.0, self.until - time.monotonic())

    def __iter__(self) -> Iterator[bytes]:
        while True:
            is_over = self.look()
            found = self.reader.take()
            if found or is_over or not self.seconds:
                yield orjson.dumps(listed(found, self.reader.place, self.reader.lost))
                return
            yield b''


def listed(events: list[CloudEvent], last: int, lost: int) -> dict[str, Any]:
    """Events as JSON. last: the value of `since` for the request that follows."""
    return {'events': [event.document() for event in events], 'last': last, 'lost': lost}
