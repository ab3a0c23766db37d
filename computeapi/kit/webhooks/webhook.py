"""One webhook: what it has come to, and when it is its turn."""

from __future__ import annotations

import math
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from computeapi.kit.events import EventReader
from computeapi.kit.events.event import CloudEvent
from computeapi.kit.removable import Removable
from computeapi.kit.webhooks.destinations import HookTarget
from computeapi.kit.webhooks.sending import signed

MOST_ATTEMPTS = 8
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.5, 60.0
GONE = 410
"""How a receiver says that it wants no more."""


@dataclass
class HookMessage:
    """An event that is to be delivered. attempts: that failed.  due: when the next one may be, by time.monotonic."""

    event: CloudEvent
    body: bytes
    attempts: int = 0
    due: float = 0.0


@dataclass
class Tally:
    """What a webhook has come to. deliveries: events that arrived.  failures: attempts that failed.  given_up: events
    that never arrived.  lost: events that were no longer there when it was their turn."""

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
    """Events on their way to a URL, one after the other. secret: what the receiver checks signatures with."""

    id: int
    url: str
    target: HookTarget
    reader: EventReader
    secret: str
    key: bytes
    removal: Callable[[Webhook], None]
    tally: Tally = field(default_factory=Tally)
    message: HookMessage | None = None
    # Events of several clouds, or hooks, may come to one receiver, which tells repetitions by their ids.
    series: str = field(default_factory=lambda: secrets.token_hex(8))

    def _remove(self, removed: Any) -> None:
        self.removal(removed)

    def due(self) -> float:
        """When there is something to deliver, by time.monotonic; inf: when something has happened."""
        if self.message is None:
            found = self.reader.take(1)
            self.tally.lost = self.reader.lost
            if not found:
                return math.inf
            self.message = HookMessage(found[0], _body(found[0]))
        return self.message.due

    def headers(self) -> dict[str, str]:
        """Of the next attempt."""
        assert self.message is not None
        return signed(self.key, f'msg_{self.series}_{self.message.event.id}', int(time.time()), self.message.body)

    def arrived(self, status: int) -> None:
        """There was an answer."""
        self.tally.last_status, self.tally.last_error = status, None
        if 200 <= status < 300:
            self.tally.deliveries += 1
            self.message = None
        else:
            self._failed()

    def failed(self, error: Exception) -> None:
        """There was none."""
        self.tally.last_status, self.tally.last_error = None, f'{type(error).__name__}: {error}'
        self._failed()

    def _failed(self) -> None:
        assert self.message is not None
        self.tally.failures += 1
        self.message.attempts += 1
        if self.message.attempts >= MOST_ATTEMPTS:
            self.tally.given_up += 1
            self.message = None
            return
        wait = min(FIRST_WAIT_SECONDS * 2 ** (self.message.attempts - 1), LONGEST_WAIT_SECONDS)
        # Up to twice as long, so that many do not come again at once.
        self.message.due = time.monotonic() + wait * random.uniform(1, 2)

    def document(self) -> dict[str, Any]:
        return {'id': self.id, 'url': self.url, **self.reader.wanted.document(), **self.tally.document()}


def _body(event: CloudEvent) -> bytes:
    document = event.document()
    return orjson.dumps({'type': document['type'], 'timestamp': document['time'], 'data': document})
