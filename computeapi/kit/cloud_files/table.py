"""Generates docs/reference/cloud-file.md, the documentation of cloud files:

python -m computeapi.kit.cloud_files.table > docs/reference/cloud-file.md
"""

from collections.abc import Iterator
from typing import Any

from computeapi.kit.cloud_files.sections import DOCUMENT, SECTIONS

HEAD = """# The cloud file

A cloud file describes the contents of a cloud, in YAML or JSON. `--load`, `cloud.load(...)` and `computeapi control
load` read it, and `computeapi control export` writes it. Only `version` is required. Resources refer to each other by
name or by ID (*one of ...* in the tables). An ID that is not given is derived from the name and the `seed`, and is the
same each time. Times are written as `2026-01-31T10:00:00Z`.

In the tables, required properties are in bold, and default values in parentheses.

This page is generated from `computeapi/kit/cloud_files/schema.py`, by `python -m computeapi.kit.cloud_files.table`.
"""
PLURALS = {'string': 'string', 'integer': 'integer', 'number': 'number', 'boolean': 'boolean', 'object': 'mapping'}


def markdown() -> Iterator[str]:
    """The lines of the page."""
    yield HEAD
    yield from _table({name: each for name, each in DOCUMENT['properties'].items() if name not in SECTIONS})
    for name, section in SECTIONS.items():
        yield from ('', f'## {name}', '', section.text, '')
        yield from _entry(section.schema)


def _entry(schema: dict[str, Any], path: str = '') -> Iterator[str]:
    """The tables of an object and of the objects in it."""
    required = schema.get('required', ())
    yield from _table(
        {(f'**{name}**' if name in required else name): each for name, each in schema['properties'].items()}
    )
    for name, each in schema['properties'].items():
        inner = each.get('items', each)
        if 'properties' in inner:
            yield from ('', f'`{path}{name}`:', '')
            yield from _entry(inner, f'{path}{name}.')


def _table(properties: dict[str, Any]) -> Iterator[str]:
    yield from ('| property | type | description |', '| --- | --- | --- |')
    for name, schema in properties.items():
        yield f'| {name} | {_kind(schema)} | {_remark(schema)} |'


def _kind(schema: dict[str, Any]) -> str:
    if 'of' in schema:
        return f'one of {schema["of"]}'
    if 'const' in schema:
        return f'`{schema["const"]}`'
    if 'enum' in schema:
        return ', '.join(f'`{each}`' for each in schema['enum'] if each is not None)
    if schema.get('format') == 'date-time':
        return 'time'
    types = [schema['type']] if isinstance(schema['type'], str) else schema['type']
    if 'array' in types:
        inner = schema['items']
        return 'list' if 'properties' in inner else f'list: {_kind(inner)}'
    return ' or '.join(PLURALS[each] for each in types if each != 'null')


def _remark(schema: dict[str, Any]) -> str:
    """The description, and the default value in parentheses."""
    default = schema.get('default')
    usual = (
        f'`{str(default).lower() if isinstance(default, bool) else default}`'
        if default not in (None, '', [], {})
        else ''
    )
    return ' '.join(filter(None, [schema.get('description', ''), f'({usual})' if usual else '']))


if __name__ == '__main__':
    print('\n'.join(markdown()))
