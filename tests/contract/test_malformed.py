"""Whatever clients send never causes an internal error, and a 400 response names what is wrong.

Bodies and queries are generated from the schemas of the OpenAPI documents, and then spoiled in one place.
"""

import os
import re
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import jsonschema
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from computeapi import api as table
from computeapi.context import Context
from computeapi.main import Service
from computeapi.pipeline import load
from computeapi.versions import MAX, APIVersionRequest
from computeapi.web.openapi import describe
from tests.conftest import Client, configured, emptied
from tests.databases import DATABASES

# Coverage is left to other tests: these execute the same lines thousands of times, and take half the time without it.
pytestmark = pytest.mark.no_cover

VERSIONS = ['2.1', '2.60', str(MAX)]
CALLERS = ['admin:project', 'bob:project']
EXAMPLES = int(os.environ.get('COMPUTEAPI_TEST_EXAMPLES', '3'))
"""The average number of requests for each operation at each version."""

SPOILED: list[Any] = [
    None,
    True,
    -1,
    0,
    1.5,
    2**31,
    2**63,
    1e308,
    '',
    ' ',
    'x',
    'x' * 70000,
    '9' * 5000,
    'a\0b',
    '😀',
    '٣',
    '-1',
]
SPOILED += [[], {}, [None], {'': None}, [[]], '2030-13-45T99:99', '::1/999', '../..', '%s%n', "'", '*', '(a+)+$']
IDENTIFIERS = ['nothing', '0', '1', '-1', '9' * 30, 'é', 'a b', '00000000-0000-4000-8000-000000000000', '..', "'", '%']


# ------------------------------------------------------------------ values from schemas


def values(schema):
    """Values that a schema allows; formats and patterns are met as far as possible."""
    if 'const' in schema or 'enum' in schema:
        return st.sampled_from(schema.get('enum') or [schema['const']])
    for keyword in ('oneOf', 'anyOf'):
        if keyword in schema:
            rest = {key: value for key, value in schema.items() if key != keyword}
            return st.one_of([values(rest | each) for each in schema[keyword]])
    if 'allOf' in schema:
        return values({key: value for each in schema['allOf'] for key, value in each.items()})
    kind = schema.get('type', ['string', 'integer', 'null'])
    if isinstance(kind, list):
        return st.one_of([values(schema | {'type': each}) for each in kind])
    return KINDS[kind](schema)


def objects(schema):
    known, required = schema.get('properties', {}), schema.get('required', ())
    fixed = {name: values(known[name]) for name in required if name in known}
    optional = {name: values(each) for name, each in known.items() if name not in required}
    others = [
        st.dictionaries(st.from_regex(pattern, fullmatch=True), values(each), max_size=2, min_size=not known)
        for pattern, each in schema.get('patternProperties', {}).items()
    ]
    if isinstance(schema.get('additionalProperties'), dict):
        others.append(st.dictionaries(st.sampled_from('abc'), values(schema['additionalProperties']), max_size=2))
    made = st.fixed_dictionaries(fixed, optional=optional)
    return st.tuples(made, *others).map(lambda parts: {name: value for part in parts for name, value in part.items()})


def arrays(schema):
    least = schema.get('minItems', 0)
    most = min(schema.get('maxItems', 50), least + 2)
    unique = repr if schema.get('uniqueItems') else None
    return st.lists(values(schema.get('items', {})), min_size=least, max_size=most, unique_by=unique)


def numbers(schema):
    least = schema.get('minimum', schema.get('exclusiveMinimum', -2) + 1)
    return st.integers(least, min(schema.get('maximum', 2**31), 2**62))


def texts(schema):
    least, most = schema.get('minLength', 0), schema.get('maxLength', 64)
    if schema.get('format') in FORMATS:
        return FORMATS[schema['format']]
    if {'minimum', 'maximum'} & schema.keys():
        return numbers(schema).map(str)
    if 'pattern' in schema:
        matching = st.from_regex(schema['pattern']).map(lambda text: text.rstrip('\n')[:most])
        return matching.filter(lambda text: len(text) >= least)
    return st.text('abc-XYZ 09é', min_size=least, max_size=max(least, min(most, 12)))


KINDS = {
    'object': objects,
    'array': arrays,
    'string': texts,
    'integer': numbers,
    'number': numbers,
    'boolean': lambda schema: st.booleans(),
    'null': lambda schema: st.none(),
}
FORMATS = {
    'uuid': st.uuids().map(str),
    'date-time': st.datetimes().map(lambda moment: moment.isoformat()),
    'ipv4': st.ip_addresses(v=4).map(str),
    'ipv6': st.ip_addresses(v=6).map(str),
    'base64': st.sampled_from(['', 'YQ==']),
    'regex': st.sampled_from(['a', '.*', '^a$']),
    'name': st.text('abc é', min_size=1, max_size=9).map(lambda text: f'a{text}b'),
}


# ------------------------------------------------------------------ spoiling one place


@st.composite
def spoiled(draw, value):
    """The same value with something else in one place, or with a key too few or too many."""
    if isinstance(value, (dict, list)) and value and draw(st.integers(0, 3)):
        copy = value.copy()
        key = draw(st.sampled_from(list(value) if isinstance(value, dict) else range(len(value))))
        copy[key] = draw(spoiled(value[key]))
        return copy
    if isinstance(value, dict) and draw(st.booleans()):
        name = draw(st.sampled_from([*value, 'cf-unknown']))
        return {key: each for key, each in value.items() if key != name} if name in value else value | {name: 1}
    return draw(st.sampled_from(SPOILED))


