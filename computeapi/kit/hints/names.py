"""Which names in a body a JSON schema of one version knows."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Schema = Mapping[str, Any]
Path = tuple[str | int, ...]
"""The names and positions that lead to a field."""
ALTERNATIVES = ('oneOf', 'anyOf', 'allOf')
OF_OBJECTS = frozenset({'properties', 'patternProperties', 'additionalProperties'})


class UnknownField(NamedTuple):
    """closed: whether unknown names are refused there, or dropped by /v2; elsewhere, the schema does not restrict
    names."""

    path: Path
    closed: bool


def unknown(schemas: Sequence[Schema], body: Any, path: Path = ()) -> Iterator[UnknownField]:
    """The fields, at any depth, that the schema does not know.

    schemas: alternatives for the body; a name that one of them knows is known.
    """
    if isinstance(body, dict):
        known = [each for each in _alternatives(schemas) if not OF_OBJECTS.isdisjoint(each)]
        closed = bool(known) and all(each.get('additionalProperties') is False for each in known)
        for name, value in body.items():
            below = list(_property(known, name))
            if not below and (closed or not known):
                yield UnknownField((*path, name), closed)
            if below or not known:
                yield from unknown(below, value, (*path, name))
    elif isinstance(body, list):
        below = list(_items(schemas))
        for position, value in enumerate(body):
            yield from unknown(below, value, (*path, position))


def knows(schema: Schema, path: Path) -> bool:
    """Whether the schema knows a field with this path."""
    schemas: list[Schema] = [schema]
    for part in path:
        found = _items(schemas) if isinstance(part, int) else _property(_alternatives(schemas), part)
        schemas = list(found)
    return bool(schemas)


def spelled(path: Path) -> str:
    """The path as people write it, without the outermost object: `networks[0].tag`."""
    first, *rest = path[1:] or path
    return str(first) + ''.join(f'[{part}]' if isinstance(part, int) else f'.{part}' for part in rest)


def _alternatives(schemas: Iterable[Schema]) -> Iterator[Schema]:
    """The schemas, with all of their alternatives."""
    for schema in schemas:
        yield schema
        for keyword in ALTERNATIVES:
            yield from _alternatives(schema.get(keyword, ()))


def _property(schemas: Iterable[Schema], name: str) -> Iterator[Schema]:
    for schema in schemas:
        if name in schema.get('properties', ()):
            yield schema['properties'][name]
        for pattern, value in schema.get('patternProperties', {}).items():
            if re.search(pattern, name):
                yield value


def _items(schemas: Iterable[Schema]) -> Iterator[Schema]:
    return (schema['items'] for schema in _alternatives(schemas) if isinstance(schema.get('items'), Mapping))
