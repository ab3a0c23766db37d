"""The common base of the built-in network service: the resources, and transactions on them."""

from collections.abc import Callable, Iterable
from datetime import datetime

from computeapi.backends.network import NetworkListener
from computeapi.backends.network.local.resources import Resources
from computeapi.clock import utcnow
from computeapi.db.engine import Store


class NetworkStore:
    """`listeners` are told which servers are affected by a change of a resource, except by changes that compute
    makes."""

    def __init__(
        self, store: Store, *, clock: Callable[[], datetime] = utcnow, listeners: Iterable[NetworkListener] = ()
    ):
        self.store, self.resources = store, Resources(store, clock, listeners)
        self.reading = self.resources.reading
        self.changing = self.resources.changing
