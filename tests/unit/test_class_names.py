"""Class names are unique in the package."""

import ast
from collections import Counter
from pathlib import Path

import computeapi

ROOT = Path(computeapi.__file__).parent


def class_names():
    for path in ROOT.rglob('*.py'):
        if 'migrations' not in path.parts:
            yield from (node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef))


def test_no_two_classes_have_one_name():
    assert {name for name, count in Counter(class_names()).items() if count > 1} == set()
