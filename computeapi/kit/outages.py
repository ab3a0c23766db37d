"""What is out of reach: a host, a cell, another service of the cloud."""

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
    """What is out of reach until the end of a `with`, if there is one."""

    def __init__(self, end: Callable[[], None]):
        self._end = end

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()


class Outages(ABC):
    """What of one kind is out of reach, by `names`. service: gives the cloud."""

    kind: str

    def __init__(self, service: Callable[[], Service]):
        self.service = service
        self.names: frozenset[str] = frozenset()
        self._lock = threading.RLock()

    @abstractmethod
    def known(self) -> Iterable[str]:
        """The names of all that there are."""

    @abstractmethod
    def changed(self, name: str) -> None:
        """Let the cloud know that this one is out of reach, or is not any more."""

    def down(self, name: str) -> Outage:
        """Let it be out of reach, until `up` or the end of a `with`; NotFound.

        What is so already does not come back at the end.
        """
        with self._lock:
            was_up = name not in self.names
            self._change(name, self.names | {name})
        return Outage(lambda: self.up(name) if was_up and name in self.names else None)

    def up(self, name: str) -> None:
        """Let it be as ever, and what waited for it go on; NotFound."""
        with self._lock:
            self._change(name, self.names - {name})
        self.service().platform.tasks.hasten_all()

    def _change(self, name: str, names: frozenset[str]) -> None:
        if name not in self.known():
            raise NotFound(f'There is no {self.kind} {name}; there are {", ".join(self.known())}.')
        self.names = names
        self.changed(name)

    def list(self) -> list[str]:
        """What is out of reach."""
        return sorted(self.names)

    def clear(self) -> None:
        """Let all be as ever."""
        for name in self.list():
            self.up(name)

    def found_otherwise(self) -> None:
        """The cloud is what it was at another time, but what is out of reach remains so, if it is there."""
        self.names &= frozenset(self.known())
        for name in self.list():
            self.changed(name)


class HostOutages(Outages):
    """A host that is down gives no sign of life, and what it is told waits."""

    kind = 'host'

    def known(self) -> list[str]:
        return [host.name for host in self.service().hypervisor.hosts()]

    def changed(self, name: str) -> None:
        service = self.service()
        if name in self.names:
            service.store.tell(services.is_gone, name)
            return
        service.hosts.report()
        evacuation.return_hosts(service.platform, [name])


class CellOutages(Outages):
    """The servers of a cell that is down are UNKNOWN, and what is asked of them is answered 503."""

    kind = 'cell'

    def known(self) -> list[str]:
        return [cell.name for cell in self.service().cloud.cells.list()]

    def changed(self, name: str) -> None:
        self.service().cloud.cells.mark(name, down=name in self.names)

    def found_otherwise(self) -> None:
        super().found_otherwise()
        for cell in self.service().cloud.cells.list():
            if cell.down != (cell.name in self.names):
                self.changed(cell.name)


class NeighbourOutages(Outages):
    """Of the services beside compute: whoever asks one that is away is told so, compute like its clients."""

    kind = 'neighbour'

    def known(self) -> list[str]:
        return list(KNOWN_AS)

    def changed(self, name: str) -> None:
        """Who asks will see."""

    def check(self, name: str) -> None:
        """NeighbourAway."""
        if name in self.names:
            raise NeighbourAway(name=KNOWN_AS[name])

    def between(self, name: str, backend: T) -> T:
        """The backend, which is asked for nothing while its service is away."""
        return cast(T, Reachable(backend, functools.partial(self.check, name)))

    def before(self, app: WSGIApp) -> WSGIApp:
        """The app of all services, where those that are away answer 503."""

        def answer(environ: Environ, start_response: Any) -> Iterable[bytes]:
            if self.names and addressed(environ['REQUEST_METHOD'], environ['PATH_INFO']).service in self.names:
                return refusal(environ, 503, 'Service Unavailable')(environ, start_response)
            return app(environ, start_response)

        return answer


class Reachable:
    """A backend whose calls are looked at before; made before it is used, when it can be reached."""

    def __init__(self, backend: Any, check: Callable[[], None]):
        self._backend, self._check = backend, check

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._backend, name)
        return functools.partial(self._call, found) if callable(found) else found

    def _call(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        self._check()
        return call(*arguments, **options)
