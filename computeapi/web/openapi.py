"""OpenAPI 3.1 documents, generated from the table of operations for clients of one version."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, NamedTuple

import orjson
import webob
import webob.dec
import webob.exc

from computeapi.versions import ABSENT, COMPUTE, MIN, APIVersionRequest, History, resolve
from computeapi.web import faults
from computeapi.web.contract import JSON, Operation, summary_of
from computeapi.web.controller import Controller
from computeapi.web.filters import LEGACY_HEADER, REQUEST_ID_HEADERS, SERVICE, STANDARD_HEADER
from computeapi.web.idempotency import KEY_HEADER
from computeapi.web.schemas import closed, whole

Document = dict[str, Any]

# The verb in an operation ID, by method: of a collection, and of a single resource.
VERBS = {
    'GET': ('list', 'show'),
    'POST': ('create', 'create'),
    'PUT': ('replace', 'update'),
    'DELETE': ('clear', 'delete'),
}
TEXT = {'type': 'string'}
KEY_ERRORS = {400, 409, 422}
UNAUTHORIZED = whole({'error': closed({'code': {'const': 401}, 'title': TEXT, 'message': TEXT})})


class OpenAPI:
    """/VERSION.json and /latest.json; a document is created on first use, and cached."""

    def __init__(
        self, controllers: Iterable[type[Controller]], history: History = COMPUTE, *, idempotency: bool = False
    ):
        """history: the offered versions.  idempotency: whether a POST may have an Idempotency-Key."""
        self.controllers, self.history = tuple(controllers), history
        self.face = replace(COMPUTE_FACE, idempotency=idempotency)
        self._documents: dict[APIVersionRequest, bytes] = {}

    @webob.dec.wsgify
    def __call__(self, req: webob.Request) -> webob.Response:
        name = re.fullmatch(r'/([^/]{1,32})\.json', req.environ['PATH_INFO'])
        if name is None or req.method not in ('GET', 'HEAD'):
            return webob.exc.HTTPNotFound()
        newest = self.history.max
        try:
            version = newest if name[1] == 'latest' else APIVersionRequest.parse(name[1])
        except ValueError:
            return faults.fault(400, f'{name[1]} is no version; ask for /{newest}.json or /latest.json.')
        if not version.matches(MIN, newest):
            return faults.fault(404, f'The versions are {MIN} to {newest}.')
        return webob.Response(body=self.document(version), content_type=JSON)

    def document(self, version: APIVersionRequest) -> bytes:
        """The document of one version as JSON."""
        if version not in self._documents:
            self._documents[version] = orjson.dumps(describe(self.controllers, version, self.face))
        return self._documents[version]


@dataclass(frozen=True)
class Face:
    """The properties of the service as a whole in a document.

    url: the URL of the API, relative to the document.  token_header: the header with the caller's token.
    version_headers: those of requests and answers; the first one is the one with which a request selects a version.
    idempotency: whether a POST may have an Idempotency-Key.
    """

    title: str
    history: History
    url: str
    token_header: str = 'X-Auth-Token'
    version_headers: tuple[str, ...] = ()
    idempotency: bool = False

    def minds_keys(self, operation: Operation) -> bool:
        """Whether the operation honours an Idempotency-Key."""
        return self.idempotency and operation.method == 'POST'


# Documents are served next to the API: /openapi/2.1.json describes /v2.1, wherever both are mounted.
COMPUTE_FACE = Face('Compute API', COMPUTE, '../v2.1', version_headers=(STANDARD_HEADER, LEGACY_HEADER))


class Described(NamedTuple):
    """An operation, and the resource that it is listed under."""

    operation: Operation
    tag: str


def describe(
    controllers: Iterable[type[Controller]], version: APIVersionRequest, face: Face = COMPUTE_FACE
) -> Document:
    """The OpenAPI document of *version*."""
    controllers = list(controllers)
    return {
        'openapi': '3.1.0',
        'info': {'title': face.title, 'version': str(version), 'description': face.history.stories[str(version)]},
        'servers': [{'url': face.url}],
        'security': [{'token': []}],
        'tags': [{'name': name, 'description': text} for name, text in _tags(controllers, version)],
        'paths': _paths(controllers, version, face),
        'components': _components(version, face),
    }


# ------------------------------------------------------------------ resources and paths


def _at(controllers: Iterable[type[Controller]], version: APIVersionRequest) -> Iterator[Described]:
    """The operations at *version*, without those that always answer with an error (410)."""
    for controller in controllers:
        for operation in controller.operations:
            if version.matches(operation.min, operation.max) and operation.answers.at(version)[0] < 400:
                yield Described(operation, resource_of(controller))


def resource_of(controller: type[Controller]) -> str:
    """The resource of a controller: FloatingIPRemoval becomes 'Floating IP removal'."""
    first, *rest = re.findall(r'IPs?|[A-Z]+(?![a-z])|[A-Z][a-z]+', controller.__name__)
    return ' '.join([first, *(word if word[1].isupper() else word.lower() for word in rest)])


def _tags(controllers: Iterable[type[Controller]], version: APIVersionRequest) -> Iterator[tuple[str, str]]:
    used = {each.tag for each in _at(controllers, version)}
    texts = {resource_of(controller): summary_of(controller) for controller in controllers}
    return ((name, text) for name, text in texts.items() if name in used)


def _paths(controllers: Iterable[type[Controller]], version: APIVersionRequest, face: Face) -> Document:
    groups: dict[str, dict[str, list[Described]]] = {}
    for each in _at(controllers, version):
        groups.setdefault(each.operation.path, {}).setdefault(each.operation.method, []).append(each)
    return {
        path: {'parameters': _path_parameters(path, face)}
        | {method.lower(): _operation(group, version, face) for method, group in methods.items()}
        for path, methods in groups.items()
    }


def _path_parameters(path: str, face: Face) -> list[Document]:
    names = re.findall(r'{(\w+)}', path)
    return [_ref('parameters', 'version') for _ in face.version_headers[:1]] + [
        {'name': name, 'in': 'path', 'required': True, 'schema': TEXT | {'minLength': 1}} for name in names
    ]


def operation_id(operation: Operation) -> str:
    """A name made of what is on the wire, so that it never changes: servers_create, servers_action_os-stop."""
    parts = operation.path.strip('/').split('/')
    fixed = [part for part in parts if part and not part.startswith('{')] or ['root']
    if operation.action:
        return '_'.join([*fixed, operation.action])
    return '_'.join([*fixed, VERBS[operation.method][parts[-1].startswith('{')]])


# ------------------------------------------------------------------ operations


def _operation(group: list[Described], version: APIVersionRequest, face: Face) -> Document:
    """One method of one path: one operation, or several actions that the only key of the body distinguishes."""
    operation, tag = group[0]
    operations = [each.operation for each in group]
    facts = _actions(operations, version) if operation.action else _facts(operation, version)
    return {
        **facts,
        'tags': sorted({each.tag for each in group}),
        'parameters': _query_parameters(operation, version) + [_ref('parameters', 'key')] * face.minds_keys(operation),
        'responses': _responses(operations, version, face),
    }


def _facts(operation: Operation, version: APIVersionRequest) -> Document:
    body = resolve(operation.body, version)
    return _described(operation, version) | ({} if body is ABSENT else {'requestBody': _request_body(body)})


def _described(operation: Operation, version: APIVersionRequest) -> Document:
    facts = {
        'operationId': operation_id(operation),
        'summary': operation.summary,
        'x-openstack-min-version': str(operation.min),
        'x-openstack-max-version': str(operation.max),
    }
    policy = {'x-openstack-policy': str(operation.policy)} if operation.policy else {}
    behaviour = {'x-openstack-behaviour': vars(operation.behaviours.at(version))} if operation.behaviour else {}
    return facts | policy | behaviour


def _actions(operations: list[Operation], version: APIVersionRequest) -> Document:
    choices = sorted(operations, key=lambda operation: str(operation.action))
    return {
        'operationId': operation_id(operations[0]).removesuffix(f'_{operations[0].action}'),
        'summary': 'Do one of: ' + ', '.join(str(operation.action) for operation in choices),
        'requestBody': _request_body({'oneOf': [_action_body(operation, version) for operation in choices]}),
    }


def _action_body(operation: Operation, version: APIVersionRequest) -> Document:
    """The body of one action: an object whose only key is the name of the action."""
    schema: Any = resolve(operation.body, version)
    facts = _described(operation, version)
    title = {'title': facts.pop('summary'), 'x-openstack-operation-id': facts.pop('operationId')}
    if schema is ABSENT:
        schema = {'type': 'object', 'properties': {operation.action: {}}, 'maxProperties': 1}
    described: Document = title | facts | schema | {'required': [operation.action]}
    return described


def _request_body(schema: Document) -> Document:
    return {'required': True, 'content': {JSON: {'schema': schema}}}


def _query_parameters(operation: Operation, version: APIVersionRequest) -> list[Document]:
    schema = resolve(operation.query, version) or {}
    required = schema.get('required', ())
    return [
        {'name': name, 'in': 'query', 'required': name in required, 'schema': each}
        for name, each in schema.get('properties', {}).items()
    ]


# ------------------------------------------------------------------ responses


def _responses(operations: list[Operation], version: APIVersionRequest, face: Face) -> Document:
    """The success of each operation, and the faults of all of them."""
    successes: dict[int, dict[str, list[Document]]] = {}
    for operation in operations:
        status, media_type = operation.answers.at(version)
        schema = resolve(operation.response_schema, version)
        for each in (status, *operation.successes):
            known = successes.setdefault(each, {}).setdefault(media_type.partition(';')[0], [])
            if schema is not ABSENT and schema not in known:
                known.append(schema)
    errors = {status for operation in operations for status in operation.error_statuses}
    errors |= KEY_ERRORS if face.minds_keys(operations[0]) else set()
    answers = {status: _ref('responses', str(status)) for status in errors}
    answers |= {status: _success(status, content, face) for status, content in successes.items()}
    return {str(status): answer for status, answer in sorted(answers.items())}


def _success(status: int, content: dict[str, list[Document]], face: Face) -> Document:
    bodies = {
        media_type: {'schema': schemas[0] if len(schemas) == 1 else {'anyOf': schemas}}
        for media_type, schemas in content.items()
        if schemas
    }
    headers = {name: _ref('headers', name) for name in (*face.version_headers, REQUEST_ID_HEADERS[0])}
    answer = {'description': HTTPStatus(status).phrase, 'headers': headers}
    return answer | ({'content': bodies} if bodies else {})


def _components(version: APIVersionRequest, face: Face) -> Document:
    statuses = sorted({*faults.FAULT_NAMES, 406, 410, 500, *(KEY_ERRORS if face.idempotency else ())})
    marks = {STANDARD_HEADER: f'{SERVICE} {version}', LEGACY_HEADER: str(version)}
    marked = {name: {'const': marks[name]} for name in face.version_headers}
    parameters = {}
    if face.version_headers:
        name, required = face.version_headers[0], version > face.history.min
        parameters['version'] = {'name': name, 'in': 'header', 'required': required, 'schema': marked[name]}
    if face.idempotency:
        parameters['key'] = {'name': KEY_HEADER, 'in': 'header', 'schema': TEXT | {'minLength': 1}}
    return {
        'securitySchemes': {'token': {'type': 'apiKey', 'in': 'header', 'name': face.token_header}},
        'parameters': parameters,
        'headers': {name: {'schema': schema} for name, schema in {**marked, REQUEST_ID_HEADERS[0]: TEXT}.items()},
        'responses': {
            str(status): {
                'description': HTTPStatus(status).phrase,
                'content': {JSON: {'schema': _ref('schemas', f'fault-{status}')}},
            }
            for status in statuses
        },
        'schemas': {f'fault-{status}': _fault(status) for status in statuses},
    }


def _fault(status: int) -> Document:
    name = faults.FAULT_NAMES.get(status, 'computeFault')
    schema = closed({name: whole({'code': {'const': status}, 'message': TEXT})}, [name])
    return {'oneOf': [schema, UNAUTHORIZED]} if status == 401 else schema


def _ref(kind: str, name: str) -> Document:
    return {'$ref': f'#/components/{kind}/{name}'}
