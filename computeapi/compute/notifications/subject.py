"""What a notification is about."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from computeapi.compute.audit_periods import Period
from computeapi.context import Context
from computeapi.db.servers import Server


class States(NamedTuple):
    vm_state: str | None
    task_state: str | None


class Subject(NamedTuple):
    """A server in a step of its action, after an update, or in use.

    arguments: of the task.  host: where the step happens.  name: what the hypervisor calls the server.  new_flavor: of
    its migration.  before: its states before an update, None if they are the same.  old_name: if it has a new one.
    period: that of its use.
    """

    server: Server
    context: Context
    arguments: Mapping[str, Any]
    host: str
    name: str
    new_flavor: dict[str, Any] | None = None
    error: BaseException | None = None
    before: States | None = None
    old_name: str | None = None
    period: Period | None = None

    @property
    def states(self) -> States:
        return States(self.server.vm_state, self.server.task_state)

    def argument(self, name: str) -> str | None:
        found: str | None = self.arguments.get(name)
        return found


def interfaces(server: Server) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each address of the server, after the interface that has it."""
    for interface in server.network_info:
        if interface['port_id']:
            yield from ((interface, address) for address in interface['addresses'])


def seconds(moment: datetime | None) -> str | None:
    """2026-01-31T12:00:00Z"""
    return None if moment is None else f'{moment:%Y-%m-%dT%H:%M:%SZ}'
