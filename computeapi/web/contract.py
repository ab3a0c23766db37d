"""The declarations of the API: policies, views of resources, operations.

Everything else (routes, dispatch, validation, OpenAPI, the policy sample) is derived from these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

from computeapi.versions import ABSENT, MAX, MIN, APIVersionRequest, Versioned, breakpoints, compiled
from computeapi.web.schemas import closed
from computeapi.web.validation import BodyValidator, QueryValidator, ResponseValidator

JSON = 'application/json'
HTML = 'text/html; charset=UTF-8'

# ------------------------------------------------------------------ policies


@dataclass(frozen=True, eq=False)
class Policy:
    """A rule that an operation or a field checks, under the name that operators use in policy.yaml. Declared once."""

    name: str
    default: str
    description: str = ''

    def __str__(self) -> str:
        return self.name


ANYONE = '@'
NOBODY = '!'
ADMIN = 'rule:context_is_admin'
MANAGER_OR_ADMIN = 'rule:project_manager_or_admin'
MEMBER_OR_ADMIN = 'rule:project_member_or_admin'
READER_OR_ADMIN = 'rule:project_reader_or_admin'
SERVICE_OR_ADMIN = 'rule:service_or_admin'

# ------------------------------------------------------------------ views


class Asking(Protocol):
    """The properties of a request that a view needs."""

    version: APIVersionRequest

    def allows(self, policy: Policy, target: Any = None) -> bool:
        """Whether the caller passes *policy*."""


Reader = Callable[[Any], Any]
"""Reads a field from a model."""


class Field(NamedTuple):
    """One field of a response: its schema and how to read it from the model.

    needs: what the store must load besides the row.  policy: the rule that decides whether the field is shown, checked
    once per request.  request: `get` is called once with the request, and returns the reader, for links and the like.
    optional: `get` may return ABSENT to leave the field out of one row.
    """

    schema: Any
    get: Callable[..., Any]
    needs: tuple[str, ...] = ()
    policy: Policy | None = None
    request: bool = False
    optional: bool = False


attr = attrgetter


def absent(model: Any) -> Any:
    """The reader of a field that is not shown."""
    return ABSENT


class View:
    """A resource as clients see it, at any version: {name: Field, marked by version where it differs}."""

    def __init__(self, fields: Mapping[str, Any]):
        self.fields = dict(fields)
        self._shapes: dict[APIVersionRequest, _Shape] = {}

    def at(self, version: APIVersionRequest) -> _Shape:
        """The fields at a version, computed once."""
        if version not in self._shapes:
            self._shapes[version] = _Shape(_fields_at(self.fields, version))
        return self._shapes[version]

    def needs(self, req: Asking) -> frozenset[str]:
        """What the store must load so that every reader finds its data."""
        return self.at(req.version).needs

    def renderer(self, req: Asking) -> Callable[[Any], dict[str, Any]]:
        """A function from a model to its dict, for the version and the permissions of one request."""
        return self.at(req.version).renderer(req)

    def render(self, req: Asking, model: Any) -> dict[str, Any]:
        return self.renderer(req)(model)

    def render_all(self, req: Asking, models: Iterable[Any]) -> list[dict[str, Any]]:
        return list(map(self.renderer(req), models))

    @functools.cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the rendered object, marked by version."""
        properties = {name: each_step(field, lambda f: f.schema) for name, field in self.fields.items()}
        return closed(properties, _always(self.fields))

    def without(self, *names: str) -> View:
        """The same view without some fields."""
        return View({name: field for name, field in self.fields.items() if name not in names})

    @property
    def policies(self) -> list[Policy]:
        """The rules that any field checks at any version."""
        steps = [each.steps if isinstance(each, Versioned) else [(MIN, each)] for each in self.fields.values()]
        return [shown.policy for each in steps for _, shown in each if shown and shown.policy]


def _fields_at(fields: Mapping[str, Any], version: APIVersionRequest) -> dict[str, Field]:
    chosen = ((name, f.at(version) if isinstance(f, Versioned) else f) for name, f in fields.items())
    return {name: field for name, field in chosen if field is not ABSENT}


def each_step(value: Any, function: Callable[[Any], Any]) -> Any:
    """Apply *function* to the value, at each of its steps if it has any; ABSENT stays ABSENT."""
    if value is ABSENT:
        return ABSENT
    return value.map(function) if isinstance(value, Versioned) else function(value)


def _always(properties: Mapping[str, Any]) -> list[Any]:
    """The names of the properties that are never left out, marked by version."""

    def named(name: str) -> Callable[[Any], Any]:
        return lambda value: ABSENT if isinstance(value, Field) and (value.policy or value.optional) else name

    return [each_step(value, named(name)) for name, value in properties.items()]


