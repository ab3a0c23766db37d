"""Common parts of the identity resources: errors, links and filters."""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import webob
import webob.util

from computeapi import errors
from computeapi.backends.identity.local import LocalIdentity
from computeapi.backends.identity.local.managers import PlainManager
from computeapi.clock import parsed
from computeapi.db.identity import Token
from computeapi.standalone.access import ADMIN, require
from computeapi.standalone.identity.access import ANY_CALLER, CLOUD_READER, DOMAIN_READER
from computeapi.standalone.query import truth
from computeapi.standalone.schema import Schema, having, wrapped
from computeapi.standalone.service import ServiceApp, ServiceController, json_response
from computeapi.versions import History
from computeapi.web.controller import operation
from computeapi.web.request import Request
from computeapi.web.routing import Endpoint, Match

NAME = {'type': 'string', 'minLength': 1, 'maxLength': 255, 'pattern': r'\S'}
SHORT_NAME = {**NAME, 'maxLength': 64}
ID = {'type': 'string', 'minLength': 1, 'maxLength': 64}
OBJECT = {'type': 'object'}
TEXT = {'type': ['string', 'null'], 'maxLength': 65535}
SECRET = {'type': 'string', 'minLength': 1, 'maxLength': 1024}
BOOLEAN = {'type': 'boolean'}
OPTIONS = having({'immutable': {'type': ['boolean', 'null']}}, additionalProperties=False)

# Terraform and others store attributes of their own next to the known ones, such as a user's email.
EXTRA = {'type': ['string', 'number', 'boolean', 'null'], 'maxLength': 1024}

# Attributes that a client may send back with the rest of a record if their values are unchanged.
FIXED = ('id', 'links', 'domain_id', 'parent_id', 'is_domain', 'password_expires_at')

LIKENED = ('name', 'type')
LIKE = {'contains': str.__contains__, 'startswith': str.startswith, 'endswith': str.endswith}
"""Comparisons in the suffix of a filter; with the prefix i they ignore case."""

KEYSTONE = History({'3.14': 'The only version.'})


class KeystoneController(ServiceController):
    """A resource of the identity service."""

    history = KEYSTONE

    def __init__(self, identity: LocalIdentity):
        self.identity = identity

    def token(self, req: Request) -> Token:
        """The token of the caller."""
        return self.identity.tokens.get(req.context.auth_token or '')

    def look_up(self, method: str, ids: Mapping[str, str]) -> None:
        """NotFound if a refused request is about a record that does not exist, and everybody may know that."""

    def domain_of(self, kind: str, record_id: str) -> str | None:
        """The domain of a user, group or project; None if it does not exist."""
        found: list[Any] = getattr(self.identity, kind).list(id=record_id)
        return found[0].domain_id if found else None

    def require_self_or_domain_reader(self, req: Request, user_id: str) -> None:
        """Allows users themselves, and readers of their domain."""
        own = req.context.user_id == user_id
        require(own or req.allows(DOMAIN_READER, {'user': self.domain_of('users', user_id)}))


class KeystoneApp(ServiceApp):
    """Every response depends on the token."""

    service_types = ('identity',)

    def find(self, req: Request) -> Match | None:
        """Ignores a trailing slash. HEAD falls back to GET where it has no operation of its own."""
        environ = {**req.environ, 'PATH_INFO': req.environ['PATH_INFO'].rstrip('/')}
        found = self.routes.find(environ)
        if found is None and environ['REQUEST_METHOD'] == 'HEAD':
            found = self.routes.find(environ | {'REQUEST_METHOD': 'GET'})
        return found

    def answer(self, req: Request, endpoint: Endpoint, parameters: dict[str, Any]) -> webob.Response:
        """Like Keystone, answer 404 for some records before the rights of the caller are of interest."""
        ids = dict(parameters)
        try:
            return super().answer(req, endpoint, parameters)
        except errors.Forbidden:
            bound = self.choose(req, endpoint, None)
            cast(KeystoneController, self.controllers[bound.kind]).look_up(req.method, ids)
            raise

    @classmethod
    def refusal(cls, req: Request, status: int, message: str, error: Exception) -> webob.Response:
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
    """The schema of {name: {properties}}, with room for attributes that the client defines."""
    limits = {'additionalProperties': EXTRA, 'propertyNames': {'maxLength': 255}, 'maxProperties': 64}
    return having({name: having({'links': {'type': 'object'}, **properties}, *required, **limits)}, name)


def reference(properties: dict[str, Any], *unless_id: str) -> dict[str, Any]:
    """The schema of an object with an `id`, or without one but with these other properties."""
    without_id = {'if': {'not': {'required': ['id']}}, 'then': {'required': list(unless_id)}}
    return {'type': 'object', 'properties': {'id': ID, 'name': NAME, **properties}, **without_id}


def fields(document: Mapping[str, Any], columns: Iterable[str], current: Mapping[str, Any]) -> dict[str, Any]:
    """The values in a body for these columns, and its other attributes as `extra`. Raises Invalid if a fixed attribute
    changes."""
    columns = set(columns)
    values = {name: '' if name == 'description' and value is None else value for name, value in document.items()}
    for name in FIXED:
        if name in values and name not in columns and values.pop(name) != current.get(name):
            raise errors.Invalid(f'Invalid input for field/attribute {name}. It cannot be changed.')
    known = {name: values.pop(name) for name in columns & values.keys()}
    return known | ({'extra': values} if values else {})


