"""The operations of the control API as data, so that `computeapi control` need not load the service:

python -m computeapi.kit.control.table > computeapi/kit/control.json
"""

from typing import Any

import orjson

from computeapi.kit.control import CONTROLLERS
from computeapi.kit.control.service import CONTROL
from computeapi.versions import ABSENT, resolve
from computeapi.web.contract import Operation

SHOWN = ('type', 'description')
"""What the command needs of the schema of a parameter."""


def table() -> list[dict[str, Any]]:
    """All operations of the control API."""
    return [_described(operation) for kind in CONTROLLERS for operation in kind.operations]


def _described(operation: Operation) -> dict[str, Any]:
    found = {
        'name': operation.handler.__name__.replace('_', '-'),
        'method': operation.method,
        'path': operation.path,
        'summary': operation.summary,
    }
    parts = {'query': operation.query, 'body': operation.body}
    return found | {name: _parameters(tree) for name, tree in parts.items() if tree is not ABSENT}


def _parameters(tree: Any) -> dict[str, Any]:
    schema = resolve(tree, CONTROL.max)
    required = schema.get('required', ())
    return {
        name: {key: value[key] for key in SHOWN if key in value} | {'required': name in required}
        for name, value in schema.get('properties', {}).items()
    }


def text() -> str:
    return orjson.dumps(table(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


if __name__ == '__main__':
    print(text(), end='')
