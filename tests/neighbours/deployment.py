"""The commands and files of docs/how-to/deploying.md, and folders that stand for machines on which they are applied."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.documents import ROOT

PAGE = 'docs/how-to/deploying.md'
DOES_NOTHING = ('apt-get', 'useradd', 'chown')
SYSTEMCTL = """#!{python}
import sys
sys.path.insert(0, {root!r})
from tests.neighbours.systemctl import main
main(*sys.argv[1:])
"""
FILE = re.compile(r'# (/\S+)\n')
PATH = re.compile(r'(?<![\w/.-])/(?=(opt|etc|var)/)')


class Folder:
    """A machine whose files are in a folder; several machines share a folder for /opt.

    names: replacements for names on the page.
    """

    def __init__(self, folder, opt, names, environment):
        self.folder, self.names = folder, names
        for part in ('bin', 'etc', 'var/log'):
            (folder / part).mkdir(parents=True)
        opt.mkdir(exist_ok=True)
        (folder / 'opt').symlink_to(opt)
        self.shims()
        installed = Path(sys.executable).parent
        outside = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
        self.environment = outside | {
            'HOME': str(folder),
            'PATH': f'{folder}/bin:{installed}:{os.environ["PATH"]}',
            'MACHINE': str(folder),
            'OS_COMPUTEAPI_CONFIG_FILES': f'{folder}/etc/computeapi/computeapi.conf',
            'PIP_NO_INDEX': '1',
            'PIP_NO_BUILD_ISOLATION': '0',
            'PYTHONDONTWRITEBYTECODE': '',
            **environment,
        }

    def shims(self):
        for name in DOES_NOTHING:
            self.program(name, '#!/bin/sh\n')
        self.program('systemctl', SYSTEMCTL.format(python=sys.executable, root=str(ROOT)))

    def program(self, name, text):
        path = self.folder / 'bin' / name
        path.write_text(text)
        path.chmod(0o755)

    def text(self, block):
        """The block with the names replaced."""
        for name, here in self.names.items():
            block = block.replace(name, here)
        return PATH.sub(f'{self.folder}/', block)

    def follow(self, block, cwd=None):
        """Write the file that a block contains, or run its commands; returns their output."""
        found = FILE.match(block)
        if found:
            path = Path(self.text(found[1]))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text(block))
            return ''
        return self.run(block, cwd)

    def run(self, commands, cwd=None):
        done = subprocess.run(
            ['bash', '-exc', self.text(commands)],
            cwd=cwd or self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f'{done.stdout}\n{done.stderr}'
        return done.stdout

    def install(self, block, clone):
        """Run the commands of an installation; the tests' own packages stand in for downloads."""
        for line in block.splitlines():
            self.run(line, clone)
            if '-m venv' in line:
                self.lend(Path(self.text(line.split()[-1])))

    def lend(self, venv):
        [packages] = venv.glob('lib/python*/site-packages')
        # The setuptools of a new Python 3.11 environment is too old to build from pyproject.toml without downloads.
        for each in packages.glob('setuptools*'):
            shutil.rmtree(each)
        lent = [path for path in sys.path if path.endswith('site-packages')]
        (packages / 'lent.pth').write_text('\n'.join(lent))
        uwsgi = venv / 'bin/uwsgi'
        uwsgi.write_text(f'#!{venv}/bin/python\nimport pyuwsgi\npyuwsgi.run()\n')
        uwsgi.chmod(0o755)

    def stop(self, *units):
        self.run(f'systemctl stop {" ".join(units)}')
