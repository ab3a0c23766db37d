"""A shell in a folder of its own, which runs the commands of a page one after the other."""

import os
import re
import subprocess
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path

from tests.deployment.conftest import free_port
from tests.documents import ROOT

SERVICE = re.compile(r'(?:^|&& )(computeapi serve\b.*)$')
MARK = '-- next --'
TIME = r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}'
READY = 'Settings for clients'
SOURCED = """failed=
trap 'failed="$BASH_COMMAND"' ERR
. {script} </dev/null
trap - ERR
printf '\\n%s%s\\n' '{mark}' "$failed"
"""


class Shell:
    """bash, and the services started in it. The tests' own packages stand in for downloads."""

    def __init__(self, folder: Path, installs: bool, environment: dict[str, str], command: tuple[str, ...] = ('bash',)):
        """installs: whether its first commands install the package.  command: the interpreter of the commands."""
        self.folder, self.port, self.services, self.commands = folder, str(free_port()), 0, 0
        programs = folder / 'bin'
        programs.mkdir()
        found, plugin = [path for path in sys.path if path.endswith('site-packages')], ''
        if not installs:
            # If the package is installed, pytest finds the plugin by itself; otherwise it is only importable.
            (programs / 'computeapi').write_text(f'#!/bin/sh\nexec {sys.executable} -m computeapi "$@"\n')
            (programs / 'computeapi').chmod(0o755)
            found.insert(0, str(ROOT))
            plugin = '' if entry_points(group='pytest11', name='computeapi') else '-p computeapi.pytest_plugin'
        outside = {name: value for name, value in os.environ.items() if not name.startswith('OS_')}
        self.environment = outside | {
            'HOME': str(folder),
            'PATH': f'{programs}:{Path(sys.executable).parent}:{os.environ["PATH"]}',
            'PYTHONPATH': os.pathsep.join(found),
            'PIP_NO_INDEX': '1',
            'PIP_NO_BUILD_ISOLATION': '0',
            'PYTEST_ADDOPTS': f'{plugin} -p no:randomly -p no:cacheprovider -W ignore',
            'no_proxy': '*',
            **environment,
        }
        self.errors = folder / 'errors'
        with self.errors.open('w') as errors:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def run(self, text: str) -> str:
        """Run commands, all of which must succeed; returns their output. If the last one starts a service, the service
        runs until the shell is closed."""
        *before, last = self.here(text).rstrip().splitlines()
        service = SERVICE.search(last)
        if service is None:
            return self.give('\n'.join([*before, last]))
        self.serve(service[1], '\n'.join([*before, last[: service.start()]]))
        return ''

    def serve(self, command: str, before: str = '') -> None:
        self.services += 1
        log = self.folder / f'service-{self.services}'
        log.touch()
        self.give(f'{before}\n{command} --port {self.port} >{log} 2>&1 & services+=($!)')
        while READY not in (said := log.read_text()):
            assert self.given('jobs -r'), said
            time.sleep(0.05)

    def give(self, text: str) -> str:
        output, failed = self.listen(text)
        assert not failed, f'{failed}\n{output}\n{self.errors.read_text()}'
        return output

    def given(self, text: str) -> str:
        """The output of a command, whatever its exit status."""
        return self.listen(self.here(text))[0]

    def listen(self, text: str) -> tuple[str, str]:
        """The output of commands, and the last one that failed."""
        self.commands += 1
        script = self.folder / f'.commands-{self.commands}'
        script.write_text(text + '\n')
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(SOURCED.format(script=script, mark=MARK))
        self.process.stdin.flush()
        lines: list[str] = []
        for line in self.process.stdout:
            if line.startswith(MARK):
                return ''.join(lines).strip(), line.removeprefix(MARK).strip()
            lines.append(line)
        raise AssertionError(f'{text}\n{"".join(lines)}\n{self.errors.read_text()}')

    def here(self, text: str) -> str:
        """The text of the page, with the port that is free here."""
        return text.replace('8774', self.port)

    def try_session(self, text: str) -> None:
        """Run the commands after `$` and compare their output with the text below them, in which `...` matches
        anything."""
        for command, expected in re.findall(r'(?m)^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)', text):
            printed = self.given(command)
            pattern = pattern_of(self.here(expected))
            assert re.fullmatch(pattern, printed, re.DOTALL), (command, printed, self.errors.read_text()[-3000:])

    def close(self) -> None:
        """Stop its services, and the shell."""
        self.give('[ -z "$services" ] || { kill "${services[@]}"; wait "${services[@]}"; }')
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def pattern_of(text: str) -> str:
    return TIME.join(map(re.escape, re.split(TIME, text.strip()))).replace(r'\.\.\.', '.*')
