"""The task state of a server is a TaskState, never a plain string."""

import ast
from pathlib import Path

import computeapi
from computeapi.states import TaskState

ROOT = Path(computeapi.__file__).parent

# These words are names and states of other things, too.
AMBIGUOUS = {TaskState.BLOCK_DEVICE_MAPPING, TaskState.DELETING, TaskState.MIGRATING, TaskState.NETWORKING}
# These are names of notifications.
AMBIGUOUS |= {TaskState.RESIZE_PREP, TaskState.RESIZE_FINISH}
UNMISTAKABLE = {str(state) for state in set(TaskState) - AMBIGUOUS}


def strings(path):
    return {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}


def test_no_file_writes_task_states_as_strings():
    paths = [path for part in ('compute', 'api') for path in (ROOT / part).rglob('*.py')]
    assert {str(path.relative_to(ROOT)) for path in paths if strings(path) & UNMISTAKABLE} == set()
