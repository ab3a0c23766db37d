"""Tells browsers which servers change, with one query of the database for all listeners in this process.

It runs when this process has changed something, and every second, because other processes change servers, too. Without
listeners, there are no queries.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from datetime import timedelta
from typing import NamedTuple

import orjson

from computeapi.compute.periodic import Periodic
from computeapi.db import server_changes
from computeapi.db.engine import Store
from computeapi.db.server_changes import ChangedServer
from computeapi.errors import Unavailable
from computeapi.serve.http.feed import WakeableFeed
from computeapi.ui.permissions import ChangeScope

POLL_SECONDS = 1.0
PAUSE_SECONDS = 0.1
"""The minimum interval between two queries."""
LATE = timedelta(seconds=10)
"""How much later than its timestamp a change may be committed; also allows for different clocks of processes."""
MAX_CHANGES = 200
"""If there are more changes, listeners are only informed of that, and look themselves."""
MAX_LISTENERS, MAX_OF_ONE = 100, 8
BEAT_SECONDS = 15.0
RETRY_MILLISECONDS = 5000


class UnreadChanges(NamedTuple):
    """What a listener has not been told yet. servers: their IDs.  more: whether there are others."""

    servers: Collection[str]
    more: bool


class ChangeListener:
    """A listener for the servers of a project, or of all (None)."""

    def __init__(self, owner: str, project_id: str | None, wake: Callable[[], None]):
        self.owner, self.project_id, self.wake = owner, project_id, wake
        self.lock = threading.Lock()
        self.ids: set[str] = set()
        self.more = False

    def notify(self, changed: Collection[ChangedServer], *, more: bool) -> None:
        own = {each.uuid for each in changed if self.project_id in (None, each.project_id)}
        if not own and not more:
            return
        with self.lock:
            self.ids |= own
            self.more = self.more or more or len(self.ids) > MAX_CHANGES
        self.wake()

    def take(self) -> UnreadChanges:
        with self.lock:
            unread = UnreadChanges(() if self.more else sorted(self.ids), self.more)
            self.ids, self.more = set(), False
        return unread


class ChangeNotifier:
    """The listeners in this process, and the last known state of servers."""

    def __init__(self, store: Store):
        self.store = store
        self.listeners: list[ChangeListener] = []
        self._lock = threading.Lock()
        self._poller: Periodic | None = None
        self._known: dict[str, ChangedServer] = {}
        self._seen_at = store.clock()

    def subscribe(self, listener: ChangeListener) -> None:
        """Add a listener; Unavailable if there are too many, in total or of one owner."""
        with self._lock:
            of_owner = sum(each.owner == listener.owner for each in self.listeners)
            if len(self.listeners) >= MAX_LISTENERS or of_owner >= MAX_OF_ONE:
                raise Unavailable('There are already too many listeners.')
            if not self.listeners:
                # A new listener reads the current state itself.
                self._known = self._recent_changes()[0]
                self._poller = Periodic('change-stream', self._poll, POLL_SECONDS, threading.Event())
                self.store.change_listeners.append(self._poller.alarm.set)
                self._poller.start()
            self.listeners.append(listener)

    def unsubscribe(self, listener: ChangeListener) -> None:
        with self._lock:
            if listener not in self.listeners:
                return
            self.listeners.remove(listener)
            if not self.listeners and self._poller is not None:
                self.store.change_listeners.remove(self._poller.alarm.set)
                self._poller.stop(timeout=0)
                self._poller = None

    def wake(self) -> None:
        """Wake all listeners, which may have to stop."""
        for each in list(self.listeners):
            each.wake()

    def _poll(self) -> None:
        time.sleep(PAUSE_SECONDS)
        found, more = self._recent_changes()
        changed = [each for each in found.values() if self._known.get(each.uuid) != each]
        self._known = found
        if changed:
            for each in list(self.listeners):
                each.notify(changed, more=more)

    def _recent_changes(self) -> tuple[dict[str, ChangedServer], bool]:
        """Recent changes by ID, and whether there are more."""
        # The clock of a cloud in tests may be set back.
        now, before = self.store.clock(), self._seen_at
        self._seen_at = now
        found = self.store.query(server_changes.since, min(now, before) - LATE, MAX_CHANGES)
        return {each.uuid: each for each in found}, len(found) > MAX_CHANGES


class ChangeStream(WakeableFeed):
    """Server-sent events without names: `{"servers": [ids], "more": false}`, until `still()` returns false.

    seconds_left: how long it may last.
    """

    def __init__(
        self,
        notifier: ChangeNotifier,
        owner: str,
        scope: ChangeScope,
        still: Callable[[], bool],
        seconds_left: Callable[[], float],
    ):
        super().__init__()
        self.notifier, self.still, self.seconds_left = notifier, still, seconds_left
        self.listener = ChangeListener(owner, scope.project_id, self.wake)
        notifier.subscribe(self.listener)

    @property
    def seconds(self) -> float:  # type: ignore[override]
        return max(0.0, min(BEAT_SECONDS, self.seconds_left()))

    def close(self) -> None:
        self.notifier.unsubscribe(self.listener)

    def __iter__(self) -> Iterator[bytes]:
        yield b'retry: %d\n\n' % RETRY_MILLISECONDS
        while True:
            is_over = self.look() or not self.still()
            if is_over:
                # The user may not be allowed to see the last changes any more.
                yield b'event: end\ndata: {}\n\n'
                return
            unread = self.listener.take()
            yield b'data: %b\n\n' % orjson.dumps(unread._asdict()) if unread.servers or unread.more else b':\n\n'
            yield b''
