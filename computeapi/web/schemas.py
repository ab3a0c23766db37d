"""Building blocks of JSON schemas; any part of a schema may be marked by version."""

from collections.abc import Mapping
from typing import Any

from computeapi.versions import ABSENT, Versioned, changed


def closed(properties: Mapping[str, Any], required: Any = ()) -> dict[str, Any]:
    """An object with these properties and no others."""
    return {
        'type': 'object',
        'properties': dict(properties),
        'required': required if isinstance(required, Versioned) else list(required),
        'additionalProperties': False,
    }


def whole(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object with all of these properties and no others."""
    return closed(properties, list(properties))


def lone(name: str, schema: Any) -> dict[str, Any]:
    """An object with this one property only."""
    return whole({name: schema})


def array(items: Any) -> dict[str, Any]:
    """A list of such items."""
    return {'type': 'array', 'items': items}


def one_of(*words: Any) -> dict[str, Any]:
    """One of these words, some of which may be marked by version."""
    return {'type': 'string', 'enum': list(words)}


def query(
    parameters: Any, *, strict: str | None = '2.102', single: Any = False, legacy: bool = True, **more: Any
) -> Any:
    """What a query string may hold: {name: schema of one value}; a name may occur several times.

    strict: the version from which an unknown name is an error (None: never); below it, unknown names are ignored.
    single: whether a parameter may occur only once, or the names of those that may.
    legacy: whether /v2 checks it too.  more: further keywords.
    """
    tree = {
        'type': 'object',
        'properties': parameters,
        'additionalProperties': changed({'2.1': True, strict: False}) if strict else True,
        'single': single,
        **more,
    }
    return tree if legacy else changed({'2.0': ABSENT, '2.1': tree})
