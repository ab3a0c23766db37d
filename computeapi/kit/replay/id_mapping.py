"""Maps IDs of the recorded cloud to IDs of the cloud under test."""

import re
from collections.abc import Iterator
from typing import Any

UUID = re.compile(r'\b[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b', re.ASCII)
ADDRESS = re.compile(r'(\d{1,3}\.){3}\d{1,3}|([0-9a-f]{2}:){5}[0-9a-f]{2}|[0-9a-f]{0,4}(:[0-9a-f]{0,4}){2,7}', re.ASCII)
NUMBER = re.compile(r'\d+', re.ASCII)


class IDMapping:
    """Learns IDs by comparing responses to the same request, and translates the requests that follow.

    What is neither a UUID nor an address may be a word with another meaning elsewhere, so it is only an ID where one is
    expected.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._members: dict[tuple[str, str], str] = {}

    def learn(self, recorded: Any, given: Any, collection: str = '', key: str = '') -> None:
        """Learn which values correspond. collection: the first part of the path, to which the IDs belong."""
        if isinstance(recorded, dict) and isinstance(given, dict):
            for name in recorded.keys() & given.keys():
                self.learn(recorded[name], given[name], collection, name)
        elif isinstance(recorded, list) and isinstance(given, list):
            for one, other in self._pairs(recorded, given):
                self.learn(one, other, collection, key)
        elif isinstance(recorded, str) and isinstance(given, str) and is_distinct(recorded):
            self._texts.setdefault(recorded, given)
        elif isinstance(recorded, str | int) and isinstance(given, str | int) and key == 'id':
            self._members.setdefault((collection, str(recorded)), str(given))
            if isinstance(recorded, str) and not NUMBER.fullmatch(recorded):
                self._names.setdefault(recorded, str(given))

    def _pairs(self, recorded: list[Any], given: list[Any]) -> Iterator[tuple[Any, Any]]:
        """The items that correspond: by ID, as far as these are known, or else by name, or else by position."""
        for name in ('id', 'name'):
            ones, others = _by(name, recorded), _by(name, given)
            if ones is not None and others is not None:
                known = {self.translate(value, name): value for value in ones}
                same = [(known[value], value) for value in others if value in known]
                if same:
                    yield from ((ones[one], others[other]) for one, other in same)
                    return
        if len(recorded) == len(given):
            yield from zip(recorded, given, strict=True)

    def translate(self, value: Any, key: str = '') -> Any:
        """A body, or a text with this key, as the cloud under test would have it."""
        if isinstance(value, dict):
            return {self.translate(name): self.translate(part, name) for name, part in value.items()}
        if isinstance(value, list):
            return [self.translate(part, key) for part in value]
        if not isinstance(value, str):
            return value
        known = self._texts | self._names if key.lower().endswith(('id', 'ref')) else self._texts
        return known[value] if value in known else UUID.sub(lambda found: known.get(found[0], found[0]), value)

    def translate_path(self, path: str) -> str:
        """Translate a path, in which numbers can also be IDs."""
        parts = path.split('/')
        collection = parts[1] if len(parts) > 1 else ''
        return '/'.join(self._members.get((collection, part)) or self.translate(part) for part in parts)


def is_distinct(text: str) -> bool:
    """Whether a text has the same meaning everywhere: a UUID, an IP address or a MAC address."""
    return UUID.fullmatch(text) is not None or ADDRESS.fullmatch(text) is not None


def _by(name: str, items: list[Any]) -> dict[str, Any] | None:
    """The items by their value of this name; None if that is not unique."""
    found = {each[name]: each for each in items if isinstance(each, dict) and isinstance(each.get(name), str)}
    return found if len(found) == len(items) else None
