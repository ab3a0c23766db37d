"""`computeapi control`: the operations of the control API for a shell, derived from their table.

`take-snapshot NAME` is the operation with the handler `take_snapshot`. Path parameters and required properties of the
body are arguments, the others are options. Objects and lists are written as JSON, or as @FILE. The table is read from a
file that control/table.py writes, because loading the operations takes as long as starting a cloud.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from computeapi.errors import Error, Invalid
from computeapi.kit.variables import LINES, TOKEN_HEADER, TOKEN_VARIABLE, URL_VARIABLE

if TYPE_CHECKING:
    import requests

TABLE = Path(__file__).with_name('control.json')
PARTS = ('query', 'body')
JSON = 'application/json'
"""The media type that is printed with indentation."""
TIMEOUT_SECONDS = 120
GIVEN = 'given '
"""The prefix for an operation's own arguments, which may have the same name as one of the command's."""


class ControlRefused(Error):
    """The control API answered with an error, or not at all."""


def run(arguments: Sequence[str]) -> None:
    """Call one operation and print its response, as JSON; ControlRefused, Invalid, SystemExit for wrong arguments."""
    options = _parser().parse_args(arguments)
    operation = options.operation
    given = {name.removeprefix(GIVEN): value for name, value in vars(options).items() if name.startswith(GIVEN)}
    if not options.url or not options.token:
        raise Invalid(f'--url and --token, or {URL_VARIABLE} and {TOKEN_VARIABLE}, are required.')
    # Loading it takes longer than printing the help.
    import requests

    path = re.sub(r'{(\w+)}', lambda name: quote(given[name[1]], safe=''), operation['path'])
    parts = {
        part: {name: given[name] for name in operation[part] if given[name] is not None}
        for part in PARTS
        if part in operation
    }
    try:
        answer = requests.request(
            operation['method'],
            options.url.rstrip('/') + path,
            params=parts.get('query'),
            json=parts.get('body'),
            headers={TOKEN_HEADER: options.token},
            timeout=TIMEOUT_SECONDS,
            stream=True,
        )
    except requests.ConnectionError:
        raise ControlRefused(f'Nothing answers at {options.url}.') from None
    with answer:
        if not answer.ok:
            raise ControlRefused(_message(answer))
        _print(answer)


def _print(answer: requests.Response) -> None:
    """Print a response; lines of JSON as they arrive."""
    kind = answer.headers.get('Content-Type', '').partition(';')[0]
    if kind == LINES:
        with suppress(KeyboardInterrupt):
            for line in filter(None, answer.iter_lines()):
                print(line.decode(), flush=True)
    elif kind == JSON and answer.content:
        print(orjson.dumps(answer.json(), option=orjson.OPT_INDENT_2).decode())
    else:
        print(answer.text, end='')


def _message(answer: requests.Response) -> str:
    try:
        [fault] = answer.json().values()
        return f'{answer.status_code}: {fault["message"]}'
    except (ValueError, AttributeError, KeyError, TypeError):
        return f'{answer.status_code} {answer.reason}'


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='computeapi control', description='Control a cloud of `run`, or of `serve` with --control-token.'
    )
    parser.add_argument(
        '--url', default=os.environ.get(URL_VARIABLE), help=f'the URL of the control API ({URL_VARIABLE})'
    )
    parser.add_argument('--token', default=os.environ.get(TOKEN_VARIABLE), help=f'its token ({TOKEN_VARIABLE})')
    commands = parser.add_subparsers(metavar='COMMAND', required=True)
    for operation in operations():
        # The help also shows the request, for users of the HTTP API.
        text = f'{operation["summary"]} ({operation["method"]} {operation["path"]})'
        command = commands.add_parser(operation['name'], help=text, description=text)
        command.set_defaults(operation=operation)
        for name in re.findall(r'{(\w+)}', operation['path']):
            command.add_argument(GIVEN + name, metavar=name.upper())
        for part in PARTS:
            for name, schema in operation.get(part, {}).items():
                _add(command, name, schema)
    return parser


def operations() -> list[dict[str, Any]]:
    """The operations of the control API; see control/table.py."""
    found: list[dict[str, Any]] = orjson.loads(TABLE.read_bytes())
    return found


def _add(command: argparse.ArgumentParser, name: str, schema: dict[str, Any]) -> None:
    metavar, read, text = name.upper(), _reader(schema), schema.get('description')
    if schema['required']:
        command.add_argument(GIVEN + name, metavar=metavar, type=read, help=text)
    else:
        command.add_argument('--' + name.replace('_', '-'), dest=GIVEN + name, metavar=metavar, type=read, help=text)


def _reader(schema: dict[str, Any]) -> Callable[[str], Any]:
    """The function that converts a shell argument to JSON."""
    kind = schema.get('type', 'object')
    return _document_or_text if isinstance(kind, list) else READERS.get(kind, _document)


def _document_or_text(text: str) -> Any:
    try:
        return _document(text)
    except argparse.ArgumentTypeError:
        return text


def _document(text: str) -> Any:
    """Parse JSON, or a file of it. A YAML file is sent as text."""
    if text.endswith(('.yaml', '.yml')) and text.startswith('@'):
        return Path(text[1:]).read_text()
    try:
        return orjson.loads(Path(text[1:]).read_bytes() if text.startswith('@') else text)
    except orjson.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f'{text} is neither JSON nor @FILE with JSON in it: {error}') from None


def _truth(text: str) -> bool:
    if text not in ('true', 'false'):
        raise argparse.ArgumentTypeError(f'{text} is neither true nor false')
    return text == 'true'


READERS: dict[str, Callable[[str], Any]] = {
    'string': str,
    'integer': int,
    'number': float,
    'boolean': _truth,
}
"""By type in the schema; other types are JSON."""
