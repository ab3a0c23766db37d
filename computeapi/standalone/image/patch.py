"""Changes to an image, as a list of operations: application/openstack-images-v2.1-json-patch, or v2.0."""

from typing import Any

from computeapi import errors
from computeapi.standalone.image.documents import WRITABLE, check_names
from computeapi.standalone.schema import Schema, having

# In this media type the operation is a key whose value is the path: {"replace": "/name", "value": "new"}.
OLD_TYPE = 'application/openstack-images-v2.0-json-patch'
KINDS = ('add', 'replace', 'remove')
OPERATION = {
    **having({'op': {'type': 'string', 'enum': KINDS}, 'path': {'type': 'string', 'pattern': '^/.'}}, 'op', 'path'),
    'if': {'properties': {'op': {'const': 'remove'}}},
    'else': {'required': ['value']},
}
OPERATIONS = Schema({'type': 'array', 'maxItems': 1000, 'items': OPERATION})


def operations_of(document: Any, content_type: str) -> list[dict[str, Any]]:
    """The operations in a request body; raises Invalid if it is not a list of them."""
    if content_type == OLD_TYPE and isinstance(document, list):
        document = [_renamed(operation) for operation in document]
    OPERATIONS.check(document)
    operations: list[dict[str, Any]] = document
    return operations


def _renamed(operation: Any) -> Any:
    """An operation of the old media type, converted to the current one."""
    kinds = [kind for kind in KINDS if kind in operation] if isinstance(operation, dict) else []
    if len(kinds) != 1:
        return operation
    rest = {name: value for name, value in operation.items() if name not in kinds}
    return {**rest, 'op': kinds[0], 'path': operation[kinds[0]]}


def patched(document: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """The document after the operations; raises Forbidden, Conflict or Invalid if one of them is not possible."""
    document = {**document, 'tags': list(document['tags'])}
    for operation in operations:
        name, *rest = (step.replace('~1', '/').replace('~0', '~') for step in operation['path'][1:].split('/'))
        check_names([name])
        if name == 'id':
            raise errors.Forbidden(f"Attribute '{name}' is read-only.")
        if name == 'tags' and len(rest) == 1:
            _change_tag(document['tags'], rest[0], operation)
        elif rest:
            raise errors.Invalid(f'path: {operation["path"]} is not part of an image.')
        else:
            _change(document, name, operation)
    return document


def _change(document: dict[str, Any], name: str, operation: dict[str, Any]) -> None:
    if operation['op'] != 'add' and name not in document:
        raise errors.Conflict(f'Property {name} does not exist.')
    if operation['op'] != 'remove':
        document[name] = operation['value']
    elif name in WRITABLE:
        raise errors.Forbidden(f'Property {name} may not be removed.')
    else:
        del document[name]


def _change_tag(tags: list[Any], place: str, operation: dict[str, Any]) -> None:
    """Changes a single tag; clients that compare two lists of tags send such operations."""
    if not isinstance(tags, list):
        raise errors.Invalid('tags must be a list.')
    index = _index(tags, place, operation)
    if operation['op'] == 'add':
        tags.insert(index, operation['value'])
    elif operation['op'] == 'replace':
        tags[index] = operation['value']
    else:
        del tags[index]


def _index(tags: list[Any], place: str, operation: dict[str, Any]) -> int:
    last = len(tags) if operation['op'] == 'add' else len(tags) - 1
    if place == '-' and operation['op'] == 'add':
        return last
    index = int(place) if place.isascii() and place.isdigit() and len(place) < 5 else None
    if index is None or index > last:
        raise errors.Invalid(f'path: there is no tag {operation["path"]}.')
    return index