@dataclass(frozen=True)
class Noun:
    """A kind of record: the schema of its documents, its columns, and its filters.

    fixed: columns that cannot be changed.  closed: whether attributes defined by the client are refused.
    """

    name: str
    properties: Mapping[str, Any]
    required: tuple[str, ...]
    filters: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    closed: bool = False

    @functools.cached_property
    def creation(self) -> Schema:
        return self._schema(*self.required)

    @functools.cached_property
    def change(self) -> Schema:
        return self._schema()

    def new(self, body: Any) -> dict[str, Any]:
        """The values for a new record; raises Invalid if the body does not match."""
        self.creation.check(body)
        return fields(body[self.name], self.properties, {})

    def changes(self, body: Any, current: Mapping[str, Any]) -> dict[str, Any]:
        """The changes in a body to the record that is shown as *current*."""
        self.change.check(body)
        return fields(body[self.name], self.properties.keys() - set(self.fixed), current)

    def _schema(self, *required: str) -> Schema:
        make = wrapped if self.closed else record
        return Schema(make(self.name, dict(self.properties), *required))


class KeystoneCollection(KeystoneController):
    """The records of one kind, managed by administrators; `kind` names the manager that stores them.

    revealing: the methods that answer 404, not 403, if the record does not exist and the caller has no rights.
    """

    kind: str
    noun: Noun
    revealing: tuple[str, ...] = ()

    @property
    def manager(self) -> PlainManager[Any]:
        manager: PlainManager[Any] = getattr(self.identity, self.kind)
        return manager

    @operation('GET', policy=CLOUD_READER)
    def list(self, req: Request) -> dict[str, Any]:
        return collection(req, self.kind, self.manager.list(**filters(req, *self.noun.filters)), self.view)

    @operation('POST', policy=ADMIN, body=OBJECT, status=201)
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        return self.single(req, self.manager.create(**self.noun.new(body)))

    @operation('GET', '/{record_id}', policy=CLOUD_READER)
    def show(self, req: Request, record_id: str) -> dict[str, Any]:
        return self.single(req, self.manager.get(record_id))

    @operation('PATCH', '/{record_id}', policy=ADMIN, body=OBJECT)
    def update(self, req: Request, record_id: str, body: Any) -> dict[str, Any]:
        changes = self.noun.changes(body, self.view(req, self.manager.get(record_id)))
        return self.single(req, self.manager.update(record_id, **changes))

    @operation('DELETE', '/{record_id}', policy=ADMIN, status=204)
    def delete(self, req: Request, record_id: str) -> None:
        self.manager.delete(record_id)

    def look_up(self, method: str, ids: Mapping[str, str]) -> None:
        if 'record_id' in ids and method in self.revealing:
            self.manager.get(ids['record_id'])

    def single(self, req: Request, record: Any) -> dict[str, Any]:
        return {self.noun.name: self.view(req, record)}

    def view(self, req: Request, record: Any) -> dict[str, Any]:
        return shown(req, self.path.strip('/'), record, self.noun.properties)


class OpenCollection(KeystoneCollection):
    """Records that anyone with a token may see."""

    @operation('GET', policy=ANY_CALLER)
    def list(self, req: Request) -> dict[str, Any]:
        return super().list(req)

    @operation('GET', '/{record_id}', policy=ANY_CALLER)
    def show(self, req: Request, record_id: str) -> dict[str, Any]:
        return super().show(req, record_id)


def url(req: Request, *parts: str) -> str:
    return '/'.join((req.endpoint, *parts))


def shown(req: Request, collection: str, record: Any, names: Iterable[str], **others: Any) -> dict[str, Any]:
    """A record as clients see it: these attributes, others, its link, and attributes that clients defined."""
    attributes = {name: getattr(record, name) for name in ('id', *names)}
    links = {'self': url(req, collection, record.id)}
    return {**getattr(record, 'extra', {}), **attributes, **others, 'links': links}


def collection(
    req: Request, name: str, records: Iterable[Any], view: Callable[[Request, Any], dict[str, Any]]
) -> dict[str, Any]:
    links = {'self': req.path_url, 'previous': None, 'next': None}
    return {name: [shown for item in records if is_like(req, shown := view(req, item))], 'links': links}


def moment(when: datetime) -> str:
    return when.isoformat(timespec='microseconds') + 'Z'


def expiry_of(requested: Mapping[str, Any]) -> datetime | None:
    """`expires_at`, a time in ISO 8601, in UTC unless it has an offset."""
    text = requested.get('expires_at')
    if not text:
        return None
    try:
        return parsed(text)
    except ValueError:
        raise errors.Invalid('Invalid input for field/attribute expires_at. It must be a time in ISO 8601.') from None


def flag(req: Request, name: str) -> bool:
    """Whether the query has this parameter with a true value, or without a value."""
    value = req.parameter(name, 'false')
    return not value or truth(f"The query parameter '{name}'", value)


def is_like(req: Request, document: Mapping[str, Any]) -> bool:
    """Whether the document matches all filters such as `name__contains=web` on names and types."""
    for parameter in req.query:
        name, _, how = parameter.partition('__')
        compare = LIKE.get(how.removeprefix('i'))
        if compare is None or name not in LIKENED or name not in document:
            continue
        text, part = document[name] or '', req.parameter(parameter)
        if not (compare(text.lower(), part.lower()) if how.startswith('i') else compare(text, part)):
            return False
    return True


def filters(req: Request, *names: str) -> dict[str, Any]:
    """The columns among `names` that the query filters by, with the values."""
    requested = {name: req.parameter(name) for name in names if name in req.query}
    return {**requested, 'enabled': flag(req, 'enabled')} if 'enabled' in requested else requested
