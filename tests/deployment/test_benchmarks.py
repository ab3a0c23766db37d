"""The benchmarks still run and measure what they claim."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / 'benchmarks'
SMALL = {
    'behind_uwsgi.py': ['--rounds', '1', '--calls', '1', '--page', '2', '--clients', '2', '--seconds', '1'],
    'boots.py': ['--hosts', '2', '--boots', '1', '--rounds', '1', '--many', '2'],
    'scale.py': ['--servers', '30', '--few', '20', '--hosts', '2', '--rounds', '1'],
    'run.py': ['--servers', '20', '--rounds', '1'],
    'start.py': ['--rounds', '1', '--seconds', '1', '--clients', '2'],
    'kit.py': ['--servers', '20', '--rounds', '1'],
    'populate.py': ['--servers', '20', '--projects', '2', '--hosts', '2'],
}


@pytest.mark.parametrize('name', SMALL)
def test_it_runs(name):
    done = subprocess.run([sys.executable, str(FOLDER / name), *SMALL[name]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_two_endpoints():
    """Both are the same here; the cloud of `run` provides its URL and credentials as OS_* variables."""
    asked = f'{sys.executable} {FOLDER / "against.py"} --rounds 1 --calls 1 $URL $URL'
    found = f'URL=${{OS_AUTH_URL%/identity/v3}}/v2.1; {asked}'
    command = [sys.executable, '-m', 'computeapi', 'run', '--', 'sh', '-c', found]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ['its', 'processes', 'are', 'not', 'known'] not in [line[1:] for line in lines]
    assert {'/', '/flavors', '/flavors/{id}', '/limits'} <= {line[0] for line in lines if len(line) == 7}


def test_none_is_forgotten():
    programs = {path.name for path in FOLDER.glob('*.py') if "__name__ == '__main__'" in path.read_text()}
    # Those have tests of their own, here and next to the tests of many clients.
    assert programs - {'against.py', 'load.py'} == set(SMALL)
