"""Controllers do not compare versions: differences are declared with marks, each once."""

import re
from pathlib import Path

import pytest

import computeapi.api

ROOT = Path(computeapi.api.__file__).parent


def files_with(pattern):
    return {str(path.relative_to(ROOT)) for path in ROOT.rglob('*.py') if re.search(pattern, path.read_text())}


@pytest.mark.parametrize('pattern', [r'\breq(uest)?\.version\b', r'\bAPIVersionRequest\.parse\('])
def test_no_controller_compares_versions(pattern):
    assert files_with(pattern) == set()
