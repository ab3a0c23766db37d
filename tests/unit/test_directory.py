"""The temporary directories of clouds in memory."""

import subprocess
import sys
from pathlib import Path

import pytest

from computeapi.serve import directory

OPEN = """
import sys
from pathlib import Path
from computeapi.serve import directory

directory.MEMORY = Path(sys.argv[1])
with directory.opened(None) as opened:
    print(opened.path, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setattr(directory, 'MEMORY', tmp_path)
    return tmp_path


@pytest.fixture
def other(memory):
    """Another process with a temporary directory, and the directory."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, '-c', OPEN, memory], stdin=pipe, stdout=pipe, text=True) as process:
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def test_a_directory_is_removed_at_the_end(memory):
    with directory.opened(None) as opened:
        assert list(memory.iterdir()) == [opened.path]
    assert list(memory.iterdir()) == []


def test_that_of_a_process_that_was_killed_is_removed_by_the_next_one(memory, other):
    process, left = other
    with directory.opened(None):
        assert left.exists()
    process.kill()
    process.wait()
    assert left.exists()
    with directory.opened(None) as opened:
        assert list(memory.iterdir()) == [opened.path]


def test_what_others_have_there_stays(memory):
    for name in ('computeapi-without-lock/file', 'elsewhere/lock'):
        (memory / name).parent.mkdir()
        (memory / name).touch()
    with directory.opened(None):
        pass
    assert {path.name for path in memory.iterdir()} == {'computeapi-without-lock', 'elsewhere'}


def test_a_copy_has_a_lock_of_its_own(memory):
    with directory.opened(None) as one, directory.opened(None) as other:
        before = (other.path / directory.LOCK).stat().st_ino
        one.write('secret', 'text')
        one.copy_to(other)
        assert (other.read('secret'), (other.path / directory.LOCK).stat().st_ino) == ('text', before)
