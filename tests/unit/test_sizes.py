"""Limits for the size of files and functions, so that readers can grasp them."""

import ast
from pathlib import Path

import computeapi

ROOT = Path(computeapi.__file__).parent
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60

SOURCES = {
    str(path.relative_to(ROOT)): path.read_text() for path in ROOT.rglob('*.py') if 'migrations' not in path.parts
}


def functions(text):
    """The name and the length of every function."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.end_lineno - node.lineno + 1


def test_no_file_is_long():
    assert {name: len(text.splitlines()) for name, text in SOURCES.items() if text.count('\n') > MAX_FILE_LINES} == {}


def test_no_function_is_long():
    lengths = [(path, *each) for path, text in SOURCES.items() for each in functions(text)]
    assert [each for each in lengths if each[-1] > MAX_FUNCTION_LINES] == []
