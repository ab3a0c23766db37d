"""Outages of a host, a cell, or another service of the cloud."""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, TypeVar, cast

from computeapi.compute.servers import evacuation
from computeapi.db import services
from computeapi.errors import NeighbourAway, NotFound
from computeapi.kit.faults.answers import refusal
from computeapi.kit.operations import addressed
from computeapi.main import Service
from computeapi.web.filters import Environ, WSGIApp

T = TypeVar('T')

KNOWN_AS = {
    'identity': 'Keystone',
    'image': 'Glance',
    'network': 'Neutron',
    'volume': 'Cinder',
    'share': 'Manila',
}


class Outage(AbstractContextManager[None]):
    """An outage that ends with a `with` block, if it is used in one."""

    def __init__(self, end: Callable[[], None]):
        self._end = end

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()


class Outages(ABC):
    """The outages of one kind, by `names`. service: returns the cloud."""

    kind: str

    def __init__(self, service: Callable[[], Service]):
        self.service = service
        self.names: frozenset[str] = frozenset()
        self._lock = threading.RLock()

    @abstractmethod
    def known(self) -> Iterable[str]:
        """The names of all that exist."""

    @abstractmethod
    def changed(self, name: str) -> None:
        """Apply to the cloud that this one went down or came back."""

    def down(self, name: str) -> Outage:
        """Take it down, until `up` or the end of a `with` block; NotFound.

        If it was down before, it stays down at the end of the block.
        """
        with self._lock:
            was_up = name not in self.names
            self._change(name, self.names | {name})
        return Outage(lambda: self.up(name) if was_up and name in self.names else None)

    def up(self, name: str) -> None:
        """Bring it back, and let work that waited for it continue; NotFound."""
        with self._lock:
            self._change(name, self.names - {name})
        self.service().platform.tasks.hasten_all()

    def _change(self, name: str, names: frozenset[str]) -> None:
        if name not in self.known():
            raise NotFound(f'There is no {self.kind} {name}; there are {", ".join(self.known())}.')
        self.names = names
        self.changed(name)

    def list(self) -> list[str]:
        """The names of those that are down."""
        return sorted(self.names)

    def clear(self) -> None:
        """Bring all back."""
        for name in self.list():
            self.up(name)

    def state_replaced(self) -> None:
        """Apply the outages again after the state of the cloud was replaced; those of names that no longer exist are
        dropped."""
        self.names &= frozenset(self.known())
        for name in self.list():
            self.changed(name)


class HostOutages(Outages):
    """Hosts that are down report no heartbeat, and work on them waits."""

    kind = 'host'

    def known(self) -> list[str]:
        return [host.name for host in self.service().hypervisor.hosts()]

    def changed(self, name: str) -> None:
        service = self.service()
        if name in self.names:
            service.store.change(services.is_gone, name)
            return
        service.hosts.report()
        evacuation.return_hosts(service.platform, [name])


class CellOutages(Outages):
    """Servers of a cell that is down are UNKNOWN, and requests for them get 503."""

    kind = 'cell'

    def known(self) -> list[str]:
        return [cell.name for cell in self.service().cloud.cells.list()]

    def changed(self, name: str) -> None:
        self.service().cloud.cells.mark(name, down=name in self.names)

    def state_replaced(self) -> None:
        super().state_replaced()
        for cell in self.service().cloud.cells.list():
            if cell.down != (cell.name in self.names):
                self.changed(cell.name)


class NeighbourOutages(Outages):
    """Services other than compute that are down: compute and clients alike get errors from them."""

    kind = 'neighbour'

    def known(self) -> list[str]:
        return list(KNOWN_AS)

    def changed(self, name: str) -> None:
        """Nothing to do: each call checks `names`."""

    def check(self, name: str) -> None:
        """Raise NeighbourAway if the service is down."""
        if name in self.names:
            raise NeighbourAway(name=KNOWN_AS[name])

    def wrap_backend(self, name: str, backend: T) -> T:
        """Wrap a backend, which gets no calls while its service is down."""
        return cast(T, Reachable(backend, functools.partial(self.check, name)))

    def wrap_app(self, app: WSGIApp) -> WSGIApp:
        """Wrap the app of all services: those that are down answer 503."""

        def answer(environ: Environ, start_response: Any) -> Iterable[bytes]:
            if self.names and addressed(environ['REQUEST_METHOD'], environ['PATH_INFO']).service in self.names:
                return refusal(environ, 503, 'Service Unavailable')(environ, start_response)
            return app(environ, start_response)

        return answer


class Reachable:
    """Wraps a backend and runs a check before each call."""

    def __init__(self, backend: Any, check: Callable[[], None]):
        self._backend, self._check = backend, check

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._backend, name)
        return functools.partial(self._call, found) if callable(found) else found

    def _call(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        self._check()
        return call(*arguments, **options)
