"""docs/examples, run with the tools that tests/tools/install installs, by the commands on the page.

Terraform's is not run, because its provider is in no package registry; it is only checked that Terraform can read it.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.documents import ROOT, blocks

DOCS = ROOT / 'docs'
PAGE = 'docs/how-to/testing-languages.md'
DEBIAN = {'GO111MODULE': 'off', 'GOPATH': '/usr/share/gocode', 'CGO_ENABLED': '0'}
"""The location of Debian's gophercloud for Go, instead of what `go mod tidy` would download."""


def command(section):
    """The command on the page that runs it in a cloud of its own."""
    [commands] = [block.text for block in blocks(PAGE) if block.language == 'sh' and block.section.startswith(section)]
    [line] = re.findall('(?m)^computeapi run -- .*', commands)
    return line


@pytest.fixture
def run(tmp_path):
    """run('go', 'computeapi run -- go test'): the output in a copy of the example; the command must succeed."""
    programs = tmp_path / 'bin'
    programs.mkdir()
    # The package may only be importable, and not installed.
    (programs / 'computeapi').write_text(f'#!/bin/sh\nexec {sys.executable} -m computeapi "$@"\n')
    (programs / 'computeapi').chmod(0o755)
    environment = os.environ | DEBIAN | {'HOME': str(tmp_path), 'PATH': f'{programs}:{os.environ["PATH"]}'}

    def run(example, line):
        folder = shutil.copytree(DOCS / 'examples' / example, tmp_path / example)
        done = subprocess.run(line, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_go(run):
    output = run('go', command('Go'))
    assert re.findall('--- PASS: (Test[A-Za-z]+)', output) == ['TestAServerBoots', 'TestItRetriesWhileTheCloudIsBusy']


def test_ruby(run):
    assert '3 runs, 4 assertions, 0 failures, 0 errors' in run('ruby', command('Ruby'))


def test_ansible(run):
    output = run('ansible', command('Ansible'))
    assert re.search(r'localhost +: ok=15 .* failed=0 ', output), output


if shutil.which('terraform'):

    def test_terraform_reads_it(run):
        run('terraform', 'terraform fmt -check -recursive')
