"""docs/how-to/testing.md: what it shows of Python and of shells is done as printed, as is the README's test.
docs/how-to/testing-languages.md: what it shows of the examples stands in them; tests/tools runs those in other
languages."""

import re
import shutil
import subprocess
import sys

import pytest

from computeapi.kit import shell
from tests.documents import ROOT, blocks
from tests.kit.test_plugin import run

DOCS = ROOT / 'docs'
PAGE = 'docs/how-to/testing.md'
LANGUAGES = (DOCS / 'how-to/testing-languages.md').read_text()
QUOTED = re.findall(r'(?s)\]\(\.\./(examples/\S+)\)\n\n```\w+\n(.*?)^```$', LANGUAGES, re.MULTILINE)
"""Files, and what stands of them on the page."""


def block(start, page=PAGE):
    """The example whose first line begins so."""
    [found] = [each.text for each in blocks(page) if each.text.startswith(start)]
    return found


def test_the_first_test_and_its_options(tmp_path):
    (tmp_path / 'test_web.py').write_text(block('# test_web.py'))
    (tmp_path / 'conftest.py').write_text(block('import pytest'))
    output = run(tmp_path, '-W', 'ignore')
    assert '1 passed' in output, output


def test_the_test_of_the_readme(tmp_path):
    (tmp_path / 'test_client.py').write_text(block('def test_my_client', 'README.md'))
    output = run(tmp_path, '-W', 'ignore')
    assert '1 passed' in output, output


def test_a_lost_answer(tmp_path):
    (tmp_path / 'test_lost.py').write_text(block('def test_a_lost_answer'))
    output = run(tmp_path, '-W', 'ignore')
    assert '1 passed' in output, output


def test_what_happens(tmp_path):
    (tmp_path / 'test_states.py').write_text(block('def test_the_states_of_a_server'))
    output = run(tmp_path, '-W', 'ignore')
    assert '1 passed' in output, output


def test_the_cloud_of_any_framework(tmp_path):
    script = block('from computeapi.testing import Cloud')
    done = subprocess.run([sys.executable, '-c', script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.startswith('http://127.0.0.1:'), done.stderr


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
