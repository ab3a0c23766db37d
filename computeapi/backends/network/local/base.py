"""What the chapters of the local networks share: the resources, and transactions on them."""

from collections.abc import Callable, Iterable
from datetime import datetime

from computeapi.backends.network import NetworkListener
from computeapi.backends.network.local.resources import Resources
from computeapi.clock import utcnow
from computeapi.db.engine import Store


class NetworkStore:
    """`listeners` are told which servers a change of a resource touched; not of the changes compute makes by itself."""

    def __init__(
        self, store: Store, *, clock: Callable[[], datetime] = utcnow, listeners: Iterable[NetworkListener] = ()
    ):
        self.store, self.resources = store, Resources(store, clock, listeners)
        self.reading = self.resources.reading
        self.changing = self.resources.changing
