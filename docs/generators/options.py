"""Every option, by group."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from computeapi import config, reports
from generators.markdown import code, plain, table

HEAD = """# Options

What `computeapi config` prints as a file: every option, with its default and what it does. A file is named by
`--config-file` or by `OS_COMPUTEAPI_CONFIG_FILES`, else it is `/etc/computeapi/computeapi.conf`; the environment goes
before it, as `OS_<GROUP>__<OPTION>`: `OS_DATABASE__CONNECTION=...`.
"""


def page() -> str:
    return '\n'.join([HEAD, *_groups()])


def _groups() -> Iterator[str]:
    listed = sorted(config.list_opts(), key=lambda each: _position(each[0]))
    for group, parts in groupby(listed, key=lambda each: each[0]):
        options = [option for _, part in parts for option in part]
        yield f'## [{group}]\n'
        yield table(('option', 'default', 'what'), map(_row, options))


def _position(group: str) -> int:
    """Where the group comes first; some have options of ours and of a library."""
    return [name for name, _ in config.list_opts()].index(group)


def _row(option: Any) -> tuple[str, str, str]:
    default = option.default if option.sample_default is None else option.sample_default
    return code(option.name), code(reports.shown(default)), plain(' '.join(reports.described(option)))
