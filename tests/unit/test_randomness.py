"""Random values come from computeapi.randomness, unless they must be unguessable."""

import ast
from pathlib import Path

import computeapi

ROOT = Path(computeapi.__file__).parent
DRAWN = {'random', 'secrets', 'urandom', 'SystemRandom', 'uuid1', 'uuid4'}
MAY_DRAW = {
    'randomness.py': 'ids, addresses, passwords',
    'backends/hypervisor/qemu/exports.py': 'keys of attachments',
    'backends/hypervisor/qemu/migration_destination.py': 'names that only those know who may write',
    'backends/hypervisor/qemu/shared_storage.py': 'words that only those know who see a folder',
    'backends/hypervisor/qemu/guest_agent.py': 'which answer is to which question',
    'agent/gate.py': 'words that open consoles',
    'agent/reporting.py': 'which process an agent is',
    'agent/streams.py': 'names of what is fetched',
    'backends/hypervisor/remote/driver.py': 'which calls are one',
    'backends/hypervisor/remote/signing.py': 'which message is which',
    'backends/hypervisor/simulated_consoles/spice.py': 'numbers of sessions',
    'backends/hypervisor/simulated_migration.py': 'words that let machines in',
    'backends/identity/local/__init__.py': 'a key',
    'backends/identity/local/application_credentials.py': 'secrets of applications',
    'backends/identity/local/stored_credentials.py': 'keys of EC2',
    'backends/identity/local/tokens.py': 'tokens',
    'backends/volume/local/transfers.py': 'keys of transfers',
    'bus.py': 'names of queues',
    'compute/consoles.py': 'tokens of consoles',
    'compute/guest/reader.py': 'the entropy of guests',
    'compute/tasks/queue.py': 'which process has what',
    'cpu_affinity.py': 'which CPU',
    'db/idempotency_keys.py': 'which request has a key',
    'kit/kit.py': 'the token of the control API',
    'kit/faults/call_selection.py': 'has a seed of its own',
    'kit/cloud_files/anonymity.py': 'a key',
    'kit/cloud_files/filling.py': 'has a seed of its own',
    'kit/cloud_files/synthetic.py': 'has a seed of its own',
    'kit/webhooks/sending.py': 'keys of webhooks',
    'kit/webhooks/webhook.py': 'which messages are of one webhook, and when to try again',
    'serve/directory.py': 'keys',
    'ui/sessions.py': 'names of sessions',
}
"""By module, the random values that it generates itself."""


def draws(path):
    """Whether a module imports a random generator, or accesses one in what it imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = set()
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} | {getattr(node, 'module', None)}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ('os', 'uuid'):
            names = {node.attr}
        if names & DRAWN:
            return True
    return False


def test_nobody_else_draws():
    assert {str(path.relative_to(ROOT)) for path in ROOT.rglob('*.py') if draws(path)} == MAY_DRAW.keys()
