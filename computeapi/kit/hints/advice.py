"""What a client may want to know about other versions if part of its request was refused or ignored."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from computeapi.kit.hints.lifetimes import TABLE, Lifetime, lifetime_of
from computeapi.kit.hints.names import spelled, unknown
from computeapi.kit.operations import name_of
from computeapi.versions import APIVersionRequest

MAX_NAME_LENGTH = 100
MAX_HINTS = 10
"""The limit for one request."""


class Question(NamedTuple):
    """A request to the compute API, and how it was answered.

    path: below the version, possibly with a project.  named: whether the request names its version.
    body: parsed JSON; None if there was none.
    """

    method: str
    path: str
    version: APIVersionRequest
    named: bool
    legacy: bool
    query: Mapping[str, Sequence[str]]
    body: Any
    refused: bool


class Advice(NamedTuple):
    """The operation that a request was for, and the hints about it."""

    operation: str
    hints: list[str]


def advise(question: Question) -> Advice | None:
    """The hints for a request; None if no version has such an operation."""
    match = TABLE.find({'REQUEST_METHOD': question.method, 'PATH_INFO': question.path})
    if match is None:
        return None
    action = None
    if match.endpoint.actions:
        action = next(iter(question.body), None) if isinstance(question.body, dict) else None
        if action not in match.endpoint.choices:
            return None
    operation = name_of(question.method, match.endpoint.path, action)
    lifetime = lifetime_of(question.method, match.endpoint, action)
    return Advice(operation, list(islice(_hints(question, operation, action, lifetime), MAX_HINTS)))


def _hints(question: Question, operation: str, action: str | None, lifetime: Lifetime) -> Iterator[str]:
    shape = lifetime.at(question.version, question.legacy)
    version_text = _version_text(question)
    if shape is None:
        yield f'{operation} is supported {lifetime.when()}; {version_text}'
        return
    for path, closed in unknown([shape.body or {}], question.body):
        when = lifetime.when(lambda each, path=path: each.knows_field(path))  # type: ignore[misc]
        ignored = not (question.refused and closed)
        # Where a schema does not restrict names, a name that no version knows is not a mistake.
        if (when or (ignored and closed)) and path != (action,):
            yield _hint(spelled(path), when, version_text, ignored)
    for name in question.query:
        when = lifetime.when(lambda each, name=name: each.knows_parameter(name))  # type: ignore[misc]
        if not shape.knows_parameter(name) and (when or shape.ignores_parameters):
            yield _hint(name, when, version_text, shape.ignores_parameters)


def _hint(name: str, when: str, version_text: str, ignored: bool) -> str:
    known = f'supported {when or "in no version"}; {version_text}'
    return f'{_quoted(name)} was ignored: it is {known}' if ignored else f'{_quoted(name)} is {known}'


def _version_text(question: Question) -> str:
    if question.legacy:
        return '/v2 has no microversions'
    if question.named:
        return f'this request used {question.version}'
    return f'this request named no version and so used {question.version}'


def _quoted(name: str) -> str:
    """A name from the client, made safe for a header."""
    return ascii(name if len(name) <= MAX_NAME_LENGTH else name[:MAX_NAME_LENGTH] + '...')
