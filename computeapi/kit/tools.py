"""What can be done to a cloud besides asking it: all that its kit offers, to tests and to the control API."""

import functools
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from computeapi.backends.hypervisor.behaviour import Behaviour
from computeapi.db.engine import Store
from computeapi.errors import Conflict
from computeapi.gate import Gate
from computeapi.kit.clock import CloudClock
from computeapi.kit.events import Events
from computeapi.kit.faults import Faults
from computeapi.kit.hints import Hints
from computeapi.kit.journal import Journal
from computeapi.kit.outages import CellOutages, HostOutages, NeighbourOutages
from computeapi.kit.plans import Plans
from computeapi.kit.rehearsal import DryRun
from computeapi.kit.seed import Seed
from computeapi.kit.snapshots import CloudSnapshot, CloudSnapshots
from computeapi.kit.webhooks import Webhooks
from computeapi.main import Service
from computeapi.serve.directory import Directory

if TYPE_CHECKING:
    from computeapi.kit.scenes.accounts import UserAccount
    from computeapi.kit.scenes.document import Document

INITIAL = 'initial'
"""The snapshot that is taken when a cloud is ready, and that a reset goes back to."""


class Tools:
    """Those for one cloud, all of which is in this process."""

    service: Service
    snapshots: CloudSnapshots

    def __init__(
        self,
        scene: 'Path | Document | None' = None,
        seed: Seed | None = None,
        webhook_allow: Iterable[str] = (),
    ) -> None:
        """scene: a file, or a document, with what the cloud has to begin with.
        webhook_allow: networks that webhooks may lead to, besides the loopback; Invalid."""
        self.seed = seed or Seed()
        # Requests pass through it.
        self.gate = Gate()
        self.clock = CloudClock()
        self.journal = Journal()
        self.events = Events(self.clock)
        self.webhooks = Webhooks(self.events, webhook_allow)
        self.hints = Hints()
        self.scene = scene
        self.accounts: list[UserAccount] = []
        self.faults = Faults(self.clock, lambda: self.service.platform.tasks.hasten_all())
        self.plans = Plans(self.hasten, self._store)
        self.hosts, self.cells = HostOutages(self._service), CellOutages(self._service)
        self.neighbours = NeighbourOutages(self._service)

    def _service(self) -> Service:
        return self.service

    def _store(self) -> Store:
        return self.service.store

    def behaviour(self, task: int = 0) -> Behaviour:
        """How the hypervisor behaves at a task, as the rules say."""
        return Behaviour(self._store, functools.partial(self.faults.of_work, task), step='before ')

    @property
    def dry_run(self) -> DryRun:
        return DryRun(self.service)

    def begin(self, service: Service, directory: Directory) -> None:
        """The cloud has all that it begins with."""
        self.service, self.snapshots = service, CloudSnapshots(service.store, directory, self.seed)
        self.clock.tell(service.found_otherwise, service.platform.tasks.wake)
        if self.scene is not None:
            self.accounts = self.load(self.scene)
        # A branch may begin with what was out of reach.
        self.cells.found_otherwise()
        self.snapshot(INITIAL)

    def hasten(self, server_ids: Collection[str]) -> None:
        """Let work on these servers that waits go on at once."""
        tasks = self.service.platform.tasks
        with self.service.store.write() as connection:
            for server_id in server_ids:
                tasks.hasten(connection, server_id)
        tasks.wake()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """No request is answered in the block, and no worker is at a task."""
        with self.gate.closed(), self.service.worker.gate.closed():
            yield

    def snapshot(self, name: str) -> None:
        """Keep what there is now under a name; Conflict if it is taken."""
        with self.standing_still():
            self.snapshots.take(name)

    def now(self) -> CloudSnapshot:
        """What there is now."""
        with self.standing_still():
            return self.snapshots.now()

    def restore(self, name: str) -> None:
        """Let the cloud be as it was when the snapshot was taken, work that was under way included; NotFound."""
        self._restore(name, lambda: self.events.restored(name))

    def _restore(self, name: str, tell: Callable[[], None]) -> None:
        with self.standing_still():
            self.snapshots.restore(name)
            tell()
            self.faults.found_otherwise()
            self.plans.found_otherwise()
            self._found_otherwise()

    def _found_otherwise(self) -> None:
        """The store is not what it was."""
        self.service.found_otherwise()
        self.hosts.found_otherwise()
        self.cells.found_otherwise()
        # What work waited for then may be no more, and plans have to know what waits now.
        self.service.platform.tasks.hasten_all()

    def forget(self, name: str) -> None:
        """Delete a snapshot; NotFound, Conflict for that of the beginning."""
        if name == INITIAL:
            raise Conflict('A reset requires the initial snapshot.')
        self.snapshots.delete(name)

    def load(self, given: 'Path | str | Document') -> 'list[UserAccount]':
        """Add what a file, its text or a document describes to the cloud, whole or not at all; Invalid, OSError.

        Who it says can log in, and how.
        """
        from computeapi.kit.scenes import loading
        from computeapi.kit.scenes.document import SceneSource

        source = SceneSource(given)
        with self.standing_still(), self.seed.during('load'):
            found = loading.load(self.service, source)
            self.seed.keep_apart(source.document)
            self._found_otherwise()
        return found

    def reset(self) -> None:
        """Let the cloud be as it was when it began, with no other snapshots than that of its beginning, and as ever."""
        self.clock.reset()
        self.faults.clear()
        self.plans.clear()
        self.webhooks.clear()
        for outages in (self.hosts, self.cells, self.neighbours):
            outages.clear()
        self._restore(INITIAL, self.events.reset)
        for name in self.snapshots.list():
            if name != INITIAL:
                self.snapshots.delete(name)
        self.journal.clear()
        self.hints.clear()
