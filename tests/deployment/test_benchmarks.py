"""The benchmarks go on measuring what they say, whatever becomes of what they import."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / 'benchmarks'
SMALL = {
    'boots.py': ['--hosts', '2', '--boots', '1', '--rounds', '1', '--many', '2'],
    'run.py': ['--servers', '20', '--rounds', '1'],
    'kit.py': ['--servers', '20', '--rounds', '1'],
    'populate.py': ['--servers', '20', '--projects', '2', '--hosts', '2'],
}


@pytest.mark.parametrize('name', SMALL)
def test_it_runs(name):
    done = subprocess.run([sys.executable, str(FOLDER / name), *SMALL[name]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_none_is_forgotten():
    programs = {path.name for path in FOLDER.glob('*.py') if "__name__ == '__main__'" in path.read_text()}
    # That one is run by the tests of many clients.
    assert programs - {'load.py'} == set(SMALL)