def complaints(schema, body):
    """The expected texts of a refusal: the name of a field for each error, or the error of the whole."""
    errors = jsonschema.Draft202012Validator(schema).iter_errors(body)
    return {str(error.absolute_path[-1]) if error.absolute_path else error.message for error in errors}


# ------------------------------------------------------------------ the operations


class Asked(NamedTuple):
    """The description of one request in a document."""

    method: str
    path: str
    query: dict[str, Any]
    body: dict[str, Any] | None

    def __repr__(self):
        return f'{self.method} {self.path}'

    def allows(self, body):
        return jsonschema.Draft202012Validator(self.body).is_valid(body)

    def is_about(self, body):
        """Whether a body, valid or not, reaches the operation: an action is identified by its single key."""
        return self.body and (
            not self.path.endswith('/action') or (isinstance(body, dict) and [*body] == self.body['required'])
        )


def requests_of(version):
    """Every request of a version, by resource."""
    found = {}
    for path, item in describe(table.CONTROLLERS, APIVersionRequest.parse(version))['paths'].items():
        for method, operation in item.items():
            if method == 'parameters':
                continue
            query = {each['name']: each['schema'] for each in operation['parameters']}
            content = operation.get('requestBody', {}).get('content', {})
            schema = content.get('application/json', {}).get('schema')
            for body in (schema or {}).get('oneOf', [schema]):
                asked = Asked(method.upper(), path, query, body)
                found.setdefault(operation['tags'][0], []).append(asked)
    return found


ALL = {version: requests_of(version) for version in VERSIONS}


class Place:
    """A cloud with one of everything, and clients for it."""

    def __init__(self, service):
        self.v21, self.v2 = (Client(load(service, 'compute'), prefix=prefix) for prefix in ('/v2.1', '/v2'))
        bob = Context(user_id='bob', project_id='project', roles=frozenset({'member'}))
        service.hosts.register()
        image = service.images.create(bob, 'image', disk_format='raw', container_format='bare')
        service.images.upload(bob, image.id, iter([b'\0']))
        self.volume = service.volumes.create(bob, 1).id
        self.post('/flavors', {'flavor': {'id': '1', 'name': 'f', 'ram': 64, 'vcpus': 1, 'disk': 1}})
        facts = {'name': 'server', 'imageRef': image.id, 'flavorRef': '1', 'networks': 'none'}
        self.server = self.post('/servers', {'server': facts})['server']['id']
        self.group = self.post('/os-server-groups', {'server_group': {'name': 'g', 'policy': 'affinity'}})
        self.group = self.group['server_group']['id']
        self.post('/os-aggregates', {'aggregate': {'name': 'a'}})
        while service.worker.step():
            pass
        self.service = service

    def post(self, path, body):
        answer = self.v21.post(path, body, '2.90', as_='admin:project')
        assert answer.status in (200, 202), answer
        return answer.json

    def identifiers(self, path):
        """Values for a parameter of a path, mostly existing IDs."""
        kind = path.split('/')[1]
        known = {'servers': self.server, 'os-server-groups': self.group, 'os-volumes': self.volume}.get(kind, '1')
        return st.sampled_from([known] * 10 + IDENTIFIERS)


@pytest.fixture(scope='module', params=DATABASES)
def place(request, stores, tmp_path_factory):
    store = emptied(stores(request.param))
    return Place(Service(configured(tmp_path_factory.mktemp('images')), store))


@st.composite
def urls(draw, place, asked):
    """A path with its parameters filled in, and a query that may be invalid."""
    path = re.sub(r'{\w+}', lambda match: quote(draw(place.identifiers(asked.path)), safe=''), asked.path)
    names = draw(st.lists(st.sampled_from([*asked.query, 'cf-unknown']), max_size=3))
    wrong = st.sampled_from([str(each) for each in SPOILED if len(str(each)) < 6000])
    query = [(name, draw(st.one_of(values(asked.query.get(name, {})).map(str), wrong))) for name in names]
    return path + ('?' + urlencode(query) if query else '')


def check(answer, texts=()):
    """There must be no internal error, and a 400 must have a message; with *texts*, it must be a 400 with one of
    them."""
    assert answer.status < 500 or answer.status in (501, 503), answer
    if texts or answer.status == 400:
        message = answer.json['badRequest']['message']
        assert message
        assert not texts or 'NUL' in message or any(text in message for text in texts), (texts, answer)


SETTINGS = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize(('version', 'resource'), [(version, name) for version in VERSIONS for name in ALL[version]])
def test_nothing_breaks_and_complaints_say_what_about(place, version, resource):
    requests = ALL[version][resource]

    @settings(SETTINGS, max_examples=EXAMPLES * len(requests))
    @given(st.data())
    def ask(data):
        asked = data.draw(st.sampled_from(requests))
        url, caller = data.draw(urls(place, asked)), data.draw(st.sampled_from(CALLERS))
        body = data.draw(values(asked.body).filter(asked.allows).flatmap(spoiled)) if asked.body else None
        texts = complaints(asked.body, body) if asked.is_about(body) else ()
        check(place.v21.request(asked.method, url, version, body, as_=caller), texts)
        if version == '2.1':
            check(place.v2.request(asked.method, url, None, body, as_=caller))

    ask()


@pytest.mark.parametrize('version', VERSIONS)
def test_what_the_document_allows_is_taken(place, version):
    requests = [asked for group in ALL[version].values() for asked in group if asked.body]

    @settings(SETTINGS, max_examples=2 * len(requests))
    @given(st.data())
    def ask(data):
        asked = data.draw(st.sampled_from(requests))
        check(place.v21.request(asked.method, data.draw(urls(place, asked)), version, data.draw(values(asked.body))))

    ask()
