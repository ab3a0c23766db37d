"""An event, and the selection of events."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from computeapi.db.change_capture import CAPTURED, RowChange
from computeapi.errors import Invalid
from computeapi.states import status_of

CLOUD, SERVER = 'cloud', 'server'
RESET, RESTORED = f'{CLOUD}.reset', f'{CLOUD}.restored'
CREATED, CHANGED, DELETED = 'created', 'changed', 'deleted'
NOUNS = (*(captured.noun for captured in CAPTURED), CLOUD)
TYPES = (*(f'{captured.noun}.{what}' for captured in CAPTURED for what in (CREATED, CHANGED, DELETED)), RESET, RESTORED)
KNOWN = f'{", ".join(NOUNS[:-1])}, each with .{CREATED}, .{CHANGED} and .{DELETED}, {RESET} and {RESTORED}'
FACTS = frozenset({'status', *(name for captured in CAPTURED for name in captured.names)})
"""The names that may be in `before` and `after`."""

State = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """A change of one resource in one transaction.

    id: a number in the order of the commits.  time: of the cloud's clock, naive UTC.  type: one of TYPES.
    resource_id, name, project_id: of the resource.  server_id: of the server that it is, or belongs to.
    before, after: the values that differ; all values of a resource that is created (before is None) or deleted (after
    is None). Those of servers include the `status` that follows from their vm_state and task_state.
    """

    id: int
    time: datetime
    type: str
    resource_id: str | None = None
    name: str | None = None
    project_id: str | None = None
    server_id: str | None = None
    before: State | None = None
    after: State | None = None

    @classmethod
    def of(cls, number: int, time: datetime, change: RowChange) -> Self:
        before, after = _shown(change.noun, change.before), _shown(change.noun, change.after)
        what = CREATED if before is None else DELETED if after is None else CHANGED
        if before is not None and after is not None:
            different = [name for name in after if before[name] != after[name]]
            before, after = ({name: state[name] for name in different} for state in (before, after))
        facts = (change.id, change.name, change.project_id, change.server_id)
        return cls(number, time, f'{change.noun}.{what}', *facts, before, after)

    @property
    def noun(self) -> str:
        """The kind of resource: server, volume, ..."""
        return self.type.partition('.')[0]

    def document(self) -> dict[str, Any]:
        """The event as JSON."""
        return {name: getattr(self, name) for name in self.__slots__} | {'time': f'{self.time.isoformat()}Z'}

    def __str__(self) -> str:
        """One line of text: '12 server.changed web: task_state=spawning'"""
        facts = ', '.join(f'{name}={value}' for name, value in (self.after or {}).items())
        return f'{self.id} {self.type} {self.name or self.resource_id or ""}: {facts}'


def _shown(noun: str, state: State | None) -> State | None:
    if noun != SERVER or state is None:
        return state
    return {'status': status_of(state['vm_state'], state['task_state']), **state}


class EventFilter:
    """A selection of events: those that pass all given tests. Raises Invalid for a test that no event can pass.

    type: `server.changed`, or `server` for all types of servers; several separated by commas, or a list.
    project: the ID of the project.  resource: an ID or a name.  server: the ID or the name of a server; an ID also
    selects what belongs to the server.  facts: new values, such as status='ACTIVE' or host='compute2'.

    Resets and restores are selected, too, unless other types or new values are given.
    """

    def __init__(
        self,
        type: str | list[str] | None = None,
        project: str | None = None,
        resource: str | None = None,
        server: str | None = None,
        **kwargs: Any,
    ):
        self.types = frozenset(type.split(',') if isinstance(type, str) else type or ())
        self.project, self.resource, self.server, self.facts = project, resource, server, kwargs
        if unknown := sorted(self.types.difference(NOUNS, TYPES)):
            raise Invalid(f'There is no event type {unknown[0]}; there are {KNOWN}.')
        if unknown := sorted(kwargs.keys() - FACTS):
            raise Invalid(f'Events have no property {unknown[0]}; there are {", ".join(sorted(FACTS))}.')

    def __call__(self, event: CloudEvent) -> bool:
        if self.types and not self.types & {event.type, event.noun}:
            return False
        if event.noun == CLOUD:
            return not self.facts
        if self.project is not None and event.project_id != self.project:
            return False
        if self.resource is not None and self.resource not in (event.resource_id, event.name):
            return False
        if self.server is not None and not self._is_of_server(event):
            return False
        return self.facts.items() <= (event.after or {}).items()

    def _is_of_server(self, event: CloudEvent) -> bool:
        return event.server_id == self.server or (event.noun == SERVER and event.name == self.server)

    def document(self) -> dict[str, Any]:
        """The tests as JSON; None for those that are not given."""
        tests = {'project': self.project, 'resource': self.resource, 'server': self.server}
        return {'types': sorted(self.types), **tests}
