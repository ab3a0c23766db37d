"""What operators see of a running service. Observers wrap what the service does, and do not change it."""

from collections.abc import Callable
from typing import Any, Protocol

from computeapi.backends.hypervisor import Hypervisor
from computeapi.db.tasks import Task
from computeapi.web.filters import WSGIApp

Work = Callable[[Task], None]
Ask = Callable[..., Any]
"""Calls a neighbour: (url, method, ...), as keystoneauth's Session.request; returns the response, or raises an error.
"""
Names = Callable[[str], str]
"""Returns the name of the service behind a URL."""


class Observer(Protocol):
    """Wraps what a service does."""

    def end(self) -> None:
        """The process is about to exit."""
        ...

    def requests(self, app: WSGIApp) -> WSGIApp:
        """Wrap the app that answers requests."""
        ...

    def tasks(self, work: Work) -> Work:
        """Wrap what a worker does with a task."""
        ...

    def hypervisor(self, driver: Hypervisor) -> Hypervisor:
        """Wrap a hypervisor driver."""
        ...

    def neighbours(self, name_of: Names, ask: Ask) -> Ask:
        """Wrap calls to a neighbour."""
        ...
