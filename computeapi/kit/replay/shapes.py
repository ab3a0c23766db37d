"""The shape of a JSON document: its keys, and the types of its values."""

from collections.abc import Iterator
from typing import Any

TYPES = {
    str: 'string',
    bool: 'boolean',
    int: 'number',
    float: 'number',
    type(None): 'null',
    dict: 'object',
    list: 'array',
}
ITEM = '[]'

Kinds = dict[str, set[str]]


def kinds(document: Any) -> Kinds:
    """The types at each place, such as {'servers': {'array'}, 'servers[]': {'object'}, 'servers[].id': {'string'}}."""
    found: Kinds = {}
    for place, kind in _walk(document, ''):
        found.setdefault(place, set()).add(kind)
    return found


def _walk(value: Any, place: str) -> Iterator[tuple[str, str]]:
    yield place, TYPES[type(value)]
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _walk(part, f'{place}.{key}' if place else key)
    elif isinstance(value, list):
        for part in value:
            yield from _walk(part, place + ITEM)


def differences(expected: Any, given: Any) -> Iterator[str]:
    """Places that are missing, new, or of another type; items of a list are compared if both lists have some."""
    ones, others = kinds(expected), kinds(given)
    reported: list[str] = []
    for place in sorted(ones.keys() | others.keys()):
        if any(_is_below(place, above) for above in reported) or not _is_comparable(place, ones, others):
            continue
        if place not in others:
            yield f'{place}: missing'
        elif place not in ones:
            yield f'{place}: not expected'
        elif ones[place].isdisjoint(others[place]):
            yield f'{place or "the body"}: {_told(others[place])} instead of {_told(ones[place])}'
        else:
            continue
        reported.append(place)


def _is_below(place: str, above: str) -> bool:
    return not above or place.startswith((f'{above}.', above + ITEM))


def _is_comparable(place: str, ones: Kinds, others: Kinds) -> bool:
    """Whether no list on the path is empty."""
    end = -1
    while (end := place.find(ITEM, end + 1)) >= 0:
        item = place[: end + len(ITEM)]
        if item not in ones or item not in others:
            return False
    return True


def _told(found: set[str]) -> str:
    return ' or '.join(sorted(found))
