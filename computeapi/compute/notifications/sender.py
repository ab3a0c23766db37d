"""Sends the notifications that were written, in their order."""

import logging
from collections.abc import Callable
from datetime import timedelta

from computeapi.db import notifications
from computeapi.db.engine import Store
from computeapi.db.notifications import WaitingNotification
from computeapi.errors import NeighbourAway

LOG = logging.getLogger(__name__)
BATCH = 50
LEASE = timedelta(seconds=60)
"""How long the other processes wait for one that is sending."""


class Sender:
    """Sends notifications from any process; one sends at a time.

    send: hands one to the broker, or raises NeighbourAway.  most_waiting: how many wait while the broker is away,
    about; the oldest are dropped first.
    """

    def __init__(self, store: Store, send: Callable[[WaitingNotification], None], most_waiting: int):
        self.store, self.send, self.most_waiting = store, send, most_waiting
        self.away, self.dropped = False, 0

    def catch_up(self) -> None:
        """Send all that wait, unless another process does."""
        while batch := self._claim():
            sent, refusal = self._send(batch)
            self.store.change(notifications.delete, sent)
            if refusal is not None:
                return self._wait(batch, refusal)
            if self.away:
                LOG.warning('The broker is available again; %d notifications were dropped meanwhile', self.dropped)
            self.away, self.dropped = False, 0

    def _send(self, batch: list[WaitingNotification]) -> tuple[list[WaitingNotification], NeighbourAway | None]:
        """Those that the broker has accepted, and why it did not accept the next one."""
        for number, notification in enumerate(batch):
            try:
                self.send(notification)
            except NeighbourAway as error:
                return batch[:number], error
        return batch, None

    def _claim(self) -> list[WaitingNotification]:
        if not self.store.query(notifications.are_any):
            return []
        now = self.store.clock()
        return self.store.change(notifications.claim, now, now + LEASE, BATCH)

    def _wait(self, batch: list[WaitingNotification], refusal: NeighbourAway) -> None:
        self.store.change(notifications.release, batch[0])
        self.dropped += self.store.change(notifications.drop, self.most_waiting)
        if not self.away:
            LOG.warning('%d notifications wait for the broker: %s', self.store.query(notifications.waiting), refusal)
        self.away = True
