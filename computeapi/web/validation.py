"""Validates bodies and query strings against JSON schemas, compiled once per distinct shape.

The error messages are part of the contract: which field, its value, what is wrong with it.
"""

import contextlib
import functools
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import orjson
from jsonschema import validators

from computeapi.errors import Invalid
from computeapi.versions import ABSENT, LEGACY, APIVersionRequest, compiled, resolve
from computeapi.web.formats import FORMATS, BadFormat

_refuse_unknown = jsonschema.Draft202012Validator.VALIDATORS['additionalProperties']

Errors = Iterator[jsonschema.ValidationError]

MAX_KEPT_LENGTH, MAX_KEPT = 200, 1024
"""The results of validation are cached for query strings of up to 200 characters, and for the last 1024 of those."""


def _minimum(validator: Any, bound: Any, instance: Any, schema: Any) -> Errors:
    return _bounded(instance, bound, lambda number: number < bound, 'less than the minimum of')


def _maximum(validator: Any, bound: Any, instance: Any, schema: Any) -> Errors:
    return _bounded(instance, bound, lambda number: number > bound, 'greater than the maximum of')


def _bounded(instance: Any, bound: Any, wrong: Callable[[Any], bool], words: str) -> Errors:
    """Numbers may be given as text, and are compared as numbers."""
    number = _number(instance)
    if number is not None and wrong(number):
        yield jsonschema.ValidationError(f'{number!r} is {words} {bound!r}')


def _number(value: Any) -> int | float | None:
    if isinstance(value, str):
        return _read_number(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _read_number(text: str) -> int | float | None:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return None


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Errors:
    """As in JSON Schema, where $ matches only at the very end; in Python it also matches before a final newline."""
    exact = pattern[:-1] + r'\Z' if pattern.endswith('$') else pattern
    if isinstance(instance, str) and not re.search(exact, instance):
        yield jsonschema.ValidationError(f'{instance!r} does not match {pattern!r}')


def _unique(validator: Any, wanted: bool, instance: Any, schema: Any) -> Errors:
    """Linear time: if items have different types, jsonschema compares every pair."""
    if wanted and isinstance(instance, list):
        texts = {orjson.dumps(item, option=orjson.OPT_SORT_KEYS) for item in instance}
        if len(texts) < len(instance):
            yield jsonschema.ValidationError(f'{instance!r} has non-unique elements')


def _drop_unknown(validator: Any, allowed: Any, instance: Any, schema: Any) -> Errors:
    """/v2 deletes unknown keys from an object that has at least one known key.

    If the schema has pattern properties, unknown keys are errors instead, unless the object has no known key.
    """
    if allowed is not False or not isinstance(instance, dict):
        return
    patterns = schema.get('patternProperties', ())
    known = {key for key in instance if key in schema.get('properties', ()) or any(re.search(p, key) for p in patterns)}
    if known and patterns:
        yield from _refuse_unknown(validator, allowed, instance, schema)
    elif known:
        for key in instance.keys() - known:
            del instance[key]


STRICT: Any = validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    {'minimum': _minimum, 'maximum': _maximum, 'pattern': _pattern, 'uniqueItems': _unique},
)
RELAXED: Any = validators.extend(  # type: ignore[no-untyped-call]
    STRICT, {'additionalProperties': _drop_unknown}
)


class BodyValidator:
    """The body of an operation at every version; /v2 uses relaxed rules."""

    def __init__(self, tree: Any):
        legacy = resolve(tree, LEGACY)
        self._legacy = ABSENT if legacy is ABSENT else RELAXED(legacy, format_checker=FORMATS)
        self._strict = compiled(tree, lambda schema: STRICT(schema, format_checker=FORMATS))

    def check(self, body: Any, version: APIVersionRequest, legacy: bool) -> None:
        """Raise Invalid, naming the field; on /v2, unknown keys are deleted from *body*."""
        for error in self.errors(body, version, legacy):
            raise Invalid(_sentence(error, 'field/attribute', -1))

    def errors(self, body: Any, version: APIVersionRequest, legacy: bool = False) -> Errors:
        """The errors of a body, one at a time."""
        validator = self._legacy if legacy else self._strict.at(version)
        found: Errors = iter(()) if validator is ABSENT else validator.iter_errors(body)
        return found


