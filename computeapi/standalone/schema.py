"""JSON schemas of request bodies, and errors that name the field that does not fit."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema

from computeapi import errors
from computeapi.web.validation import STRICT

MAX_MESSAGE = 500
MOST_ERRORS = 100
"""Among how many errors the one is looked for that says most: a long list can be wrong in each item."""

SECRETS = ('password', 'original_password', 'secret')
"""Fields whose values an error must not repeat."""


class Schema:
    """A JSON schema of what is not the body as it came, compiled once."""

    def __init__(self, schema: dict[str, Any]):
        self.validator = STRICT(schema)

    def check(self, document: Any) -> None:
        """Invalid if the document does not fit."""
        refuse(self.validator.iter_errors(document))


def refuse(found: Iterable[jsonschema.ValidationError]) -> None:
    """Invalid, with the field and what is wrong with it, if there is an error."""
    error = jsonschema.exceptions.best_match(itertools.islice(found, MOST_ERRORS))
    if error is not None:
        field = '/'.join(map(str, error.absolute_path))
        where = f'Invalid input for field/attribute {field}. ' if field else ''
        secret = bool(error.absolute_path) and error.absolute_path[-1] in SECRETS
        reason = f'It fails {error.validator}: {error.validator_value}' if secret else error.message
        raise errors.Invalid(where + reason[:MAX_MESSAGE])


def having(properties: Mapping[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    """The schema of an object with these properties and maybe others. more: further keywords."""
    return {'type': 'object', 'properties': properties, 'required': required, **more}


def wrapped(name: str, properties: Mapping[str, Any], *required: str, extra: bool = False) -> dict[str, Any]:
    """The schema of {name: {properties}}; `extra` tolerates members that are not named."""
    return having({name: having(properties, *required, additionalProperties=extra)}, name)


def optional(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The same, or null."""
    return {**schema, 'type': [schema['type'], 'null']}
