"""Reports generated from the table of operations and from the options; no list here is maintained by hand."""

import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple, TextIO

import orjson
from oslo_config import cfg

from computeapi import api, options
from computeapi.versions import COMPUTE, HISTORY, MAX, APIVersionRequest
from computeapi.web import openapi as web_openapi
from computeapi.web.contract import Operation
from computeapi.web.history import changes

WIDTH = 100


def routes(out: TextIO) -> None:
    """Each operation: method, path and action, versions, policy (or the ones that the handler chooses from)."""
    rows = [
        (operation.method, path_of(operation), f'{operation.min}-{operation.max}', asked_of(operation))
        for operation in api.operations()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print('  '.join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip(), file=out)


def asked_of(operation: Operation) -> str:
    policies = [operation.policy] if operation.policy else operation.also
    return ', '.join(map(str, policies)) or '-'


def path_of(operation: Operation) -> str:
    """/flavors/{id}/action {addTenantAccess}"""
    return str(operation).partition(' ')[2]


class Layout(NamedTuple):
    """The format of the history: its beginning, a version, an operation, a detail of a change."""

    beginning: str
    version: str
    operation: str
    detail: str


PLAIN = Layout('', '{}  {}\n', '    {}: {}\n', '{}')
MARKDOWN = Layout(
    """# What each version of the API changed

Made by `computeapi history --markdown`. `+` is a field that came, `-` one that went, `~` one that takes or shows
something else. `tests/history` has a test of each version.
""",
    '\n## {}\n\n{}\n\n',
    '* `{}`: {}\n',
    '`{}`',
)


def history(out: TextIO, version: str | None = None, markdown: bool = False) -> None:
    """Print each version, or one, with the operations that it changed and how."""
    layout = MARKDOWN if markdown else PLAIN
    out.write(layout.beginning)
    operations = api.operations()
    for text in [str(known(version))] if version else HISTORY:
        out.write(layout.version.format(text, HISTORY[text]))
        for operation, what in changes(operations, APIVersionRequest.parse(text)):
            told = '; '.join(' '.join([name, *map(layout.detail.format, details)]) for name, details in what.items())
            out.write(layout.operation.format(operation, told))


def openapi(out: TextIO, version: str = 'latest') -> None:
    """The OpenAPI document of one version."""
    document = web_openapi.describe(api.CONTROLLERS, known(version))
    print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode(), file=out)


def known(text: str) -> APIVersionRequest:
    """The version that *text* names; ValueError for one that does not exist."""
    return MAX if text == 'latest' else COMPUTE.version(text)


# ------------------------------------------------------------------ samples


def policy(out: TextIO) -> None:
    """Print a policy.yaml with every rule as a comment, with its default and the operations that check it."""
    for rule in api.rules():
        for use in getattr(rule, 'operations', ()):
            print(f'# {use["method"]} {use["path"]}', file=out)
        comment(rule.description or '', out)
        print(f'#"{rule.name}": "{rule.check_str}"\n', file=out)


def config(out: TextIO) -> None:
    """Print a config file with every option as a comment, with its help and default."""
    for group, listed in options.list_opts():
        print(f'[{group}]\n', file=out)
        for option in listed:
            for paragraph in described(option):
                comment(paragraph, out)
            # An option whose default depends on the machine has a sample default.
            default = option.default if option.sample_default is None else option.sample_default
            print(f'#{option.name} = {shown(default)}'.rstrip() + '\n', file=out)


def comment(text: str, out: TextIO) -> None:
    for line in textwrap.wrap(text, WIDTH):
        print(f'# {line}', file=out)


def described(option: cfg.Opt) -> Iterator[str]:
    """The help of an option, then the values that it accepts."""
    yield option.help or ''
    for choice, text in (getattr(option.type, 'choices', None) or {}).items():
        yield f'- {choice}: {text}' if text else f'- {choice}'
    for word, limit in (('At least', 'min'), ('At most', 'max')):
        bound = getattr(option.type, limit, None)
        if bound is not None:
            yield f'{word} {bound}.'


def shown(value: Any) -> str:
    """A default as it is written in a config file."""
    if value is None:
        return ''
    if isinstance(value, bool):
        return str(value).lower()
    return ','.join(map(str, value)) if isinstance(value, list) else str(value)
