"""What each version changed, found by comparing the operations before it and at it."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from computeapi.versions import ABSENT, APIVersionRequest, resolve
from computeapi.web.contract import Operation

NESTED = frozenset({'properties', 'patternProperties', 'items', 'oneOf', 'anyOf', 'allOf', 'required'})


class Change(NamedTuple):
    """The effect of a version on one operation: {'added': []}, {'removed': []} or {'body': ['+/server/tags'], ...}."""

    operation: str
    what: dict[str, list[str]]


def changes(operations: Iterable[Operation], version: APIVersionRequest) -> list[Change]:
    """The operations that *version* changed; in the first version, everything is new."""
    operations = list(operations)
    names = {str(each) for each in operations if version in each.changes or version == each.max.next}
    touched = [each for each in operations if str(each) in names]
    before = _available(touched, version.previous)
    after = _available(touched, version)
    differences = {name: _difference(before.get(name), after.get(name)) for name in before | after}
    return [Change(name, what) for name, what in differences.items() if what]


class Shape(NamedTuple):
    """The properties of an operation at one version that clients can observe."""

    status: int
    media_type: str
    unknown_parameters: str
    query: Any
    body: Any
    response: Any
    behaviour: dict[str, Any]


def shape(operation: Operation, version: APIVersionRequest) -> Shape:
    status, media_type = operation.answers.at(version)
    query = dict(resolve(operation.query, version) or {})
    unknown = 'ignored' if query.pop('additionalProperties', True) else 'refused'
    body, response = resolve(operation.body, version), resolve(operation.response_schema, version)
    # A new handler is described by its summary.
    behaviour = {**vars(operation.behaviours.at(version)), operation.summary: operation.handler}
    return Shape(status, media_type, unknown, query, body, response, behaviour)


def _available(operations: Iterable[Operation], version: APIVersionRequest) -> dict[str, Shape]:
    return {str(each): shape(each, version) for each in operations if version.matches(each.min, each.max)}


def _difference(before: Shape | None, after: Shape | None) -> dict[str, list[str]]:
    if before is None or after is None:
        return {'removed' if after is None else 'added': []}
    pairs = zip(Shape._fields, before, after, strict=True)
    changes = {name.replace('_', ' '): _changes(name, old, new) for name, old, new in pairs}
    return {name: details for name, details in changes.items() if details}


def _changes(name: str, old: Any, new: Any) -> list[str]:
    if name in ('query', 'body', 'response'):
        return compare(old, new)
    if name == 'behaviour':
        return [each for each, value in new.items() if old.get(each, ABSENT) != value]
    return [f'{old} -> {new}'] if old != new else []


# ------------------------------------------------------------------ schemas


def compare(before: Any, after: Any) -> list[str]:
    """+/field, -/field and ~/field (another type, limit ...) from one schema to the next; ABSENT has no fields."""
    old, new = fields(before), fields(after)
    marks = dict.fromkeys(new.keys() - old, '+') | dict.fromkeys(old.keys() - new, '-')
    for path in old.keys() & new.keys():
        if _lasting(old[path], path, marks) != _lasting(new[path], path, marks):
            marks[path] = '~'
    if len(marks) > 1 and marks.get('', '~') != '~':
        # A new body: its fields say more than that it exists.
        del marks['']
    outermost = (path for path in marks if not any(path != other and _holds(other, path, marks) for other in marks))
    return [marks[path] + (path or '/') for path in sorted(outermost)]


def _holds(outer: str, inner: str, marks: dict[str, str]) -> bool:
    """Whether a field was added or removed together with the one that contains it."""
    return marks[outer] == marks[inner] != '~' and inner.startswith((outer + '/', outer + '['))


def _lasting(facts: list[Any], path: str, marks: dict[str, str]) -> list[Any]:
    """The facts about a field, without those that only say which fields were added or removed below it."""
    return [
        (rest, frozenset(name for name in required if marks.get(f'{path}/{name}') not in ('+', '-')))
        for rest, required in facts
    ]


def fields(schema: Any) -> dict[str, list[Any]]:
    """Every field of a schema by its path, with its facts (several of them in alternatives)."""
    found: dict[str, list[Any]] = {}
    if schema is not ABSENT:
        for path, facts in _walk(schema, ''):
            found.setdefault(path, []).append(facts)
    return found


def _walk(schema: Any, path: str) -> Iterator[tuple[str, tuple[dict[str, Any], Iterable[str]]]]:
    yield path, ({key: value for key, value in schema.items() if key not in NESTED}, schema.get('required', ()))
    for keyword in ('properties', 'patternProperties'):
        for name, each in schema.get(keyword, {}).items():
            yield from _walk(each, f'{path}/{name}')
    if isinstance(schema.get('items'), dict):
        yield from _walk(schema['items'], f'{path}[]')
    for keyword in ('oneOf', 'anyOf', 'allOf'):
        for each in schema.get(keyword, ()):
            yield from _walk(each, path)
