"""Every code block in the documentation is run here, in order, page by page, unless a comment before it says why not.

A block that is not run here has a comment directly before it: `not run: REASON`, or `run by tests/...`, in a file that
names the page. Blocks are checked by language: `sh` must succeed; `console` must print the given output; `python` must
pass if it contains a test, and otherwise succeed; the options in `ini` must exist. A block whose first line is a
comment with the name of a file is that file.
"""

import re
import shutil
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from keystoneauth1 import loading

from computeapi import options
from computeapi.testing import Cloud
from tests.docs.shell import Shell
from tests.documents import ROOT, Block, blocks
from tests.kit.test_plugin import run as run_pytest

PAGES = [
    'README.md',
    'CONTRIBUTING.md',
    'benchmarks/README.md',
    *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob('docs/[!g]*/*.md')),
    'docs/index.md',
]
CLONED = ('computeapi', 'etc', 'pyproject.toml', 'README.md', 'LICENSE')
FILE = re.compile(r'# ((?:[\w.-]+/)*[\w-]+\.\w+)\n')
SYSTEMD = 'Service'


READERS_OWN = """
def make_my_server(environ):
    import openstack

    facts = {name: environ[f'OS_{name.upper()}'] for name in ('auth_url', 'username', 'password', 'project_name')}
    compute = openstack.connect(**facts, user_domain_name='Default', project_domain_name='Default').compute
    image = compute.find_image('cirros-0.6.3-x86_64-disk')
    body = {'server': {'name': 'web', 'flavorRef': '1', 'imageRef': image.id}}
    while compute.post('/servers', json=body, microversion='2.1').status_code == 503:
        pass


def evacuate_with_my_tool(environ):
    pass


"""
"""Functions that pages refer to, but do not define."""


class Setting(NamedTuple):
    """The environment for a page. cloned: in a clone of the project.  served: with a running `computeapi serve`.
    inside: the command that runs the shell.  cloud: Python code finds a cloud under the names of the fixture."""

    cloned: bool = False
    served: bool = False
    inside: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    cloud: bool = False


SETTINGS = {
    'README.md': Setting(cloned=True),
    'docs/tutorial/ten-minutes.md': Setting(cloned=True),
    'docs/how-to/testing.md': Setting(inside=('computeapi', 'run', '--'), cloud=True),
    'docs/how-to/operating.md': Setting(served=True),
    'docs/how-to/upgrading.md': Setting(environment={'OS_API__AUTH_STRATEGY': 'none'}),
}


def is_tried(block: Block) -> bool:
    return not block.remark


@pytest.mark.parametrize('page', PAGES)
def test_what_is_not_tried_says_why(page):
    for block in blocks(page):
        what, _, why = block.remark.partition(': ')
        if what.startswith('run by '):
            test = ROOT / what.removeprefix('run by ')
            assert page in test.read_text(), f'{test} knows nothing of {page}'
        elif what:
            assert what == 'not run' and why, block.remark
        else:
            assert block.language in TRIED, (page, block)


@pytest.mark.parametrize('page', [page for page in PAGES if any(map(is_tried, blocks(page)))])
def test_what_stands_there_is_so(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trial = Trial(tmp_path, SETTINGS.get(page, Setting()))
    try:
        for block in filter(is_tried, blocks(page)):
            trial.of(block)
        trial.run_tests()
    finally:
        trial.close()


class Trial:
    """A folder in which the blocks of a page are run, with a shell and a cloud if necessary."""

    def __init__(self, folder: Path, setting: Setting):
        self.folder, self.setting = folder, setting
        self.names: dict[str, Any] = {}
        self.shell_: Shell | None = None
        self.cloud: Cloud | None = None
        self.tests: list[str] = []
        if setting.cloned:
            for name in CLONED:
                (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, folder / name)

    @property
    def shell(self) -> Shell:
        if self.shell_ is None:
            installed = self.setting.cloned
            self.shell_ = Shell(self.folder, installed, self.setting.environment, (*self.setting.inside, 'bash'))
            if self.setting.served:
                self.shell_.serve('computeapi serve')
        return self.shell_

    def of(self, block: Block) -> None:
        if file := FILE.match(block.text):
            path = self.folder / file[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        elif block.language != 'text':
            TRIED[block.language](self, block.text)

    def sh(self, text: str) -> None:
        self.shell.run(text)

    def console(self, text: str) -> None:
        self.shell.try_session(text)

    def python(self, text: str) -> None:
        if 'def test_' in text:
            self.tests.append(text)
            return
        if self.setting.cloud and self.cloud is None:
            self.cloud = Cloud()
            self.cloud.start()
            exec(READERS_OWN, self.names)
        if self.cloud is not None:
            self.cloud.reset()
            self.names |= {'cloud': self.cloud, 'openstack_cloud': self.cloud}
        with warnings.catch_warnings():
            # Deprecation warnings of openstacksdk are for readers of the page.
            warnings.simplefilter('ignore')
            if self.cloud is not None:
                self.names['make_my_server'](self.cloud.environ)
            exec(compile(text, '<page>', 'exec'), self.names)

    def run_tests(self) -> None:
        """Run all independent tests of the page at once, because pytest takes a while to start."""
        if self.tests:
            folder = self.folder / 'gathered'
            folder.mkdir()
            for number, text in enumerate(self.tests):
                (folder / f'test_{number}.py').write_text(READERS_OWN + text)
            output = run_pytest(folder, '-W', 'ignore')
            assert re.search(r'= \d+ passed in ', output), output

    def ini(self, text: str) -> None:
        known: dict[str, set[str]] = {}
        for name, listed in options.list_opts():
            known[name] = {each for option in listed for each in (option.name, option.dest)}
            if 'auth_type' in known[name]:
                known[name].update(option.dest for option in loading.get_plugin_loader('password').get_options())
        group = ''
        for line in filter(None, text.splitlines()):
            if line.startswith('['):
                group = line.strip('[]')
            elif not line.startswith('#') and group != SYSTEMD:
                assert line.partition(' = ')[0] in known[group], (group, line)

    def close(self) -> None:
        if self.shell_ is not None:
            self.shell_.close()
        if self.cloud is not None:
            self.cloud.stop()


TRIED = {'sh': Trial.sh, 'console': Trial.console, 'python': Trial.python, 'ini': Trial.ini, 'yaml': None, 'text': None}
"""How blocks are tried, by language: text is not code, and YAML is a file."""


@pytest.mark.parametrize('page', PAGES)
def test_links_lead_somewhere(page):
    """Links to other files; Sphinx only checks links between its own pages."""
    for link in re.findall(r'\]\(([^)#\s]+)[^)]*\)', (ROOT / page).read_text()):
        if not link.startswith(('http:', 'https:')) and '/generated/' not in f'/{link}':
            assert (ROOT / page).parent.joinpath(link).exists(), link
