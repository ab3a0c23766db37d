"""The events of a cloud: each committed change of state, once, in the order of the commits.

All readers share one history, in which each has a position, so slow readers need no memory.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Any

from computeapi.db.change_capture import RowChange
from computeapi.errors import Gone, Unavailable
from computeapi.kit.events.event import RESET, RESTORED, CloudEvent, EventFilter

MAX_EVENTS = 10_000
"""How many events are kept, for readers that come later or again."""
MAX_READERS = 100
SHOWN = 20
"""How many events the text of a history shows."""


class Batch:
    """The changes of one transaction, when it commits."""

    def __init__(self, changes: Sequence[RowChange], time: datetime):
        self.changes, self.time = changes, time
        self.is_settled = False


class EventReader:
    """A reader of selected events, which begins after the number `place`.

    wake: called, in any thread, when there is more to read, or when nothing more will come.
    """

    def __init__(self, events: 'Events', wanted: EventFilter, place: int, wake: Callable[[], None]):
        self.events, self.wanted, self.place, self.wake = events, wanted, place, wake
        self.lost = 0

    def take(self, most: int = MAX_EVENTS) -> list[CloudEvent]:
        """The next events; `lost` counts the events, wanted or not, that had been dropped before they were read."""
        return self.events._take(self, most)

    def close(self) -> None:
        """Stop reading."""
        self.events._leave(self)

    def note(self, event: CloudEvent) -> bool:
        """Note a new event; returns whether this reader wants it."""
        if self.wanted(event):
            return True
        if self.place == event.id - 1:
            # A reader does not lose events that it does not want.
            self.place = event.id
        return False


class Events:
    """The events of a cloud, the oldest first; the last 10,000 are kept.

    Methods that select events take `type`, `project`, `resource`, `server` and new values, such as status='ACTIVE': see
    computeapi.kit.events.event.EventFilter.
    """

    def __init__(self, clock: Callable[[], datetime], most: int = MAX_EVENTS):
        self.clock, self.most = clock, most
        self.last = 0
        """The number of the newest event."""
        self.is_over = False
        self._changed = threading.Condition()
        self._kept: deque[CloudEvent] = deque(maxlen=most)
        self.readers: set[EventReader] = set()
        # In the order of the commits.
        self._expected: deque[Batch] = deque()
        self.since = 0
        """The number of the event of the last reset or restore, or 0."""

    # ------------------------------------------------------------------ the source of events

    def expect(self, changes: Sequence[RowChange]) -> Batch | None:
        """Register what a transaction changes, right before it commits; until then, no other transaction may write."""
        if not changes:
            return None
        batch = Batch(changes, self.clock())
        with self._changed:
            self._expected.append(batch)
        return batch

    def settle(self, batch: Batch, *, committed: bool) -> None:
        """Note that a transaction ended. Its events are published after those of all earlier transactions."""
        with self._changed:
            batch.is_settled = True
            if not committed:
                batch.changes = ()
            events = []
            while self._expected and self._expected[0].is_settled:
                settled = self._expected.popleft()
                events += [self._keep(CloudEvent.of, settled.time, change) for change in settled.changes]
            self._publish(events)

    def reset(self) -> None:
        """Note that the cloud returned to its initial state: earlier events are history."""
        with self._changed:
            self._begin(RESET)

    def restored(self, name: str) -> None:
        """Note that the snapshot with this name was restored."""
        with self._changed:
            self._begin(RESTORED, None, name)

    def _begin(self, *facts: Any) -> None:
        """Publish the event of a reset or restore, after which nothing has happened yet."""
        self._publish([self._keep(CloudEvent, self.clock(), *facts)])
        self.since = self.last

    def end(self) -> None:
        """Note that the cloud is about to stop, and that no more events follow."""
        with self._changed:
            self.is_over = True
            self._changed.notify_all()
            woken = list(self.readers)
        for reader in woken:
            reader.wake()

    def _keep(self, make: Callable[..., CloudEvent], *facts: Any) -> CloudEvent:
        self.last += 1
        event = make(self.last, *facts)
        self._kept.append(event)
        return event

    def _publish(self, events: Iterable[CloudEvent]) -> None:
        # Readers that are woken read later, so this may be called with the lock held.
        for reader in {reader for event in events for reader in self.readers if reader.note(event)}:
            reader.wake()
        self._changed.notify_all()

    # ------------------------------------------------------------------ readers

    def entries(self, *, since: int | None = None, **tests: Any) -> list[CloudEvent]:
        """The selected events since the last reset or restore, or with a higher number than `since`, that are still
        kept."""
        wanted = EventFilter(**tests)
        with self._changed:
            return self._found(wanted, since)

    def wait_for(self, *, timeout: float = 60, since: int | None = None, **tests: Any) -> CloudEvent:
        """The first selected event, which may have happened already. Raises TimeoutError after `timeout` seconds, or
        when the cloud stops.

            cloud.events.wait_for(server='web', status='ACTIVE')
            cloud.events.wait_for(type='volume.deleted', resource=volume_id, since=cloud.events.last)
        """
        wanted, until = EventFilter(**tests), time.monotonic() + timeout
        with self._changed:
            since = self.since if since is None else since
            while not (found := self._found(wanted, since)):
                left = until - time.monotonic()
                if self.is_over or left <= 0:
                    raise TimeoutError(f'No such event occurred among\n{self}')
                since = self.last
                self._changed.wait(min(left, threading.TIMEOUT_MAX))
            return found[0]

    def follow(self, *, since: int | None = None, timeout: float = math.inf, **tests: Any) -> Iterator[CloudEvent]:
        """The selected events as they happen, from now on or after the number `since`, until the cloud stops, or until
        there was none for `timeout` seconds. Raises Gone if they are read so slowly that some were dropped."""
        return self._follow(EventFilter(**tests), self.last if since is None else since, timeout)

    def _follow(self, wanted: EventFilter, since: int, timeout: float) -> Iterator[CloudEvent]:
        woken = threading.Event()
        with self.reading(wanted, since, woken.set) as reader:
            while True:
                woken.clear()
                found = reader.take()
                if reader.lost:
                    raise Gone(f'{reader.lost} events were dropped before they were read.')
                yield from found
                if not found and (self.is_over or not woken.wait(min(timeout, threading.TIMEOUT_MAX))):
                    return

    @contextmanager
    def reading(self, wanted: EventFilter, since: int, wake: Callable[[], None]) -> Iterator[EventReader]:
        """A reader, for the duration of the block."""
        reader = self.read(wanted, since, wake)
        try:
            yield reader
        finally:
            reader.close()

    def read(self, wanted: EventFilter, since: int, wake: Callable[[], None]) -> EventReader:
        """A reader, which must be closed; Unavailable if there are too many."""
        with self._changed:
            if len(self.readers) >= MAX_READERS:
                raise Unavailable(f'There are already {MAX_READERS} readers of events, which is the maximum.')
            reader = EventReader(self, wanted, self._place(since), wake)
            self.readers.add(reader)
            return reader

    def _leave(self, reader: EventReader) -> None:
        with self._changed:
            self.readers.discard(reader)

    def _take(self, reader: EventReader, most: int) -> list[CloudEvent]:
        found = []
        with self._changed:
            first = self.last - len(self._kept)
            if reader.place < first:
                reader.lost += first - max(reader.place, 0)
            for event in self._after(reader.place):
                reader.place = event.id
                if reader.wanted(event):
                    found.append(event)
                    if len(found) == most:
                        break
        return found

    def _found(self, wanted: EventFilter, since: int | None) -> list[CloudEvent]:
        place = self.since if since is None else self._place(since)
        return [event for event in self._after(place) if wanted(event)]

    def _place(self, since: int) -> int:
        """A number that was never given is from another cloud, so its reader has seen nothing of this one."""
        return since if since <= self.last else 0

    def _after(self, number: int) -> list[CloudEvent]:
        """The events with a higher number that are still kept."""
        count = max(0, self.last - number)
        return [*islice(reversed(self._kept), count)][::-1]

    def __len__(self) -> int:
        return len(self.entries())

    def __repr__(self) -> str:
        """The last events, one a line."""
        events = self.entries()
        left_out = [f'... {len(events) - SHOWN} more'] if len(events) > SHOWN else []
        return '\n'.join([f'{len(events)} events:', *left_out, *map(str, events[-SHOWN:])])
