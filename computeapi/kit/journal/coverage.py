"""Which operations of a service were used, and at which of their versions."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from computeapi.errors import NotFound
from computeapi.kit.journal.entry import Entry
from computeapi.kit.operations import SERVICES, named_operations
from computeapi.versions import APIVersionRequest
from computeapi.web.contract import Operation


class Use(NamedTuple):
    """Requests that are equal in these respects are counted together."""

    service: str | None
    operation: str | None
    version: str | None
    status: int | None

    @classmethod
    def of(cls, entry: Entry) -> 'Use':
        return cls(entry.service, entry.operation, entry.microversion_used, entry.status)


class CoveredOperation(NamedTuple):
    """An operation and its uses.

    steps: how many versions changed it, including its first.  steps_used: in how many of the ranges between these
    versions it was used.
    """

    operation: str
    requests: int
    microversions: list[str]
    statuses: list[int]
    steps: int
    steps_used: int


class Coverage:
    """The operations of a service, by resource, and how they were used."""

    def __init__(self, service: str, uses: Mapping[Use, int]):
        if service not in SERVICES:
            raise NotFound(f'There is no service {service}; there are {", ".join(SERVICES)}.')
        self.service = service
        own: dict[str | None, dict[Use, int]] = {}
        for use, count in uses.items():
            if use.service == service:
                own.setdefault(use.operation, {})[use] = count
        self.resources: dict[str, list[CoveredOperation]] = {}
        for name, operations in named_operations(service).items():
            resource = name.split()[1].split('/')[1] or '/'
            covered = _covered(name, operations, own.get(name, {}))
            self.resources.setdefault(resource, []).append(covered)

    @property
    def operations(self) -> list[CoveredOperation]:
        return [each for listed in self.resources.values() for each in listed]

    def document(self) -> dict[str, Any]:
        """The coverage as JSON; unused operations are those with no requests."""
        return {
            'service': self.service,
            **_summary(self.operations),
            'resources': [
                {'resource': name, **_summary(listed), 'covered': [each._asdict() for each in listed]}
                for name, listed in self.resources.items()
            ],
        }

    def __str__(self) -> str:
        """Text with a line for each resource and each operation that was used."""
        summary = _summary(self.operations)
        lines = [
            f'{self.service}: {summary["used"]} of {summary["of"]} operations were used,'
            f' and {summary["steps_used"]} of {summary["steps"]} of their versions'
        ]
        for name, listed in self.resources.items():
            summary = _summary(listed)
            lines.append(f'{name}: {summary["used"]} of {summary["of"]}')
            for each in listed:
                if each.requests:
                    at = f' at {", ".join(each.microversions)}' if each.microversions else ''
                    answers = ', '.join(map(str, each.statuses))
                    lines.append(f'    {each.operation}: {each.requests} requests{at}, answered {answers}')
        return '\n'.join(lines)


def _covered(name: str, operations: Iterable[Operation], uses: Mapping[Use, int]) -> CoveredOperation:
    steps = sorted({step for each in operations for step in each.changes})
    named = {APIVersionRequest.parse(use.version) for use in uses if use.version}
    versions = named or ({steps[0]} if uses else set())
    used = {max(step for step in steps if step <= version) for version in versions if version >= steps[0]}
    return CoveredOperation(
        operation=name,
        requests=sum(uses.values()),
        microversions=[str(each) for each in sorted(named)],
        statuses=sorted({use.status for use in uses if use.status}),
        steps=len(steps),
        steps_used=len(used),
    )


def _summary(operations: Iterable[CoveredOperation]) -> dict[str, int]:
    listed = list(operations)
    return {
        'used': sum(each.requests > 0 for each in listed),
        'of': len(listed),
        'steps_used': sum(each.steps_used for each in listed),
        'steps': sum(each.steps for each in listed),
    }