class _Shape:
    """The fields of a view at one version."""

    def __init__(self, fields: dict[str, Field]):
        self.fields = fields
        self.needs = frozenset(need for field in fields.values() for need in field.needs)
        self.policies = tuple({field.policy for field in fields.values() if field.policy})
        self._readers: dict[frozenset[Policy], tuple[tuple[str, Callable[..., Any], bool], ...]] = {}

    def renderer(self, req: Asking) -> Callable[[Any], dict[str, Any]]:
        denied = frozenset(policy for policy in self.policies if not req.allows(policy))
        if denied not in self._readers:
            self._readers[denied] = tuple(
                (name, f.get, f.request) for name, f in self.fields.items() if f.policy not in denied
            )
        readers: list[tuple[str, Reader]] = [
            (name, get(req) if of_request else get) for name, get, of_request in self._readers[denied]
        ]
        optional = [name for name, _ in readers if self.fields[name].optional]

        def render(model: Any) -> dict[str, Any]:
            shown = {name: get(model) for name, get in readers}
            for name in optional:
                if shown[name] is ABSENT:
                    del shown[name]
            return shown

        return render


# ------------------------------------------------------------------ operations

SHARED_ERRORS = (400, 401, 406, 413, 415, 500, 503)
"""The statuses of errors that any request may get."""


@dataclass(frozen=True)
class Operation:
    """Everything the service promises about one method of one URL (or one action on it).

    policy: checked before the handler runs (None: everybody passes, or the handler checks).
    subject_first: the resource that the path names is loaded before the policy is checked.
    query, body, response, status, media_type: plain or marked by version; ABSENT body or query: ignored.
    successes: further success statuses, with the same body or (204) none.
    errors: the statuses of its errors, in addition to those every operation shares, and 403 if a rule is checked.
    behaviour: aspects that no schema shows, by name, marked by version; the handler reads `req.behaviour.name`.
    also: the rules that the handler checks itself.
    """

    method: str
    path: str
    handler: Callable[..., Any]
    action: str | None = None
    policy: Policy | None = None
    min: APIVersionRequest = MIN
    max: APIVersionRequest = MAX
    query: Any = ABSENT
    body: Any = ABSENT
    response: Any = ABSENT
    status: Any = 200
    media_type: Any = JSON
    successes: tuple[int, ...] = ()
    errors: tuple[int, ...] = ()
    subject_first: bool = True
    also: tuple[Policy, ...] = ()
    behaviour: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f'{self.method} {self.path}' + (f' {{{self.action}}}' if self.action else '')

    @property
    def summary(self) -> str:
        """The description for clients."""
        return summary_of(self.handler)

    @property
    def policies(self) -> list[Policy]:
        """Every rule that may be checked, each once: for the operation, by the handler, for a field."""
        fields = [policy for view in self.views for policy in view.policies]
        return list(dict.fromkeys(filter(None, [self.policy, *self.also, *fields])))

    @functools.cached_property
    def views(self) -> tuple[View, ...]:
        """Every View that the answer may contain."""
        return tuple(views(self.response))

    @functools.cached_property
    def error_statuses(self) -> frozenset[int]:
        """Every status that an error of it may have: the shared ones, its own, and 403 if a rule is checked."""
        return frozenset({*SHARED_ERRORS, *self.errors, *(403 for _ in self.policies)})

    @property
    def takes_body(self) -> bool:
        return self.body is not ABSENT

    @functools.cached_property
    def body_validator(self) -> BodyValidator:
        return BodyValidator(self.body)

    @functools.cached_property
    def query_validator(self) -> QueryValidator:
        return QueryValidator(self.query)

    @functools.cached_property
    def response_validator(self) -> ResponseValidator:
        return ResponseValidator(self.response_schema)

    @functools.cached_property
    def answers(self) -> Versioned:
        """(status, media type) by version."""
        return compiled([self.status, self.media_type], tuple)

    @functools.cached_property
    def behaviours(self) -> Versioned:
        """`behaviour` by version, as attributes; None where a value is absent."""
        names = self.behaviour

        def plain(values: Mapping[str, Any]) -> SimpleNamespace:
            return SimpleNamespace(**{name: values.get(name) for name in names})

        return compiled(names, plain)

    @functools.cached_property
    def response_schema(self) -> Any:
        """The JSON schema of the answer, marked by version; ABSENT if it has no body."""
        return each_step(self.response, lambda tree: schemas(_object(tree)))

    @functools.cached_property
    def changes(self) -> frozenset[APIVersionRequest]:
        """The versions at which anything about this operation changes, including its first."""
        facts = [self.query, self.body, self.response_schema, self.status, self.media_type, self.behaviour]
        inside = breakpoints(facts)
        return frozenset(version for version in inside | {self.min} if self.min <= version <= self.max)


def summary_of(described: object) -> str:
    """The first line of a docstring."""
    return (described.__doc__ or '').strip().partition('\n')[0]


def _object(tree: Any) -> Any:
    """Expand {'flavor': VIEW, ...}, short for the closed object that always has these keys."""
    if isinstance(tree, dict) and tree and all(isinstance(value, (dict, View, Versioned)) for value in tree.values()):
        return closed(tree, _always(tree))
    return tree


def schemas(tree: Any) -> Any:
    """The same tree with each View replaced by its schema."""
    if isinstance(tree, View):
        return schemas(tree.schema)
    if isinstance(tree, Versioned):
        return tree.map(schemas)
    if isinstance(tree, dict):
        return {key: schemas(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [schemas(value) for value in tree]
    return tree


def views(tree: Any) -> Iterator[View]:
    """Every View in a tree."""
    if isinstance(tree, View):
        yield tree
    elif isinstance(tree, Versioned):
        yield from views([value for _, value in tree.steps])
    elif isinstance(tree, (dict, list, tuple)):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from views(value)
