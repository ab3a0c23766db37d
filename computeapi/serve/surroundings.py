"""What stands around the cloud that is served: nothing, where no test asks for more."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import TypeVar

from oslo_config import cfg

from computeapi.backends.hypervisor import Hypervisor
from computeapi.db.engine import Transaction
from computeapi.db.tasks import Task
from computeapi.main import Service
from computeapi.serve.directory import Directory
from computeapi.web.filters import WSGIApp

Backend = TypeVar('Backend')


class Surroundings:
    """Leaves everything as it is; the methods are called in the order in which they stand here."""

    def configure(self, conf: cfg.ConfigOpts) -> None:
        """Let the cloud have other defaults."""

    def clock(self, clock: Callable[[], datetime]) -> Callable[[], datetime]:
        """The clock that the cloud is to live by, instead of the database's."""
        return clock

    def transaction(self, begin: Transaction) -> Transaction:
        """How the database is to be changed, instead of as it usually is."""
        return begin

    def follows(self) -> bool:
        """Whether somebody is told of each change of the database."""
        return False

    def beginning(self) -> AbstractContextManager[None]:
        """The block in which what the cloud begins with is made."""
        return nullcontext()

    def driver(self, driver: Hypervisor) -> Hypervisor:
        """The hypervisor that the cloud is to use, instead of the configured one."""
        return driver

    def neighbour(self, name: str, backend: Backend) -> Backend:
        """Another service that compute is to ask, instead of the configured one. name: of the group of its options."""
        return backend

    def work(self, run: Callable[[Task], None]) -> Callable[[Task], None]:
        """What workers are to do with a task, instead of just doing it."""
        return run

    def begin(self, service: Service, directory: Directory) -> None:
        """The cloud has all that it begins with, and works; nobody has asked it for anything yet."""

    def app(self, app: WSGIApp) -> WSGIApp:
        """What clients are to speak to, instead of the cloud's own app."""
        return app

    @property
    def control_token(self) -> str | None:
        """What the control API that is around the cloud takes, where there is one."""
        return None

    def end(self) -> None:
        """The cloud is about to end."""
