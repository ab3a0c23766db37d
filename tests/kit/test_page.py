"""docs/how-to/testing-languages.md quotes the examples exactly, and the Python example passes; tests/tools runs those
in other languages. The commands in docs/how-to/testing.md exist."""

import re
import shutil

import pytest

from computeapi.kit import shell
from tests.documents import ROOT
from tests.kit.test_plugin import run

DOCS = ROOT / 'docs'
PAGE = 'docs/how-to/testing.md'
LANGUAGES = (DOCS / 'how-to/testing-languages.md').read_text()
QUOTED = re.findall(r'(?s)\]\(\.\./(examples/\S+)\)\n\n(?:<!--.*?-->\n)?```\w+\n(.*?)^```$', LANGUAGES, re.MULTILINE)
"""Files, and their quotes on the page."""


@pytest.mark.parametrize('line', re.findall(r'computeapi control ([a-z][a-z-]*)', (ROOT / PAGE).read_text()))
def test_the_commands_are_there(line):
    assert line in {operation['name'] for operation in shell.operations()}


def test_the_languages_are_shown_as_their_examples_are():
    assert len(QUOTED) == 8
    for name, excerpt in QUOTED:
        text = (DOCS / name).read_text()
        for part in re.split(r'(?m)^[ \t]*\.\.\.\n', excerpt):
            assert part.strip('\n') in text, name


def test_the_example_in_python(tmp_path):
    folder = shutil.copytree(
        DOCS / 'examples/pytest', tmp_path / 'pytest', ignore=shutil.ignore_patterns('__pycache__')
    )
    output = run(folder, '-W', 'ignore')
    assert '3 passed' in output, output
