"""Which versions have an operation, and what they accept, according to the table of operations."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from computeapi.kit.hints.names import Path, knows
from computeapi.kit.operations import SERVICES
from computeapi.versions import ABSENT, LEGACY, MAX, MIN, APIVersionRequest, Versioned, resolve
from computeapi.web.contract import Operation
from computeapi.web.routing import Endpoint


class KnownNames(NamedTuple):
    """The schemas of a request at one version; ABSENT: not validated."""

    body: Any
    query: Any

    def knows_parameter(self, name: str) -> bool:
        schema = self.query or {}
        patterns = schema.get('patternProperties', ())
        return name in schema.get('properties', ()) or any(re.search(pattern, name) for pattern in patterns)

    @property
    def ignores_parameters(self) -> bool:
        """Whether unknown parameters are accepted."""
        return not self.query or self.query.get('additionalProperties') is not False

    def knows_field(self, path: Path) -> bool:
        return bool(self.body) and knows(self.body, path)


class Lifetime:
    """An operation in all versions."""

    def __init__(self, choice: Versioned):
        self.choice = choice
        operations = [bound.operation for _, bound in choice.steps if bound is not ABSENT]
        changes = {version for each in operations for version in each.changes}
        ends = {each.max.next for each in operations if each.max < MAX}
        self.starts = sorted({MIN} | changes | ends)
        self._shapes: dict[APIVersionRequest, KnownNames | None] = {}

    def at(self, version: APIVersionRequest, legacy: bool = False) -> KnownNames | None:
        """What the operation accepts at a version, or on /v2; None if it does not exist there."""
        if legacy:
            return self._shape(LEGACY, MIN)
        return self._shape(*[max(each for each in self.starts if each <= version)] * 2)

    def _shape(self, version: APIVersionRequest, chosen_at: APIVersionRequest) -> KnownNames | None:
        if version not in self._shapes:
            bound = self.choice.at(chosen_at)
            self._shapes[version] = None if bound is ABSENT else _shape(bound.operation, version)
        return self._shapes[version]

    def when(self, is_known: Callable[[KnownNames], bool] = lambda shape: True) -> str:
        """The versions for which this is true, in words: `from 2.32 to 2.36 and from 2.42 on`; empty for none."""
        spans: list[list[APIVersionRequest]] = []
        for start, end in zip(self.starts, [*(each.previous for each in self.starts[1:]), MAX], strict=True):
            shape = self.at(start)
            if shape is None or not is_known(shape):
                continue
            if spans and spans[-1][1].next == start:
                spans[-1][1] = end
            else:
                spans.append([start, end])
        return ' and '.join(_span_text(*span) for span in spans)


def _shape(operation: Operation, version: APIVersionRequest) -> KnownNames:
    query = resolve(operation.query, version)
    if query is ABSENT and version == LEGACY:
        # /v2 does not validate parameters; handlers read those of the first version.
        query = resolve(operation.query, MIN)
    return KnownNames(resolve(operation.body, version), query)


def _span_text(first: APIVersionRequest, last: APIVersionRequest) -> str:
    if first == last != MAX:
        return f'in {first} only'
    if last == MAX:
        return f'from {first} on' if first > MIN else 'in every version'
    return f'until {last}' if first == MIN else f'from {first} to {last}'


TABLE = SERVICES['compute'].table
_lifetimes: dict[tuple[str, str, str | None], Lifetime] = {}


def lifetime_of(method: str, endpoint: Endpoint, action: str | None) -> Lifetime:
    """The lifetime of the operation at an endpoint, computed once."""
    key = method, endpoint.path, action
    if key not in _lifetimes:
        _lifetimes[key] = Lifetime(endpoint.choices[action])
    return _lifetimes[key]
