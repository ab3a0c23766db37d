"""SQL stands in db/ and nowhere else: what lies above calls functions that are named after what they answer."""

import re
from pathlib import Path

import computeapi

ROOT = Path(computeapi.__file__).parent

# Types (sa.Connection) and errors (sa.exc) are no statements; functions such as sa.select and sa.or_ are.
STATEMENT = re.compile(r'\bsa\.(?!exc\b)[a-z]|\.execute\(')

ELSEWHERE = {
    'compute/hosts.py',
    'compute/paging.py',
    'compute/scheduler/claims.py',
    'compute/scheduler/hosts.py',
    'compute/servers/listing.py',
    'compute/servers/migration_lists.py',
    'compute/tasks.py',
}
"""Files that still have statements."""


def test_statements_stand_in_db():
    found = {str(path.relative_to(ROOT)) for path in ROOT.rglob('*.py') if STATEMENT.search(path.read_text())}
    assert {name for name in found if not name.startswith('db/')} <= ELSEWHERE
