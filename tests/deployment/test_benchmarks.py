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
    benchmark = f'{sys.executable} {FOLDER / "against.py"} --rounds 1 --calls 1 $URL $URL'
    script = f'URL=${{OS_AUTH_URL%/identity/v3}}/v2.1; {benchmark}'
    command = [sys.executable, '-m', 'computeapi', 'run', '--', 'sh', '-c', script]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'not known' not in done.stdout
    lines = [line.split() for line in done.stdout.splitlines()]
    assert {'/', '/flavors', '/flavors/{id}', '/limits'} <= {line[0] for line in lines if len(line) == 7}


def test_none_is_forgotten():
    programs = {path.name for path in FOLDER.glob('*.py') if "__name__ == '__main__'" in path.read_text()}
    # These two have tests of their own: above, and next to the tests with many clients.
    assert programs - {'against.py', 'load.py'} == set(SMALL)