class QueryValidator:
    """The query string of an operation at every version: `schemas.query` makes the tree."""

    def __init__(self, tree: Any):
        legacy = resolve(tree, LEGACY)
        self._legacy = ABSENT if legacy is ABSENT else _QueryRules(legacy)
        self._strict = compiled(tree, _QueryRules)

    def check(self, query: dict[str, list[str]], version: APIVersionRequest, legacy: bool) -> dict[str, list[str]]:
        """The parameters that count; Invalid if one is wrong, or unknown at a version where that is an error."""
        rules = self._rules(version, legacy)
        return query if rules is ABSENT else rules.check(query)

    def knows(self, name: str, version: APIVersionRequest, legacy: bool) -> bool:
        """Whether a parameter of that name counts."""
        rules = self._rules(version, legacy)
        return rules is ABSENT or rules.knows(name)

    def _rules(self, version: APIVersionRequest, legacy: bool) -> Any:
        return self._legacy if legacy else self._strict.at(version)


class _QueryRules:
    """The query string at one version. The schemas describe one value; each name has a list of values."""

    def __init__(self, schema: dict[str, Any]):
        single = schema.get('single')
        single = schema['properties'] if single is True else single or ()
        values = {
            keyword: {
                name: {'type': 'array', 'items': value} | ({'maxItems': 1} if name in single else {})
                for name, value in schema[keyword].items()
            }
            for keyword in ('properties', 'patternProperties')
            if keyword in schema
        }
        self.validator = STRICT(schema | values, format_checker=FORMATS)
        self.known = frozenset(schema['properties'])
        self.patterns = tuple(re.compile(pattern) for pattern in schema.get('patternProperties', ()))
        self.lenient = schema.get('additionalProperties') is not False
        # Most requests have no query.
        self.takes_none = self.validator.is_valid({})

    def check(self, query: dict[str, list[str]]) -> dict[str, list[str]]:
        if not query and self.takes_none:
            return query
        if not self._is_right(query):
            for error in self.validator.iter_errors(query):
                raise Invalid(_sentence(error, 'query parameters', 0))
        if not self.lenient:
            return query
        return {name: values for name, values in query.items() if self.knows(name)}

    def _is_right(self, query: dict[str, list[str]]) -> bool:
        """Whether it is known to be valid. Short queries are cached: validation takes a seventh of the time of a list,
        and polling repeats them."""
        if sum(len(text) + 1 for text in itertools.chain(query, *query.values())) > MAX_KEPT_LENGTH:
            return False
        return _fits(self, tuple((name, *values) for name, values in query.items()))

    def knows(self, name: str) -> bool:
        return name in self.known or any(pattern.search(name) for pattern in self.patterns)


@functools.lru_cache(maxsize=MAX_KEPT)
def _fits(rules: _QueryRules, asked: tuple[tuple[str, ...], ...]) -> bool:
    return bool(rules.validator.is_valid({name: values for name, *values in asked}))


class ResponseValidator:
    """The answer of an operation at every version."""

    def __init__(self, tree: Any):
        self._shapes = compiled(tree, lambda schema: STRICT(schema, format_checker=FORMATS))

    def check(self, body: Any, version: APIVersionRequest) -> None:
        """ValueError for a body that does not match the schema; ABSENT: there is no body."""
        validator = self._shapes.at(version)
        if (validator is ABSENT) != (body is ABSENT):
            raise ValueError(f'The answer {"has a" if validator is ABSENT else "has no"} body.')
        for error in validator.iter_errors(body) if validator is not ABSENT else ():
            raise ValueError(_sentence(error, 'answer', -1))


def _sentence(error: jsonschema.ValidationError, where: str, part: int) -> str:
    """The message: which field, its value, what is wrong. It is bounded because the body is."""
    if isinstance(error.cause, BadFormat):
        return str(error.cause)
    if not error.absolute_path:
        return error.message
    return f'Invalid input for {where} {error.absolute_path[part]}. Value: {error.instance}. {error.message}'
