"""Pairs of keys and values, such as metadata and extra specs."""

from collections.abc import Mapping
from typing import Any

from computeapi import errors

Pairs = Mapping[str, Any]


def present(pairs: Pairs, key: str, missing: str) -> Any:
    """The value of a key; raises NotFound with the given text."""
    if key not in pairs:
        raise errors.NotFound(missing)
    return pairs[key]


def without(pairs: Pairs, key: str, missing: str) -> Pairs:
    """The pairs without one key; raises NotFound with the given text."""
    present(pairs, key, missing)
    return {name: value for name, value in pairs.items() if name != key}
