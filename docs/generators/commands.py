"""Every command, as `--help` tells of it."""

import argparse
import os
from collections.abc import Iterator
from typing import Any
from unittest import mock

from computeapi import cli
from computeapi.kit import shell
from generators.markdown import code, plain, table

HEAD = """# Commands

The output of `--help` for each command.
"""
CONTROL = """Commands for a cloud of `run` or `serve`, each with the request that it sends to the control API:
"""


def page() -> str:
    # Usages are broken into lines for the terminal that there is.
    with mock.patch.dict(os.environ, {'COLUMNS': '88', 'NO_COLOR': '1'}):
        return '\n'.join([HEAD, *_commands()])


def _commands() -> Iterator[str]:
    for name in _subcommands(cli.parser([])):
        command = _subcommands(cli.parser([name]))[name]
        yield f'## computeapi {name}\n'
        if name == 'control':
            yield CONTROL
            yield table(('command', 'request', 'what'), map(_request, shell.operations()))
            continue
        yield _help(command)
        for inner, each in _subcommands(command).items():
            yield f'### computeapi {name} {inner}\n'
            yield _help(each)


def _request(operation: dict[str, Any]) -> tuple[str, str, str]:
    request = f'{operation["method"]} {operation["path"]}'
    return code(operation['name']), code(request), plain(operation['summary'])


def _help(parser: argparse.ArgumentParser) -> str:
    return f'```text\n{parser.format_help()}```\n'


def _subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found[0]) if found else {}
