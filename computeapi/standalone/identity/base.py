"""What the resources of the identity service share: its faults, its links, and its filters."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import webob
import webob.util

from computeapi import errors
from computeapi.backends.identity.local import LocalIdentity
from computeapi.standalone.access import require
from computeapi.standalone.identity.catalog import Catalog
from computeapi.standalone.query import truth
from computeapi.standalone.schema import having
from computeapi.standalone.service import ServiceApp, ServiceController, json_response
from computeapi.versions import History
from computeapi.web.request import Request

NAME = {'type': 'string', 'minLength': 1, 'maxLength': 255}
ID = {'type': 'string', 'minLength': 1, 'maxLength': 64}
TEXT = {'type': ['string', 'null'], 'maxLength': 65535}
SECRET = {'type': 'string', 'minLength': 1, 'maxLength': 1024}
BOOLEAN = {'type': 'boolean'}

# Terraform and others keep attributes of their own beside the known ones, such as a user's email.
EXTRA = {'type': ['string', 'number', 'boolean', 'null'], 'maxLength': 1024}

# What a client may send back with the rest of a record, if it leaves it as it is.
FIXED = ('id', 'links', 'domain_id', 'parent_id', 'is_domain', 'password_expires_at')

KEYSTONE = History({'3.14': 'The only version.'})


class KeystoneController(ServiceController):
    """A resource of the identity service."""

    history = KEYSTONE

    def __init__(self, identity: LocalIdentity, catalog: Catalog):
        self.identity, self.catalog = identity, catalog


class KeystoneApp(ServiceApp):
    """Every answer depends on the token."""

    def refusal(self, req: Request, status: int, message: str, error: Exception) -> webob.Response:
        title = webob.util.status_reasons[status]
        response = json_response(status, {'error': {'code': status, 'title': title, 'message': message}})
        response.headers['Vary'] = 'X-Auth-Token'
        if status == 401:
            response.headers['WWW-Authenticate'] = f'Keystone uri="{req.bookmark}"'
        return response

    def render(self, req: Request, result: Any) -> webob.Response:
        response = super().render(req, result)
        response.headers['Vary'] = 'X-Auth-Token'
        return response


def record(name: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """The schema of {name: {properties}} with room for attributes of the client's own."""
    limits = {'additionalProperties': EXTRA, 'propertyNames': {'maxLength': 255}, 'maxProperties': 64}
    return having({name: having({'links': {'type': 'object'}, **properties}, *required, **limits)}, name)


def reference(properties: dict[str, Any], *unless_id: str) -> dict[str, Any]:
    """The schema of an object with an `id`, or without it with these other properties."""
    without_id = {'if': {'not': {'required': ['id']}}, 'then': {'required': list(unless_id)}}
    return {'type': 'object', 'properties': {'id': ID, 'name': NAME, **properties}, **without_id}


def fields(document: Mapping[str, Any], columns: Iterable[str], current: Mapping[str, Any]) -> dict[str, Any]:
    """What a body says of these columns, and its other attributes as `extra`; Invalid if it changes what is fixed."""
    columns = set(columns)
    values = {name: '' if name == 'description' and value is None else value for name, value in document.items()}
    for name in FIXED:
        if name in values and name not in columns and values.pop(name) != current.get(name):
            raise errors.Invalid(f'Invalid input for field/attribute {name}. It cannot be changed.')
    known = {name: values.pop(name) for name in columns & values.keys()}
    return known | ({'extra': values} if values else {})


def require_self(req: Request, user_id: str) -> None:
    """Only administrators may see another user."""
    require(req.context.is_admin or req.context.user_id == user_id)


def url(req: Request, *parts: str) -> str:
    return '/'.join((req.endpoint, *parts))


def shown(req: Request, collection: str, record: Any, names: Iterable[str], **others: Any) -> dict[str, Any]:
    """A record as clients see it: these attributes, others, its link, and what clients thought of themselves."""
    attributes = {name: getattr(record, name) for name in ('id', *names)}
    links = {'self': url(req, collection, record.id)}
    return {**getattr(record, 'extra', {}), **attributes, **others, 'links': links}


def collection(
    req: Request, name: str, records: Iterable[Any], view: Callable[[Request, Any], dict[str, Any]]
) -> dict[str, Any]:
    links = {'self': req.path_url, 'previous': None, 'next': None}
    return {name: [view(req, item) for item in records], 'links': links}


def flag(req: Request, name: str) -> bool:
    """Whether the query has this parameter with a true value, or none."""
    value = req.parameter(name, 'false')
    return not value or truth(f"The query parameter '{name}'", value)


def filters(req: Request, *names: str) -> dict[str, Any]:
    """The columns among `names` that the query asks to be equal to something."""
    asked = {name: req.parameter(name) for name in names if name in req.query}
    return {**asked, 'enabled': flag(req, 'enabled')} if 'enabled' in asked else asked
