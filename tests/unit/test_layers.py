"""Arrows between the parts of the house point one way."""

import ast
from pathlib import Path

import pytest

import computeapi

ROOT = Path(computeapi.__file__).parent
BASE = {'versions', 'errors', 'context', 'clock', 'states', 'booleans'}
LAYERS = {
    'versions': set(),
    'errors': set(),
    'context': set(),
    'clock': set(),
    'states': set(),
    'booleans': set(),
    'config': set(),
    'log': set(),
    'web': BASE,
    'db': BASE,
    'backends': BASE | {'db'},
    'compute': (BASE - {'versions'}) | {'db', 'backends'},
    'api': BASE | {'web', 'compute', 'db', 'backends'},
    'standalone': BASE | {'backends', 'db'},
}
"""What each part may import besides itself."""

TOP = {'__init__', '__main__', 'main', 'cli', 'wsgi', 'reports', 'serve', 'status'}
"""The parts that may import everything."""


def imports(path):
    """The parts of computeapi that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ''] if isinstance(node, ast.ImportFrom) else []
        if names == ['computeapi']:
            names = [f'computeapi.{alias.name}' for alias in node.names]
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name.split('.')[1] for name in names if name.startswith('computeapi.'))


@pytest.mark.parametrize('layer', LAYERS)
def test_a_layer_imports_only_what_lies_below_it(layer):
    paths = [ROOT / f'{layer}.py'] if (ROOT / f'{layer}.py').exists() else list((ROOT / layer).rglob('*.py'))
    wrong = {(path.name, name) for path in paths for name in imports(path)} - {
        (path.name, name) for path in paths for name in LAYERS[layer] | {layer}
    }
    assert paths and not wrong


def test_every_part_has_a_place():
    parts = {path.stem for path in ROOT.iterdir() if path.suffix == '.py' or (path / '__init__.py').exists()}
    assert parts <= TOP | set(LAYERS)
