"""Resources: a resource is a Controller, whose methods are declared as operations.

    class ServerTags(Controller):
        path = '/servers/{server_id}/tags'

        @operation('GET', policy=INDEX, response=TAGS)
        @api_version('2.26')
        def index(self, req, server): ...

        @api_version('2.60')
        def index(self, req, server): ...

The decorators record facts and leave the function unchanged. A second definition of the same name, under
`@api_version`, handles the operation from that version on; it inherits the operations of the definition before it
unless it declares its own.
"""

import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from computeapi.versions import ABSENT, COMPUTE, APIVersionRequest, History
from computeapi.web.contract import Operation, Policy, each_step
from computeapi.web.request import Request
from computeapi.web.schemas import lone, query

Function = TypeVar('Function', bound=Callable[..., Any])
NO_PARAMETERS = query({}, legacy=False)


class Bounds(NamedTuple):
    """The versions that a method is for, both ends included; last None: up to the newest, or to the next definition."""

    first: str | None = None
    last: str | None = None


def operation(
    method: str,
    path: str = '',
    *,
    policy: Policy | None,
    query: Any = None,
    body: Any = ABSENT,
    response: Any = ABSENT,
    **kwargs: Any,
) -> Callable[[Function], Function]:
    """Declare that this method answers `method` on the controller's path plus *path*.

    *policy* is the rule that the caller must pass; None states explicitly that there is none.
    A GET without *query* takes no parameters: others are ignored below 2.102 and refused from 2.102 on.
    """

    def note(function: Function) -> Function:
        fact = Operation(method, path, function, policy=policy, query=query, body=body, response=response, **kwargs)
        function.__dict__.setdefault('operations', []).append(fact)
        return function

    return note


def action(
    name: str, *, takes: Any = ABSENT, path: str = '/{id}/action', status: Any = 202, **kwargs: Any
) -> Callable[[Function], Function]:
    """Declare that this method answers POST {name: what it takes} on the action URL of the resource."""
    body = each_step(takes, functools.partial(lone, name))
    return operation('POST', path, action=name, status=status, **{'body': body, **kwargs})


def api_version(first: str, last: str | None = None) -> Callable[[Function], Function]:
    """Limit a method to a range of versions, both ends included."""

    def note(function: Function) -> Function:
        function.__dict__['bounds'] = Bounds(first, last)
        return function

    return note


class Definition(NamedTuple):
    """One definition of a method, with its operations and versions."""

    operations: list[Operation]
    bounds: Bounds


class _Names(dict[str, Any]):
    """A class body in which a name may be defined once per range of versions; all definitions are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: dict[str, list[Definition]] = {}

    def __setitem__(self, name: str, value: Any) -> None:
        own, bounds = getattr(value, 'operations', None), getattr(value, 'bounds', None)
        if own:
            self.noted.setdefault(name, []).append(Definition(own, bounds or Bounds()))
        elif bounds:
            self._take_over(name, value, bounds)
        super().__setitem__(name, value)

    def _take_over(self, name: str, function: Callable[..., Any], bounds: Bounds) -> None:
        """Let *function* handle the operations of the previous definition, within its own bounds."""
        if name not in self.noted:
            raise TypeError(f'{name}: @api_version stands on a method that is no operation')
        earlier = self.noted[name][-1]
        function.__doc__ = function.__doc__ or earlier.operations[0].handler.__doc__
        if earlier.bounds.last is None:
            last = str(APIVersionRequest.parse(bounds.first or '').previous)
            self.noted[name][-1] = earlier._replace(bounds=earlier.bounds._replace(last=last))
        elif APIVersionRequest.parse(earlier.bounds.last).next != APIVersionRequest.parse(bounds.first or ''):
            raise TypeError(f'{name}: {bounds.first} does not follow {earlier.bounds.last}')
        self.noted[name].append(Definition([replace(each, handler=function) for each in earlier.operations], bounds))


class _ControllerType(type):
    path: str
    history: History
    parameters: Any
    any_name: bool
    versions: Bounds
    noted: dict[str, list[Definition]]
    operations: list[Operation]

    @classmethod
    def __prepare__(metacls, name: str, bases: tuple[type, ...], /, **kwargs: Any) -> _Names:
        return _Names()

    def __init__(cls, name: str, bases: tuple[type, ...], names: Any, **kwargs: Any):
        super().__init__(name, bases, names, **kwargs)
        # A subclass has the operations of its base on its own path; a name that it redefines replaces the base's.
        inherited: list[dict[str, list[Definition]]] = [getattr(base, 'noted', {}) for base in reversed(bases)]
        cls.noted = functools.reduce(operator.or_, [*inherited, names.noted])
        cls.operations = [
            cls._placed(each, definition.bounds)
            for definitions in cls.noted.values()
            for definition in definitions
            for each in definition.operations
        ]

    def _placed(cls, fact: Operation, bounds: Bounds) -> Operation:
        """The operation on the path of this class, at the versions of its service."""
        unsaid = cls.parameters if fact.method == 'GET' else ABSENT
        first, last = bounds.first or cls.versions.first, bounds.last or cls.versions.last
        low = cls.history.version(first) if first else cls.history.min
        high = cls.history.version(last) if last else cls.history.max
        if low > high:
            raise TypeError(f'{cls.__name__}: {fact} has two definitions at {low}, or none')
        asked = unsaid if fact.query is None else fact.query
        path = cls.path + fact.path
        errors = (*fact.errors, 404) if '{' in path and not cls.any_name else fact.errors
        return replace(fact, path=path, min=low, max=high, query=asked, errors=errors)


class Controller(metaclass=_ControllerType):
    """One resource: its operations, on URLs that start with `path`.

    subject: the parameter of the path that names the resource that the operations are about. If a path has it, `find`
    is called before the policy check, and the handler gets the result instead of the ID: `{server_id}` in the path,
    `server` in the handler.
    history: the versions of the service.  versions: those at which the resource exists, if not at all of them.
    parameters: the query of a GET that declares none.
    api_version: the decorator, for code that expects it here.
    any_name: whether a path may name something unknown; otherwise that is a 404, which operations need not declare.
    """

    path = ''
    subject: str | None = None
    history: History = COMPUTE
    versions: Bounds = Bounds()
    parameters: Any = NO_PARAMETERS
    any_name: bool = False
    api_version = staticmethod(api_version)

    def find(self, req: Request, identifier: str) -> Any:
        """Load the subject, limited to what the caller may see, as `req.operation` needs it; NotFound."""
        raise NotImplementedError

    def target(self, req: Request, parameters: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The owner of the things that an operation without a subject is about; None: the caller."""
        return None
