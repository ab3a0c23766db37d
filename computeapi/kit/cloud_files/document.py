"""Reads, validates and writes cloud files."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import yaml

from computeapi.clock import parsed
from computeapi.errors import Invalid
from computeapi.kit.cloud_files.sections import DOCUMENT

Document = Mapping[str, Any]
Place = Sequence[str | int]
MAX_ERRORS = 10
WIDTH = 120
FORMATS: Mapping[str, Callable[[str], object]] = {
    'date-time': parsed,
    'ip-address': ip_address,
    'ip-prefix': functools.partial(ip_network, strict=False),
}
"""The parser for each format; ValueError."""


class CloudFileError(Invalid):
    """An error in a file. place: where it is."""

    def __init__(self, place: Place, message: str):
        super().__init__(f'{written(place)}: {message}')
        self.place, self.message = tuple(place), message


class Loader(getattr(yaml, 'CSafeLoader', yaml.SafeLoader)):  # type: ignore[misc]
    """Keeps dates as text, and rejects duplicate keys, one of which would silently be lost."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen = set[str]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(None, None, f'{key.value} occurs twice', key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


class Dumper(getattr(yaml, 'CSafeDumper', yaml.SafeDumper)):  # type: ignore[misc]
    """Writes dates as the loader reads them, and no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


TIMESTAMP = 'tag:yaml.org,2002:timestamp'
for each in (Loader, Dumper):
    each.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if tag != TIMESTAMP]
        for first, found in each.yaml_implicit_resolvers.items()
    }


def written(place: Place) -> str:
    """`servers[3].flavor`, or `the file` for the whole."""
    path = ''.join(f'[{part}]' if isinstance(part, int) else f'.{part}' for part in place)
    return path.lstrip('.') or 'the file'


class CloudFileSource:
    """A file, its text, or a document without a file, with the places of things in it.

    Raises Invalid for text that is not YAML, OSError.
    """

    def __init__(self, given: Path | str | Document):
        self.name, self.text = '', ''
        if isinstance(given, Path):
            self.name, given = str(given), _text(given)
        if not isinstance(given, str):
            self.document: Any = _with_texts(given)
            return
        self.text = given
        try:
            self.document = orjson.loads(given) if self.name.endswith('.json') else yaml.load(given, Loader)
        except (yaml.YAMLError, orjson.JSONDecodeError) as error:
            raise Invalid(': '.join(filter(None, [self.name, str(error)]))) from None

    def check(self) -> Document:
        """The valid document; Invalid with the errors and their places."""
        problems = [problem for error in _errors(self.document) for problem in _deepest(error)]
        if problems:
            raise Invalid('\n'.join(self.located(*each) for each in problems[:MAX_ERRORS]))
        document: Document = self.document
        return document

    def located(self, place: Place, message: str) -> str:
        """The message with the place and, if there is one, the line of the file."""
        line = self.line(place)
        return ': '.join(filter(None, [self.name, f'line {line}' if line else '', written(place), message]))

    def line(self, place: Place) -> int | None:
        """The line of a place in the file; only looked up in case of an error."""
        if not self.text or self.name.endswith('.json'):
            return None
        node: Any = yaml.compose(self.text, Loader)
        for part in place:
            node = _inner(node, part) or node
        return int(node.start_mark.line) + 1


def _text(path: Path) -> str:
    """The text of a file; Invalid, OSError."""
    try:
        return path.read_text()
    except UnicodeDecodeError as error:
        raise Invalid(f'{path}: this is not text: {error}') from None


def _inner(node: Any, part: str | int) -> Any:
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
        return node.value[part]
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == part), None)
    return None


def _with_texts(value: Any) -> Any:
    """Convert times to text: other YAML loaders return them as datetime."""
    if isinstance(value, Mapping):
        return {name: _with_texts(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_texts(each) for each in value]
    return value.isoformat() if isinstance(value, date) else value


def _is_read(read: Callable[[str], object], value: object) -> bool:
    """Whether it is not text, or text that can be parsed; ValueError."""
    return not isinstance(value, str) or read(value) is not None


@functools.cache
def validator() -> jsonschema.protocols.Validator:
    checker = jsonschema.FormatChecker([])
    for name, read in FORMATS.items():
        checker.checks(name, raises=ValueError)(functools.partial(_is_read, read))
    return jsonschema.Draft202012Validator(DOCUMENT, format_checker=checker)


def _errors(document: Any) -> Iterable[jsonschema.ValidationError]:
    return sorted(validator().iter_errors(document), key=lambda error: [str(part) for part in error.absolute_path])


def _deepest(error: jsonschema.ValidationError) -> Iterable[tuple[Place, str]]:
    if error.context:
        for inner in error.context:
            yield from _deepest(inner)
        return
    yield tuple(error.absolute_path), error.message[:500]


def commented(document: Document, left_out: Sequence[str]) -> str:
    """The document as YAML, after comments that say what is left out."""
    return ''.join(f'# Left out: {each}\n' for each in left_out) + dumped(document)


def dumped(document: Document) -> str:
    """The document as YAML."""
    text: str = yaml.dump(dict(document), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=WIDTH)
    return text


def texts_at(value: Any, name: str) -> Iterator[str]:
    """All texts with this key, at any depth."""
    if isinstance(value, dict):
        if isinstance(value.get(name), str):
            yield value[name]
        for each in value.values():
            yield from texts_at(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from texts_at(each, name)
