"""Every option, by group."""

from collections.abc import Iterator
from typing import Any

from computeapi import options, reports
from generators.markdown import code, plain, table

HEAD = """# Options

Every option, with its default and a description; `computeapi config` prints the same as a config file. `--config-file`
or `OS_COMPUTEAPI_CONFIG_FILES` names the config file; the default is `/etc/computeapi/computeapi.conf`. Environment
variables override it, as `OS_<GROUP>__<OPTION>`: `OS_DATABASE__CONNECTION=...`.
"""


def page() -> str:
    return '\n'.join([HEAD, *_groups()])


def _groups() -> Iterator[str]:
    for group, listed in options.list_opts():
        yield f'## [{group}]\n'
        yield table(('option', 'default', 'what'), map(_row, listed))


def _row(option: Any) -> tuple[str, str, str]:
    default = option.default if option.sample_default is None else option.sample_default
    return code(option.name), code(reports.shown(default)), plain(' '.join(reports.described(option)))
