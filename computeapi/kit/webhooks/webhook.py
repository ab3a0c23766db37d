"""A webhook, the results of its deliveries, and the time of the next one."""

from __future__ import annotations

import math
import random
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from computeapi.kit.events import EventReader
from computeapi.kit.events.event import CloudEvent
from computeapi.kit.removable import Removable
from computeapi.kit.webhooks.destinations import HookTarget
from computeapi.kit.webhooks.sending import Post, signed

MAX_ATTEMPTS = 8
FIRST_WAIT_SECONDS, MAX_WAIT_SECONDS = 0.5, 60.0
GONE = 410
"""With this status, a receiver unsubscribes."""


@dataclass
class HookMessage:
    """An event to deliver. attempts: how many failed.  due: the time of the next attempt, by time.monotonic."""

    event: CloudEvent
    body: bytes
    attempts: int = 0
    due: float = 0.0


@dataclass
class Tally:
    """The results of a webhook. deliveries: events that arrived.  failures: attempts that failed.  given_up: events
    that never arrived.  lost: events that were dropped before they could be sent."""

    deliveries: int = 0
    failures: int = 0
    given_up: int = 0
    lost: int = 0
    last_status: int | None = None
    last_error: str | None = None

    def document(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(eq=False, repr=False)
class Webhook(Removable):
    """Sends events to a URL, one after the other. secret: with it the receiver verifies signatures.  woken: set when
    there may be something to do.  post: the delivery in progress."""

    id: int
    url: str
    target: HookTarget
    reader: EventReader
    secret: str
    key: bytes
    _remove: Callable[[Webhook], None]
    woken: threading.Event
    post: Post | None = None
    tally: Tally = field(default_factory=Tally)
    message: HookMessage | None = None
    # Message IDs are unique, because one receiver may get events of several clouds or hooks, and uses them to detect
    # repetitions.
    series: str = field(default_factory=lambda: secrets.token_hex(8))

    def due(self) -> float:
        """When to deliver next, by time.monotonic; inf: when the next event happens."""
        if self.message is None:
            found = self.reader.take(1)
            self.tally.lost = self.reader.lost
            if not found:
                return math.inf
            self.message = HookMessage(found[0], _body(found[0]))
        return self.message.due

    def headers(self) -> dict[str, str]:
        """The headers of the next attempt."""
        assert self.message is not None
        return signed(self.key, f'msg_{self.series}_{self.message.event.id}', int(time.time()), self.message.body)

    def arrived(self, status: int) -> None:
        """Note a response."""
        self.tally.last_status, self.tally.last_error = status, None
        if 200 <= status < 300:
            self.tally.deliveries += 1
            self.message = None
        else:
            self._failed()

    def failed(self, error: Exception) -> None:
        """Note an attempt without a response."""
        self.tally.last_status, self.tally.last_error = None, f'{type(error).__name__}: {error}'
        self._failed()

    def _failed(self) -> None:
        assert self.message is not None
        self.tally.failures += 1
        self.message.attempts += 1
        if self.message.attempts >= MAX_ATTEMPTS:
            self.tally.given_up += 1
            self.message = None
            return
        wait = min(FIRST_WAIT_SECONDS * 2 ** (self.message.attempts - 1), MAX_WAIT_SECONDS)
        # Up to twice as long, so that many webhooks do not retry at the same moment.
        self.message.due = time.monotonic() + wait * random.uniform(1, 2)

    def document(self) -> dict[str, Any]:
        return {'id': self.id, 'url': self.url, **self.reader.wanted.document(), **self.tally.document()}


def _body(event: CloudEvent) -> bytes:
    document = event.document()
    return orjson.dumps({'type': document['type'], 'timestamp': document['time'], 'data': document})
