"""JSON schemas of request bodies, and errors that name the field that does not fit."""

from typing import Any

import jsonschema

from computeapi import errors

MAX_MESSAGE = 500

SECRETS = ('password', 'original_password', 'secret')
"""Fields whose values an error must not repeat."""


class Schema:
    """A JSON schema, compiled once."""

    def __init__(self, schema: dict[str, Any]):
        self.validator = jsonschema.Draft202012Validator(schema)

    def check(self, document: Any) -> None:
        """Invalid, with the field and what is wrong with it, if the document does not fit."""
        error = jsonschema.exceptions.best_match(self.validator.iter_errors(document))
        if error is not None:
            field = '/'.join(map(str, error.absolute_path))
            where = f'Invalid input for field/attribute {field}. ' if field else ''
            secret = bool(error.absolute_path) and error.absolute_path[-1] in SECRETS
            reason = f'It fails {error.validator}: {error.validator_value}' if secret else error.message
            raise errors.Invalid(where + reason[:MAX_MESSAGE])


def body(name: str, properties: dict[str, Any], *, required: tuple[str, ...] = (), extra: bool = False) -> Schema:
    """The schema of {name: {properties}}; `extra` tolerates members that are not named."""
    member = {
        'type': 'object',
        'properties': properties,
        'required': list(required),
        'additionalProperties': extra,
    }
    return Schema({'type': 'object', 'properties': {name: member}, 'required': [name]})
