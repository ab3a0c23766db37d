"""Every operation of the compute API, at every microversion: what it takes and answers since and until when."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from computeapi import api
from computeapi.versions import ABSENT, COMPUTE, MAX, MIN, APIVersionRequest
from computeapi.web.contract import SHARED_ERRORS, Operation
from computeapi.web.controller import Controller
from computeapi.web.history import fields, shape
from computeapi.web.openapi import resource_of
from generators.markdown import code, plain, table

INDEX = """# Operations

The compute API, resource by resource: every operation with its parameters, request, responses and microversions.
`computeapi routes` lists the operations. `/ui/` of a running service shows them at one version, and lets you try them.
`computeapi openapi VERSION` prints the OpenAPI document of a version. The [history](../../reference/history.md) lists
what each version changed.

Every request may also be answered with {shared}. The description of a field applies to all
versions if no version is given.

```{{toctree}}
:maxdepth: 1

{names}
```
"""
FORMATS = ('uuid', 'ipv4', 'ipv6', 'cidr', 'uri', 'date-time', 'base64')
"""Those that say by their names what they are."""
PARTS = {'query': 'Parameters', 'body': 'Request', 'response': 'Response'}


class Step(NamedTuple):
    """What is said of a field from a version to another one."""

    first: APIVersionRequest
    last: APIVersionRequest
    what: str


def pages() -> Iterator[tuple[str, str]]:
    resources: dict[str, list[type[Controller]]] = {}
    for controller in api.CONTROLLERS:
        if controller.operations:
            resources.setdefault(resource_of(controller), []).append(controller)
    for name, controllers in resources.items():
        yield f'operations/{_file(name)}.md', _page(name, controllers)
    names = '\n'.join(map(_file, resources))
    shared = ', '.join(map(str, SHARED_ERRORS))
    yield 'operations/index.md', INDEX.format(names=names, shared=shared)


def _file(name: str) -> str:
    return name.lower().replace(' ', '-')


def _page(name: str, controllers: Iterable[type[Controller]]) -> str:
    text = next((first_line(each.__doc__) for each in controllers if each.__doc__), '')
    parts = [f'# {name}\n', f'{plain(text)}\n']
    found: dict[str, list[Operation]] = {}
    for controller in controllers:
        for each in controller.operations:
            found.setdefault(str(each), []).append(each)
    for title, definitions in found.items():
        parts += [f'## {plain(title)}\n', *_operation(definitions)]
    return '\n'.join(parts)


def _operation(definitions: list[Operation]) -> Iterator[str]:
    """One operation, which several methods may answer by turns."""
    summaries = dict.fromkeys(each.summary for each in definitions)
    yield '\n\n'.join(map(plain, summaries)) + '\n'
    yield '\n'.join(f'* {name}: {text}' for name, text in _facts(definitions)) + '\n'
    versions = _versions(definitions)
    shapes = [(version, shape(_at(definitions, version), version)) for version in versions]
    for part, title in PARTS.items():
        seen = [(version, _described(getattr(each, part))) for version, each in shapes]
        rows = [
            (code(path.lstrip('/')), step.what, _range(step.first, step.last))
            for path, steps in _steps(seen, definitions).items()
            for step in steps
        ]
        if rows:
            yield f'{title}:\n'
            yield table(('field', 'what', 'versions'), rows)


def _facts(definitions: list[Operation]) -> Iterator[tuple[str, str]]:
    first, last = min(each.min for each in definitions), max(each.max for each in definitions)
    yield 'versions', _range(first, last) or f'all, {MIN} to {MAX}'
    rules = dict.fromkeys(str(each) for operation in definitions for each in operation.policies)
    yield 'rules', ', '.join(map(code, rules)) or 'none: any valid token is accepted, or no token is needed'
    statuses = dict.fromkeys(
        str(status)
        for each in definitions
        for status in [*_values(each.status), *each.successes]
        if status is not ABSENT
    )
    yield 'statuses', ', '.join(statuses)
    errors = sorted({status for each in definitions for status in each.error_statuses} - set(SHARED_ERRORS))
    if errors:
        yield 'errors', ', '.join(map(str, errors))


def _values(tree: Any) -> list[Any]:
    return [value for _, value in tree.steps] if hasattr(tree, 'steps') else [tree]


def _versions(definitions: list[Operation]) -> list[APIVersionRequest]:
    """Those at which anything changes while it is there."""
    return [
        version
        for version in COMPUTE.versions
        if _at(definitions, version) and any(version in each.changes for each in definitions)
    ]


def _at(definitions: list[Operation], version: APIVersionRequest) -> Any:
    return next((each for each in definitions if version.matches(each.min, each.max)), None)


def _described(schema: Any) -> dict[str, str]:
    """What is said of each field of a schema, by path."""
    if not schema:
        return {}
    if 'properties' not in schema and all(isinstance(each, dict) for each in schema.values()):
        schema = {'type': 'object', 'properties': schema}
    found = fields(schema)
    required = {
        f'{path}/{name}' for path, facts in found.items() for _, names in facts for name in names if len(facts) == 1
    }
    return {
        path: ', '.join(filter(None, [*_kinds(facts), 'required' * (path in required)]))
        for path, facts in found.items()
        if path
    }


def _kinds(facts: list[Any]) -> Iterable[str]:
    return dict.fromkeys(kind(schema) for schema, _ in facts)


def _steps(seen: list[tuple[APIVersionRequest, dict[str, str]]], definitions: list[Operation]) -> dict[str, list[Step]]:
    """From when to when what is said of each field."""
    end = max(each.max for each in definitions)
    ends = [version.previous for version, _ in seen[1:]] + [end]
    paths = dict.fromkeys(path for _, described in reversed(seen) for path in described)
    steps: dict[str, list[Step]] = {path: [] for path in paths}
    for (version, described), last in zip(seen, ends, strict=True):
        for path, what in described.items():
            known = steps[path]
            if known and known[-1].what == what and known[-1].last.next == version:
                known[-1] = known[-1]._replace(last=last)
            else:
                known.append(Step(version, last, what))
    return steps


def _range(first: APIVersionRequest, last: APIVersionRequest) -> str:
    if first == MIN:
        return '' if last == MAX else f'until {last}'
    if last == MAX:
        return f'from {first}'
    return f'{first}' if first == last else f'{first} to {last}'


def kind(schema: dict[str, Any]) -> str:
    """string, 1 to 255 characters"""
    types = schema.get('type', [])
    types = [types] if isinstance(types, str) else list(types)
    choices = schema.get('enum', [schema['const']] if 'const' in schema else [])
    if True in choices:
        # The many words for true and false.
        return 'boolean'
    if schema.get('maxLength') == 0:
        return 'empty string'
    words = [' or '.join(types)] if types and not choices else []
    words += [', '.join(code(str(each)) for each in choices)] if choices else []
    words += [schema['format']] if schema.get('format') in FORMATS else []
    words += [_bounds(schema, 'minLength', 'maxLength', ' characters')]
    words += [_bounds(schema, 'minItems', 'maxItems', ' items')]
    words += [_bounds(schema, 'minimum', 'maximum', '')]
    return ' '.join(filter(None, words))


def _bounds(schema: dict[str, Any], least: str, most: str, unit: str) -> str:
    low, high = schema.get(least), schema.get(most)
    if low is None and high is None:
        return ''
    if high is None:
        return f'at least {low}{unit.removesuffix("s" * (low == 1))}' if low else ''
    return f'up to {high}{unit}' if low is None or (low == 0 and unit) else f'{low} to {high}{unit}'


def first_line(text: str | None) -> str:
    return (text or '').strip().partition('\n')[0]
