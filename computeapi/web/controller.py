"""How a resource is written: a Controller whose methods are noted as operations.

    class ServerTags(Controller):
        path = '/servers/{server_id}/tags'

        @operation('GET', policy=INDEX, response=TAGS)
        @api_version('2.26')
        def index(self, req, server): ...

The decorators note facts and leave the function as it is. One name may be defined several times,
each for its own range of versions; that ranges do not overlap is checked when the app is built.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from computeapi.versions import HISTORY, MAX, APIVersionRequest
from computeapi.web.contract import ABSENT, Operation, Policy, query

NO_PARAMETERS = query({}, legacy=False)


def operation(
    method: str,
    path: str = '',
    *,
    policy: Policy | None,
    query: Any = None,
    body: Any = ABSENT,
    response: Any = ABSENT,
    **facts: Any,
) -> Callable[[Callable], Callable]:
    """Declare that this method answers `method` on the controller's path plus *path*.

    *policy* is the rule that the caller must pass; None says on purpose that there is none.
    A GET without *query* takes no parameters: others are ignored below 2.102 and refused from there on.
    """
    if query is None:
        query = NO_PARAMETERS if method == 'GET' else ABSENT

    def note(function: Callable) -> Callable:
        fact = Operation(method, path, function, policy=policy, query=query, body=body, response=response, **facts)
        _note(function, fact, getattr(function, 'bounds', {}))
        return function

    return note


def action(name: str, *, path: str = '/{id}/action', status: Any = 202, **facts: Any) -> Callable[[Callable], Callable]:
    """Declare that this method answers POST {name: ...} on the action URL of the resource."""
    return operation('POST', path, action=name, status=status, **facts)


def api_version(min: str, max: str | None = None) -> Callable[[Callable], Callable]:
    """Limit a method to a range of versions, both ends included; without *max* to the newest."""
    for text in filter(None, (min, max)):
        if text not in HISTORY:
            raise ValueError(f'{text} is not a version of this API')
    bounds = {'min': APIVersionRequest.parse(min), 'max': APIVersionRequest.parse(max) if max else MAX}

    def note(function: Callable) -> Callable:
        function.bounds = bounds  # type: ignore[attr-defined]
        _note(function, None, bounds)
        return function

    return note


def _note(function: Callable, fact: Operation | None, bounds: dict) -> None:
    operations = function.__dict__.setdefault('operations', [])
    if fact is not None:
        operations.append(fact)
    operations[:] = [replace(each, **bounds) for each in operations]


class _Names(dict):
    """A class body in which a name may be defined once per range of versions: all operations are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: dict[str, list[Operation]] = {}

    def __setitem__(self, name: str, value: Any) -> None:
        if operations := getattr(value, 'operations', None):
            self.noted.setdefault(name, []).extend(operations)
        super().__setitem__(name, value)


class _ControllerType(type):
    path: str
    noted: dict[str, list[Operation]]
    operations: list[Operation]

    @classmethod
    def __prepare__(metacls, name: str, bases: tuple[type, ...], /, **kwargs: Any) -> _Names:
        return _Names()

    def __init__(cls, name: str, bases: tuple[type, ...], names: Any, **kwargs: Any):
        super().__init__(name, bases, names, **kwargs)
        # A subclass has the operations of its base on its own path; a name it defines again replaces the base's.
        inherited = [getattr(base, 'noted', {}) for base in reversed(bases)]
        cls.noted = functools.reduce(operator.or_, [*inherited, names.noted])
        cls.operations = [replace(each, path=cls.path + each.path) for group in cls.noted.values() for each in group]


class Controller(metaclass=_ControllerType):
    """One resource: its operations, on URLs that start with `path`.

    subject: the parameter of the path that names the resource the operations are about. Where a path
    has it, `find` is called before the policy is asked, and the handler gets what was found instead of
    the id: `{server_id}` in the path, `server` in the handler.
    """

    path = ''
    subject: str | None = None

    def __init__(self, cloud: Any):
        """cloud: the services that the handlers call."""
        self.cloud = cloud

    def find(self, req, identifier: str) -> Any:
        """The subject, bound to what the caller may see, loaded as `req.operation` needs it; NotFound."""
        raise NotImplementedError

    def target(self, req, parameters: Mapping[str, Any]) -> Mapping[str, str] | None:
        """Whose the things are that an operation without a subject is about; None: the caller's."""
        return None
