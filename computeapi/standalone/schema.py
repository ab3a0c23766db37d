"""JSON schemas of request bodies, and errors that name the invalid field."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema

from computeapi import errors
from computeapi.web.validation import STRICT

MAX_MESSAGE = 500
MAX_ERRORS = 100
"""The number of errors among which the most telling one is chosen: every item of a long list can be wrong."""

SECRETS = ('password', 'original_password', 'secret')
"""Fields whose values an error message must not repeat."""


class Schema:
    """A JSON schema, compiled once, for documents other than the body as it was received."""

    def __init__(self, schema: dict[str, Any]):
        self.validator = STRICT(schema)

    def check(self, document: Any) -> None:
        """Raises Invalid if the document does not match."""
        refuse(self.validator.iter_errors(document))


def refuse(found: Iterable[jsonschema.ValidationError]) -> None:
    """Raises Invalid with the field and its problem if there are errors."""
    error = jsonschema.exceptions.best_match(itertools.islice(found, MAX_ERRORS))
    if error is not None:
        field = '/'.join(map(str, error.absolute_path))
        where = f'Invalid input for field/attribute {field}. ' if field else ''
        secret = bool(error.absolute_path) and error.absolute_path[-1] in SECRETS
        reason = f'It fails {error.validator}: {error.validator_value}' if secret else error.message
        raise errors.Invalid(where + reason[:MAX_MESSAGE])


def having(properties: Mapping[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    """The schema of an object with these properties and possibly others. more: further keywords."""
    return {'type': 'object', 'properties': properties, 'required': required, **more}


def wrapped(name: str, properties: Mapping[str, Any], *required: str, extra: bool = False) -> dict[str, Any]:
    """The schema of {name: {properties}}; `extra` allows members that are not listed."""
    return having({name: having(properties, *required, additionalProperties=extra)}, name)


def optional(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema, with null allowed."""
    return {**schema, 'type': [schema['type'], 'null']}
