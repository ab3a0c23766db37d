"""Dependencies between the layers point one way, and no modules import each other in a cycle."""

import ast
from pathlib import Path

import pytest

import computeapi

ROOT = Path(computeapi.__file__).parent
BASE = {
    'versions',
    'errors',
    'context',
    'clock',
    'states',
    'booleans',
    'gate',
    'randomness',
    'lock_files',
    'cpu_affinity',
    'resource_classes',
}
LAYERS = {
    'versions': set(),
    'errors': set(),
    'context': set(),
    'clock': set(),
    'states': set(),
    'booleans': set(),
    'gate': set(),
    'randomness': set(),
    'lock_files': set(),
    'cpu_affinity': set(),
    'resource_classes': set(),
    'defaults': set(),
    'garbage': set(),
    'malloc_arenas': set(),
    'config': {'defaults', 'bus', 'resource_classes'},
    'log': {'context'},
    'bus': BASE,
    'web': BASE,
    'db': BASE,
    'backends': BASE | {'db', 'bus'},
    'compute': (BASE - {'versions'}) | {'db', 'backends'},
    'api': BASE | {'web', 'compute', 'db', 'backends'},
    'standalone': BASE | {'web', 'backends', 'db'},
}
"""The layers that each layer may import besides itself."""

TOP = {
    '__init__',
    '__main__',
    'agent',
    'main',
    'observers',
    'options',
    'pipeline',
    'argument_types',
    'cli',
    'commands',
    'consoles',
    'shutdown',
    'explanation',
    'readiness',
    'kit',
    'listening',
    'testing',
    'pytest_plugin',
    'wsgi',
    'reports',
    'serve',
    'startup',
    'status',
    'ui',
    'worker',
}
"""The modules that may import everything."""


def name_of(path):
    """'computeapi.web' for computeapi/web/__init__.py."""
    return '.'.join(path.relative_to(ROOT.parent).with_suffix('').parts).removesuffix('.__init__')


MODULES = {name_of(path): path for path in ROOT.rglob('*.py')}


def imports(path):
    """The modules of computeapi that a module imports anywhere, including in functions and for types only."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [f'{node.module}.{alias.name}' for alias in node.names]
            yield from (name if name in MODULES else name.rpartition('.')[0] for name in names if 'computeapi' in name)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)


IMPORTS = {name: set(imports(path)) - {name} for name, path in MODULES.items()}


def part_of(module):
    return module.split('.')[1] if '.' in module else '__init__'


@pytest.mark.parametrize('layer', LAYERS)
def test_a_layer_imports_only_what_lies_below_it(layer):
    modules = [module for module in IMPORTS if part_of(module) == layer]
    allowed = LAYERS[layer] | {layer}
    wrong = [(module, name) for module in modules for name in IMPORTS[module] if part_of(name) not in allowed]
    assert modules and not wrong


def test_every_part_has_a_place():
    assert {part_of(module) for module in MODULES} <= TOP | set(LAYERS)


def test_the_queue_of_tasks_knows_no_operation():
    modules = [module for module in IMPORTS if module.startswith('computeapi.compute.tasks')]
    assert modules
    assert not [name for module in modules for name in IMPORTS[module] if name.startswith('computeapi.compute.servers')]


def reached_from(module):
    """The transitive imports of a module."""
    reached, left = set(), [module]
    while left:
        new = IMPORTS[left.pop()] - reached
        reached |= new
        left += new
    return reached


def test_no_modules_import_each_other_in_a_circle():
    assert {module for module in MODULES if module in reached_from(module)} == set()
