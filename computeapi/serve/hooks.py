"""Hooks around the cloud that is served; without a test kit, they do nothing."""

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


class ServiceHooks:
    """Hooks that change nothing. They are called in this order."""

    def configure(self, conf: cfg.ConfigOpts) -> None:
        """Change defaults of the configuration."""

    def clock(self, clock: Callable[[], datetime]) -> Callable[[], datetime]:
        """The clock of the cloud, instead of the database's."""
        return clock

    def transaction(self, begin: Transaction) -> Transaction:
        """The function that begins transactions, instead of the usual one."""
        return begin

    def follows(self) -> bool:
        """Whether changes of the database are followed."""
        return False

    def beginning(self) -> AbstractContextManager[None]:
        """A context for the creation of the initial content."""
        return nullcontext()

    def driver(self, driver: Hypervisor) -> Hypervisor:
        """The hypervisor driver to use, instead of the configured one."""
        return driver

    def neighbour(self, name: str, backend: Backend) -> Backend:
        """The backend to use for another service, instead of the configured one. name: the group of its options."""
        return backend

    def work(self, run: Callable[[Task], None]) -> Callable[[Task], None]:
        """What workers do with a task, instead of running it."""
        return run

    def begin(self, service: Service, directory: Directory) -> None:
        """The cloud has its initial content and runs, and has answered no requests yet."""

    def app(self, app: WSGIApp) -> WSGIApp:
        """The app for clients, instead of the cloud's own."""
        return app

    @property
    def control_token(self) -> str | None:
        """The token of the control API, if there is one."""
        return None

    def end(self) -> None:
        """The cloud is about to stop."""
