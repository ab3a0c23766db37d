"""The tools of a kit, for tests and for the control API."""

import functools
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from computeapi.backends.hypervisor.behaviour import Behaviour
from computeapi.db.engine import Store
from computeapi.errors import Conflict
from computeapi.gate import Gate
from computeapi.kit.accounts import KnownAccounts
from computeapi.kit.clock import CloudClock
from computeapi.kit.dry_run import DryRun
from computeapi.kit.events import Events
from computeapi.kit.faults import Faults
from computeapi.kit.hints import Hints
from computeapi.kit.journal import Journal
from computeapi.kit.outages import CellOutages, HostOutages, NeighbourOutages
from computeapi.kit.plans import Plans
from computeapi.kit.seed import Seed
from computeapi.kit.snapshots import CloudSnapshot, CloudSnapshots
from computeapi.kit.uploads import Uploads
from computeapi.kit.webhooks import Webhooks
from computeapi.main import Service
from computeapi.serve.directory import Directory

if TYPE_CHECKING:
    from computeapi.kit.cloud_files.accounts import UserAccount
    from computeapi.kit.cloud_files.document import Document

INITIAL = 'initial'
"""The snapshot that is taken when a cloud is ready, and that a reset restores."""


class Tools:
    """The tools for one cloud, all of which is in this process."""

    service: Service
    snapshots: CloudSnapshots

    def __init__(
        self,
        cloud_file: 'Path | Document | None' = None,
        seed: Seed | None = None,
        webhook_allow: Iterable[str] = (),
    ) -> None:
        """cloud_file: a cloud file, or a document, with the initial content.
        webhook_allow: networks that webhooks may connect to, besides the loopback; Invalid."""
        self.seed = seed or Seed()
        # All requests pass through it.
        self.gate = Gate()
        self.uploads = Uploads()
        self.clock = CloudClock()
        self.journal = Journal()
        self.events = Events(self.clock)
        self.webhooks = Webhooks(self.events, webhook_allow)
        self.hints = Hints()
        self.cloud_file = cloud_file
        self.accounts = KnownAccounts()
        self.faults = Faults(self.clock, lambda: self.service.platform.tasks.hasten_all())
        self.plans = Plans(self.hasten, self._store)
        self.hosts, self.cells = HostOutages(self._service), CellOutages(self._service)
        self.neighbours = NeighbourOutages(self._service)

    def _service(self) -> Service:
        return self.service

    def _store(self) -> Store:
        return self.service.store

    def behaviour(self, task: int = 0) -> Behaviour:
        """How the hypervisor behaves for a task, according to the fault rules."""
        return Behaviour(self._store, functools.partial(self.faults.of_work, task), step='before ')

    @property
    def dry_run(self) -> DryRun:
        return DryRun(self.service)

    def begin(self, service: Service, directory: Directory) -> None:
        """Begin, when the cloud has its initial content."""
        self.service = service
        self.snapshots = CloudSnapshots(service.store, directory, self.seed, self.accounts)
        self.clock.on_change(service.state_replaced, service.platform.tasks.wake)
        if self.cloud_file is not None:
            self.load(self.cloud_file)
        # A branch may start from a snapshot with cells that were down.
        self.cells.state_replaced()
        self.snapshot(INITIAL)

    def hasten(self, server_ids: Collection[str]) -> None:
        """Let waiting work on these servers continue at once."""
        tasks = self.service.platform.tasks
        with tasks.adding() as connection:
            for server_id in server_ids:
                tasks.hasten(connection, server_id)

    @contextmanager
    def paused(self, hurry: Callable[[], None] = lambda: None) -> Iterator[None]:
        """In the block, no request is answered and no worker runs a task. hurry: ends requests in progress."""
        with self.gate.closed(hurry), self.service.worker.gate.closed():
            yield

    def snapshot(self, name: str) -> None:
        """Save the current state under a name; Conflict if it is taken."""
        with self.paused():
            self.snapshots.take(name)

    def now(self) -> CloudSnapshot:
        """A snapshot of the current state."""
        with self.paused():
            return self.snapshots.now()

    def restore(self, name: str) -> None:
        """Restore a snapshot, including work that was in progress; NotFound."""
        self._restore(name, lambda: self.events.restored(name))

    def _restore(self, name: str, record: Callable[[], None]) -> None:
        with self.paused(self.uploads.cut):
            self.snapshots.restore(name)
            record()
            self.faults.state_replaced()
            self.plans.state_replaced()
            self._state_replaced()

    def _state_replaced(self) -> None:
        """Notify everything that depends on the store that it was replaced."""
        self.service.state_replaced()
        self.hosts.state_replaced()
        self.cells.state_replaced()
        # What the work waited for may no longer apply, and plans must learn which servers wait now.
        self.service.platform.tasks.hasten_all()

    def forget(self, name: str) -> None:
        """Delete a snapshot; NotFound, Conflict for the initial one."""
        if name == INITIAL:
            raise Conflict('A reset requires the initial snapshot.')
        self.snapshots.delete(name)

    def load(self, given: 'Path | str | Document') -> 'list[UserAccount]':
        """Add what a file, its text or a document describes to the cloud, completely or not at all; Invalid, OSError.

        Returns the accounts of the users in it.
        """
        from computeapi.kit.cloud_files import loading
        from computeapi.kit.cloud_files.document import CloudFileSource

        source = CloudFileSource(given)
        with self.paused(), self.seed.during('load'):
            found = loading.load(self.service, source)
            self.seed.avoid_ids_of(source.document)
            self.accounts.add(found)
            self._state_replaced()
        return found

    def reset(self) -> None:
        """Return to the initial state, with no other snapshots, and remove rules, plans, webhooks and outages."""
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
