"""What the nouns of the identity face share: its faults, its links, and its filters."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
import webob
import webob.util

from computeapi import errors
from computeapi.backends.identity.local import LocalIdentity
from computeapi.standalone.face import Face, FaceRequest
from computeapi.standalone.identity.catalog import Catalog
from computeapi.standalone.schema import Schema

NAME = {'type': 'string', 'minLength': 1, 'maxLength': 255}
ID = {'type': 'string', 'minLength': 1, 'maxLength': 64}
TEXT = {'type': ['string', 'null'], 'maxLength': 65535}
SECRET = {'type': 'string', 'minLength': 1, 'maxLength': 1024}
BOOLEAN = {'type': 'boolean'}

# Terraform and others keep attributes of their own beside the known ones, such as a user's email.
EXTRA = {'type': ['string', 'number', 'boolean', 'null'], 'maxLength': 1024}

# What a client may send back with the rest of a record, if it leaves it as it is.
FIXED = ('id', 'links', 'domain_id', 'parent_id', 'is_domain', 'password_expires_at')

TRUE = ('', '1', 'true', 'yes')
FALSE = ('0', 'false', 'no')


class KeystoneFace(Face):
    def __init__(self, identity: LocalIdentity, catalog: Sequence[Mapping[str, str]], region: str = 'RegionOne'):
        super().__init__(identity.authenticate)
        self.identity = identity
        self.catalog = Catalog(catalog, region)

    def answer(self, req: FaceRequest) -> webob.Response:
        try:
            response = super().answer(req)
        except errors.NotAuthenticated as error:
            response = self.fault(401, str(error))
            response.headers['WWW-Authenticate'] = f'Keystone uri="{req.application_url}"'
        response.headers['Vary'] = 'X-Auth-Token'
        return response

    def fault(self, status: int, message: str) -> webob.Response:
        title = webob.util.status_reasons[status]
        return self.render((status, {'error': {'code': status, 'title': title, 'message': message}}))


def record(name: str, properties: dict[str, Any], *required: str) -> Schema:
    """The schema of {name: {properties}} with room for attributes of the client's own."""
    member = {
        'type': 'object',
        'properties': {'links': {'type': 'object'}, **properties},
        'required': required,
        'additionalProperties': EXTRA,
        'propertyNames': {'maxLength': 255},
        'maxProperties': 64,
    }
    return Schema({'type': 'object', 'properties': {name: member}, 'required': [name]})


def reference(properties: dict[str, Any], *unless_id: str) -> dict[str, Any]:
    """The schema of an object with an `id`, or without it with these other properties."""
    without_id = {'if': {'not': {'required': ['id']}}, 'then': {'required': list(unless_id)}}
    return {'type': 'object', 'properties': {'id': ID, 'name': NAME, **properties}} | without_id


def fields(document: Mapping[str, Any], columns: Iterable[str], current: Mapping[str, Any]) -> dict[str, Any]:
    """What a body says of these columns, and its other attributes as `extra`; Invalid if it changes what is fixed."""
    columns = set(columns)
    values = {name: '' if name == 'description' and value is None else value for name, value in document.items()}
    for name in FIXED:
        if name in values and name not in columns and values.pop(name) != current.get(name):
            raise errors.Invalid(f'Invalid input for field/attribute {name}. It cannot be changed.')
    known = {name: values.pop(name) for name in columns & values.keys()}
    return known | ({'extra': values} if values else {})


def require(allowed: bool) -> None:
    if not allowed:
        raise errors.Forbidden('You are not authorized to perform the requested action.')


def require_self(req: FaceRequest, user_id: str) -> None:
    """Only administrators may see another user."""
    require(req.context.is_admin or req.context.user_id == user_id)


def url(req: FaceRequest, *parts: str) -> str:
    return '/'.join((req.application_url, 'v3', *parts))


def link(req: FaceRequest, *parts: str) -> dict[str, Any]:
    return {'links': {'self': url(req, *parts)}}


def collection(
    req: FaceRequest, name: str, records: Iterable[Any], view: Callable[[FaceRequest, Any], dict[str, Any]]
) -> dict[str, Any]:
    links = {'self': req.path_url, 'previous': None, 'next': None}
    return {name: [view(req, item) for item in records], 'links': links}


def flag(req: FaceRequest, name: str) -> bool:
    """Whether the query has this parameter with a true value, or none."""
    value = req.GET.get(name, 'false').lower()
    if value not in TRUE + FALSE:
        raise errors.Invalid(f"The query parameter '{name}' must be true or false.")
    return value in TRUE


def filters(req: FaceRequest, table: sa.Table, *names: str) -> dict[str, Any]:
    """The columns among `names` that the query asks to be equal to something."""
    asked = [name for name in names if name in req.GET]
    return {name: flag(req, name) if isinstance(table.c[name].type, sa.Boolean) else req.GET[name] for name in asked}
