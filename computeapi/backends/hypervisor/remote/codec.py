"""Values of known types as JSON, and back.

A record becomes an object with its fields. The reader knows the expected types, and accepts nothing else: unknown
fields are ignored, and missing ones become None or empty, so that different releases understand each other.
"""

import base64
import dataclasses
import functools
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

Convert = Callable[[Any], Any]
UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
"""The exceptions that reading invalid data raises."""


class Codec(typing.NamedTuple):
    """Writes and reads values of a type; UNREADABLE for anything else.

    empty: makes the value for a missing one.
    """

    write: Convert
    read: Convert
    empty: Callable[[], Any]


@functools.cache
def codec(kind: Any) -> Codec:
    """The codec of a type annotation; TypeError for types that cannot be encoded."""
    if isinstance(kind, type) and kind in LEAVES:
        return LEAVES[kind]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Codec(lambda value: value.name, lambda name: kind[name], _missing_value)
    if isinstance(kind, type) and (dataclasses.is_dataclass(kind) or hasattr(kind, '_fields')):
        return _record(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return codec(arguments[0])
    if origin in (Union, UnionType):
        return _optional(*(each for each in arguments if each is not NoneType))
    if kind is Any:
        return JSON
    if isinstance(origin, type) and issubclass(origin, Mapping):
        value = codec(arguments[1])
        return Codec(
            lambda found: {key: value.write(each) for key, each in found.items()},
            lambda found: {key: value.read(each) for key, each in found.items()},
            dict,
        )
    if isinstance(origin, type) and issubclass(origin, tuple):
        return _tuple(*(codec(each) for each in arguments))
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return _several(frozenset if issubclass(origin, frozenset) else list, arguments[0])
    raise TypeError(f'{kind} cannot be written')


def _missing_value() -> Any:
    """An Enum has no member that could stand for a missing value."""
    raise ValueError('a value is missing where it must be of one of several types')


def _record(kind: Any) -> Codec:
    """The codec of a dataclass or a NamedTuple. Its fields are inspected on first use, because it may be recursive."""

    @functools.cache
    def fields() -> dict[str, Codec]:
        hints = get_type_hints(kind, include_extras=True)
        names = kind._fields if hasattr(kind, '_fields') else [each.name for each in dataclasses.fields(kind)]
        return {name: codec(hints[name]) for name in names}

    def write(value: Any) -> Any:
        return {name: _unless_none(each.write, getattr(value, name)) for name, each in fields().items()}

    def read(found: Any) -> Any:
        given = _checked(found, Mapping)
        return kind(
            **{n: _unless_none(each.read, given[n]) if n in given else each.empty() for n, each in fields().items()}
        )

    return Codec(write, read, lambda: read({}))


def _unless_none(convert: Convert, value: Any) -> Any:
    """A field of a record may be None, whatever its annotation says."""
    return None if value is None else convert(value)


def _optional(*kinds: Any) -> Codec:
    if len(kinds) != 1:
        raise TypeError(f'{kinds} cannot be told apart')
    of = codec(kinds[0])
    return Codec(
        lambda value: None if value is None else of.write(value),
        lambda found: None if found is None else of.read(found),
        lambda: None,
    )


def _tuple(*parts: Codec) -> Codec:
    return Codec(
        lambda value: [part.write(each) for part, each in zip(parts, value, strict=True)],
        lambda found: tuple(part.read(each) for part, each in zip(parts, _checked(found, list), strict=True)),
        lambda: tuple(part.empty() for part in parts),
    )


def _several(collection: Callable[[Iterable[Any]], Collection[Any]], kind: Any) -> Codec:
    """The codec of a collection. Members of an Enum that the reader does not know are left out."""
    one = codec(kind)
    known = kind.__members__ if isinstance(kind, type) and issubclass(kind, Enum) else None
    return Codec(
        lambda value: [one.write(each) for each in value],
        lambda found: collection(one.read(each) for each in _checked(found, list) if known is None or each in known),
        lambda: collection(()),
    )


def _checked(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
        raise TypeError(f'{type(value).__name__} instead of {kind.__name__}')
    return value


def _leaf(kind: type) -> Codec:
    return Codec(lambda value: value, lambda value: _checked(value, kind), kind)


def _number(value: Any) -> float:
    return float(_checked(value, int | float)) if not isinstance(value, bool) else _checked(value, float)


JSON = Codec(lambda value: value, lambda value: value, lambda: None)
LEAVES: dict[Any, Codec] = {
    str: _leaf(str),
    int: Codec(int, lambda value: _checked(value, int), int),
    bool: _leaf(bool),
    float: Codec(float, _number, float),
    dict: Codec(dict, lambda value: _checked(value, dict), dict),
    NoneType: JSON,
    datetime: Codec(datetime.isoformat, datetime.fromisoformat, lambda: datetime.min),
    bytes: Codec(lambda value: base64.b64encode(value).decode(), base64.b64decode, bytes),
}
