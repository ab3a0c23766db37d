"""From a method and a path to an endpoint: the operation at each version.

The routes are derived from the operations. They are looked up by method, first segment and number of segments of the
path, so that a request is matched against few of them.
"""

import functools
import itertools
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from routes.route import Route

from computeapi.versions import ABSENT, APIVersionRequest, Versioned
from computeapi.web.contract import Operation
from computeapi.web.controller import Controller

PARAMETER = re.compile(r'{\w+}')
PROJECT = re.compile(r'[0-9a-f-]+')


class Bound(NamedTuple):
    """An operation and the kind of controller that it is called on."""

    operation: Operation
    kind: type[Controller]


class Endpoint(NamedTuple):
    """One method of one path: the operation at each version, by action; the key is None if there are no actions."""

    path: str
    choices: dict[str | None, Versioned]

    @property
    def actions(self) -> bool:
        """Whether the body names the action."""
        return None not in self.choices

    @property
    def operations(self) -> list[Operation]:
        """Every operation of this endpoint, at any version."""
        steps = itertools.chain.from_iterable(choice.steps for choice in self.choices.values())
        return [bound.operation for _, bound in steps if bound is not ABSENT]


class Match(NamedTuple):
    endpoint: Endpoint
    parameters: dict[str, str]
    project: str | None


class RouteTable:
    """Every operation of these kinds of controllers, ready for lookup.

    TypeError if two operations answer the same method, path and action at one version, or if they name the
    parameters of one path differently.

    project: the pattern of a project ID before the path; None if there cannot be one.
    """

    def __init__(self, kinds: Iterable[type[Controller]], project: re.Pattern[str] | None = PROJECT):
        self.project = project
        bound = [Bound(each, kind) for kind in kinds for each in kind.operations]
        _check_spelling(each.operation.path for each in bound)
        self._segments = {_first_segment(each.operation.path) for each in bound}
        # Paths without parameters need no matching.
        self._fixed: dict[tuple[str, str], Endpoint] = {}
        self._others: dict[tuple[str, str, int], list[Endpoint]] = {}
        for (path, method), group in _grouped(bound).items():
            endpoint = _endpoint(path, group)
            if PARAMETER.search(path) is None:
                self._fixed[path, method] = endpoint
            else:
                self._others.setdefault(_key(method, path), []).append(endpoint)

    def find(self, environ: dict[str, Any]) -> Match | None:
        """The endpoint for a request; None for an unknown path or another method."""
        path, method, project = _path(environ), environ['REQUEST_METHOD'], None
        segment = _first_segment(path)
        if segment not in self._segments and self.project and self.project.fullmatch(segment):
            project, path = segment, path[len(segment) + 1 :]
        fixed = self._fixed.get((path, method))
        if fixed is not None:
            return Match(fixed, {}, project)
        for endpoint in self._others.get(_key(method, path), ()):
            found = _route(endpoint.path).match(path)
            if isinstance(found, dict):
                return Match(endpoint, found, project)
        return None


@functools.cache
def route_table(kinds: tuple[type[Controller], ...], project: re.Pattern[str] | None) -> RouteTable:
    """The table of these kinds, created once, because it depends on nothing else."""
    return RouteTable(kinds, project)


def _path(environ: dict[str, Any]) -> str:
    """The path as text. Invalid UTF-8, and NUL, which no database stores, become a character that no ID contains."""
    path: str = environ['PATH_INFO'].encode('latin-1').decode(errors='replace')
    return path.replace('\0', '\N{REPLACEMENT CHARACTER}')


@functools.cache
def _route(path: str) -> Route:
    """The matcher of a path, created on first use: creating all of them takes a tenth of the startup time."""
    route = Route(None, path, _explicit=True)
    route.makeregexp(())
    return route


def _key(method: str, path: str) -> tuple[str, str, int]:
    """The properties that a path shares with its route."""
    return method, _first_segment(path), path.count('/')


def _first_segment(path: str) -> str:
    return path[1:].partition('/')[0]


def _check_spelling(paths: Iterable[str]) -> None:
    spelled: dict[str, str] = {}
    for path in paths:
        other = spelled.setdefault(PARAMETER.sub('{}', path), path)
        if other != path:
            raise TypeError(f'{path} is one path with {other}: its parameters must have the same names')


def _grouped(bound: Iterable[Bound]) -> dict[tuple[str, str], list[Bound]]:
    # Fixed paths come before those with a parameter in the same place: /flavors/detail before /flavors/{id}.
    groups: dict[tuple[str, str], list[Bound]] = {}
    for each in sorted(bound, key=lambda b: [part.startswith('{') for part in b.operation.path.split('/')]):
        groups.setdefault((each.operation.path, each.operation.method), []).append(each)
    return groups


def _endpoint(path: str, bound: list[Bound]) -> Endpoint:
    by_action: dict[str | None, list[Bound]] = {}
    for each in bound:
        by_action.setdefault(each.operation.action, []).append(each)
    return Endpoint(path, {action: _by_version(choices) for action, choices in by_action.items()})


def _by_version(choices: list[Bound]) -> Versioned:
    """The operation at each version."""
    steps: dict[APIVersionRequest, Any] = {}
    end = None
    for each in sorted(choices, key=lambda b: b.operation.min):
        if end is not None and each.operation.min <= end:
            raise TypeError(f'{each.operation} has two handlers at {each.operation.min}')
        steps[each.operation.min], end = each, each.operation.max
        if end < each.kind.history.max:
            steps[end.next] = ABSENT
    return Versioned(steps)
