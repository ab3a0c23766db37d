"""Every option, by group."""

from collections.abc import Iterator
from typing import Any

from computeapi import options, reports
from generators.markdown import code, plain, table

HEAD = """# Options

Every option, with its default and description. `computeapi config` prints them as a configuration file. The file is
given by `--config-file` or `OS_COMPUTEAPI_CONFIG_FILES`, and is `/etc/computeapi/computeapi.conf` by default.
Environment variables `OS_<GROUP>__<OPTION>`, such as `OS_DATABASE__CONNECTION=...`, take precedence over it.
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
