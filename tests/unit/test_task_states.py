"""What is under way with a server is a TaskState, never a string of its own."""

import ast
from pathlib import Path

import computeapi
from computeapi.states import TaskState

ROOT = Path(computeapi.__file__).parent

# These words are names and states of other things, too.
AMBIGUOUS = {TaskState.BLOCK_DEVICE_MAPPING, TaskState.DELETING, TaskState.MIGRATING, TaskState.NETWORKING}
UNMISTAKABLE = {str(state) for state in set(TaskState) - AMBIGUOUS}

WRITTEN_OUT = {
    'compute/servers/creation/rows.py',
    'compute/servers/events.py',
    'compute/servers/images.py',
    'compute/servers/life.py',
    'compute/servers/migration.py',
    'compute/servers/rebuild.py',
    'compute/servers/shelving.py',
    'compute/states.py',
    'compute/work/__init__.py',
    'compute/work/build.py',
    'compute/work/delete.py',
    'compute/work/live_migration.py',
    'compute/work/migration.py',
    'compute/work/power.py',
    'compute/work/rebuild.py',
    'compute/work/shelving.py',
    'compute/work/snapshot.py',
}
"""Files that still write states as strings."""


def strings(path):
    return {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}


def test_no_file_writes_task_states_as_strings():
    paths = [path for part in ('compute', 'api') for path in (ROOT / part).rglob('*.py')]
    assert {str(path.relative_to(ROOT)) for path in paths if strings(path) & UNMISTAKABLE} <= WRITTEN_OUT
