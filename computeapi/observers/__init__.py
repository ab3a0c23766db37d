"""What operators see of a running service: whoever observes stands around what it does, and changes nothing of it."""

from collections.abc import Callable
from typing import Any, Protocol

from computeapi.backends.hypervisor import Hypervisor
from computeapi.db.tasks import Task
from computeapi.web.filters import WSGIApp

Work = Callable[[Task], None]
Ask = Callable[..., Any]
"""Asks a neighbour: (url, method, ...), as keystoneauth's Session.request; the answer, or an error."""
Names = Callable[[str], str]
"""What the service behind a URL is called."""


class Observer(Protocol):
    """Stands around what that a service does."""

    def end(self) -> None:
        """The process is about to end."""
        ...

    def requests(self, app: WSGIApp) -> WSGIApp:
        """Around the app that answers requests."""
        ...

    def tasks(self, work: Work) -> Work:
        """Around what a worker does with a task."""
        ...

    def hypervisor(self, driver: Hypervisor) -> Hypervisor:
        """Around what a hypervisor is told."""
        ...

    def neighbours(self, name_of: Names, ask: Ask) -> Ask:
        """Around how a neighbour is asked."""
        ...
