"""Controllers do not compare versions: what depends on them stands in marks, and each is written once."""

import re
from pathlib import Path

import pytest

import computeapi.api

ROOT = Path(computeapi.api.__file__).parent

COMPARING = {
    'migrations.py',
    'servers/actions.py',
    'servers/create.py',
    'servers/images.py',
    'servers/moves.py',
    'servers/power.py',
    'servers/rebuild.py',
    'servers/shelving.py',
    'servers/volume_attachments.py',
}
"""Files that still read the version of a request."""

PARSING = {
    'migrations.py',
    'servers/actions.py',
    'servers/create.py',
    'servers/images.py',
    'servers/moves.py',
    'servers/power.py',
    'servers/rebuild.py',
    'servers/shelving.py',
    'servers/volume_attachments.py',
}
"""Files that still make versions to compare with."""


def files_with(pattern):
    return {str(path.relative_to(ROOT)) for path in ROOT.rglob('*.py') if re.search(pattern, path.read_text())}


@pytest.mark.parametrize(
    ('pattern', 'known'),
    [(r'\breq(uest)?\.version\b', COMPARING), (r'\bAPIVersionRequest\.parse\(', PARSING)],
)
def test_no_controller_compares_versions(pattern, known):
    assert files_with(pattern) <= known
