"""Fixtures for all tests: databases, a service on them, and a client for it.

SQLite is always tested, other databases if they are configured (see tests/databases.py). The tests of agents run if
COMPUTEAPI_TEST_RABBITMQ has the URL of a RabbitMQ, see tests/broker.py.
"""

import json
import os
import uuid
import zlib
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import coverage
import pytest
import sqlalchemy as sa
import webob

from computeapi import config, errors
from computeapi.clock import utcnow
from computeapi.db import servers as rows
from computeapi.db.clock import MOMENTS
from computeapi.db.engine import Store
from computeapi.db.tables import metadata
from computeapi.main import Service
from computeapi.pipeline import load
from computeapi.serve import CONTROLLER
from tests import broker, databases
from tests.neighbours import cloud

SAME_ON_ALL = {'agents', 'api', 'consoles', 'history', 'observers', 'standalone'}
"""Folders of tests that execute the same lines on every database."""
THOROUGH = bool(os.environ.get('COMPUTEAPI_TEST_THOROUGH'))
ONE_OF = int(os.environ.get('COMPUTEAPI_TEST_ONE_OF', '1'))
"""Run one in this many tests; the selection is deterministic."""
TURNS = {'postgresql': 0, 'mariadb': 1}
"""Which of the parts below runs on each database besides SQLite; tests/db and tests/backends cover most SQL."""
PARTS = 6
"""On each of these databases, one in this many of such tests runs."""

TIMES = {str(moment) for moment in MOMENTS.values()}
FILLED = sa.select(*(sa.exists().select_from(table).label(table.name) for table in metadata.sorted_tables))
"""Whether each table has any rows."""


@pytest.fixture(scope='session')
def stores(tmp_path_factory):
    """Stores with all tables, by database; each is created once and dropped at the end."""
    known: dict[str, Store] = {}
    with ExitStack() as stack:

        def get(database):
            if database not in known:
                url = stack.enter_context(databases.made(database, tmp_path_factory.mktemp('database')))
                store = known[database] = stack.enter_context(closing(Store(url, durable=False)))
                metadata.create_all(store.engine)
            return known[database]

        yield get


@pytest.fixture(params=databases.DATABASES)
def database(request):
    """The name of each enabled database."""
    return request.param


def pytest_unconfigure():
    """Delete the projects that this process created in a cloud, and its virtual host in the broker."""
    cloud.end()
    broker.end()


def pytest_addoption(parser):
    parser.addoption('--neighbours', action='store_true', help='only what asks the cloud of COMPUTEAPI_TEST_NEIGHBOURS')


def pytest_collection_modifyitems(config, items):
    """Select the tests to run: `several_writers` not on SQLite, which has one writer at a time, and `postgresql` only
    on PostgreSQL.

    Tests in SAME_ON_ALL run on SQLite and one in PARTS of them on each other database (all of them if
    COMPUTEAPI_TEST_THOROUGH is set), where coverage is not measured, because it doubles the time.
    """
    items[:] = [item for item in items if is_wanted(item)]
    if config.getoption('neighbours'):
        items[:] = [item for item in items if asks_neighbours(item)]
    for item in items:
        if is_on(item, *TURNS) and SAME_ON_ALL.intersection(item.path.parts):
            item.add_marker('no_cover')


SET_UP = set()
"""Combinations of module and fixtures that this process has set up."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """Measure coverage of the setup only once for each module and set of fixtures: setup executes the same lines each
    time, takes up most of the time of most tests, and coverage makes it half as slow again."""
    setting_up = (item.path, *item.fixturenames)
    known = setting_up in SET_UP or item.get_closest_marker('no_cover')
    counting = coverage.Coverage.current() if known and SAME_ON_ALL.intersection(item.path.parts) else None
    if counting is None:
        SET_UP.add(setting_up)
        return (yield)
    counting.stop()
    try:
        return (yield)
    finally:
        counting.start()


def is_wanted(item):
    if zlib.crc32(item.nodeid.encode()) % ONE_OF:
        return False
    if item.get_closest_marker('several_writers'):
        return not is_on(item, 'sqlite')
    if item.get_closest_marker('postgresql'):
        return not is_on(item, 'sqlite', 'mariadb')
    if 'transport_url' in item.fixturenames and not broker.URL:
        return False
    if asks_neighbours(item):
        # They use their own databases.
        return not is_on(item, *TURNS)
    if THOROUGH or not is_on(item, *TURNS) or not SAME_ON_ALL.intersection(item.path.parts):
        return True
    database = item.callspec.params['database']
    return zlib.crc32(item.nodeid.replace(database, '').encode()) % PARTS == TURNS[database]


def asks_neighbours(item):
    """Whether the test is about a real cloud, or runs a suite on a Real implementation of
    tests/backends/implementations.py."""
    values = item.callspec.params.values() if 'callspec' in vars(item) else ()
    real = any(getattr(value, '__name__', '').startswith('Real') for value in values)
    return real or 'neighbours' in item.path.parts


def is_on(item, *names):
    return 'callspec' in vars(item) and item.callspec.params.get('database') in names


@pytest.fixture
def transport_url():
    """The URL of a RabbitMQ virtual host that only this process, and those that it starts, use."""
    return broker.transport_url()


@pytest.fixture
def database_url(database, tmp_path):
    """The SQLAlchemy URL of a separate database without tables."""
    with databases.made(database, tmp_path) as url:
        yield url


@pytest.fixture
def store(database, stores):
    """An empty database with all tables; each test runs on every enabled database."""
    return emptied(stores(database))


def emptied(store):
    """The same store with all rows deleted."""
    with store.write() as connection:
        # Most tables are empty; a single query finds those that are not.
        filled = connection.execute(FILLED).mappings().one()
        for table in reversed(metadata.sorted_tables):
            if filled[table.name]:
                connection.execute(table.delete())
    return store


@pytest.fixture
def deadlock(monkeypatch, store):
    """After a call, the next transaction fails with a deadlock."""
    write, ends = store.write, []

    @contextmanager
    def fails():
        with write() as connection:
            yield connection
            if ends:
                raise ends.pop()

    monkeypatch.setattr(store, 'write', fails)
    yield lambda: ends.append(errors.Deadlock('Another one was first.'))
    assert not ends


@pytest.fixture
def asked(store):
    """The statements since the list was last cleared, except those that read the time, whose number varies."""
    seen = []

    def note(connection, cursor, statement, *rest):
        if statement not in TIMES and not statement.startswith('BEGIN'):
            seen.append(statement)

    with databases.listened(store.engine, 'before_cursor_execute', note):
        yield seen


@pytest.fixture
def conf(tmp_path):
    """A configuration for tests."""
    return configured(tmp_path)


def configured(folder):
    """Callers name themselves, images are stored in a temporary folder, and responses are validated."""
    overrides = {
        ('DEFAULT', 'host'): CONTROLLER,
        ('api', 'auth_strategy'): 'none',
        ('api', 'response_validation'): 'error',
        ('standalone', 'data_dir'): str(folder),
    }
    return config.load(overrides=overrides)


@pytest.fixture
def service(conf, store):
    return Service(conf, store)


class Answer:
    """A response: status, headers and the body as JSON (None if empty)."""

    def __init__(self, response):
        self.status = response.status_int
        self.headers = response.headers
        self.text = response.text
        self.json = json.loads(response.body) if response.body and 'json' in response.content_type else None

    def __repr__(self):
        return f'<{self.status} {self.text[:2000]}>'


class Client:
    """Sends HTTP requests to a WSGI app without a socket.

    client.get('/flavors', '2.61', as_='bob:project'): a path below /v2.1 (or one that starts with another version or an
    extra slash), a microversion, and a noauth token.
    """

    def __init__(self, app, token='admin:admin', prefix='/v2.1'):
        self.app, self.token, self.prefix = app, token, prefix

    def request(self, method, path, version=None, body=None, as_=None, headers=None, raw=None):
        headers = {'X-Auth-Token': as_ or self.token, 'Accept': 'application/json', **(headers or {})}
        if version:
            headers['OpenStack-API-Version'] = f'compute {version}'
        req = webob.Request.blank(self.prefix + path, method=method, headers=headers)
        if raw is not None or body is not None:
            req.body = raw if raw is not None else json.dumps(body).encode()
            req.content_type = headers.get('Content-Type', 'application/json')
        return Answer(req.get_response(self.app))

    def get(self, path, version=None, **more):
        return self.request('GET', path, version, **more)

    def post(self, path, body=None, version=None, **more):
        return self.request('POST', path, version, body, **more)

    def put(self, path, body=None, version=None, **more):
        return self.request('PUT', path, version, body, **more)

    def delete(self, path, version=None, **more):
        return self.request('DELETE', path, version, **more)


@pytest.fixture
def app(service):
    """The complete compute pipeline, as composed by api-paste.ini."""
    return load(service, 'compute')


@pytest.fixture
def api(app):
    """An administrator's client of /v2.1."""
    return Client(app)


@pytest.fixture
def legacy(app):
    """An administrator's client of /v2."""
    return Client(app, prefix='/v2')


class Servers:
    """Servers of project `project`, written directly into the store without booting them."""

    now = staticmethod(utcnow)

    def __init__(self, store):
        self.store = store

    def add(self, **kwargs):
        """Insert a running server with these facts; returns its ID."""
        server_id, now = str(uuid.uuid4()), utcnow()
        with self.store.write() as connection:
            rows.insert_all(connection, [ACTIVE | {'uuid': server_id, 'created_at': now, 'launched_at': now} | kwargs])
        return server_id

    def get(self, server_id):
        with self.store.read() as connection:
            return rows.get(connection, server_id, deleted=True)

    def change(self, server_id, **values):
        with self.store.write() as connection:
            rows.update(connection, server_id, values)


FLAVOR = {
    'id': 1,
    'flavorid': 'small',
    'name': 'small',
    'description': None,
    'memory_mb': 64,
    'vcpus': 1,
    'root_gb': 1,
    'ephemeral_gb': 0,
    'swap': 0,
    'rxtx_factor': 1.0,
    'disabled': False,
    'is_public': True,
    'extra_specs': {},
}
ACTIVE = {
    'project_id': 'project',
    'user_id': 'bob',
    'name': 'server',
    'hostname': 'server',
    'vm_state': 'active',
    'power_state': 1,
    'progress': 0,
    'host': 'compute1',
    'node': 'compute1',
    'availability_zone': 'nova',
    'scheduler_hints': {},
    'flavor': FLAVOR,
    'vcpus': 1,
    'memory_mb': 64,
    'root_gb': 1,
    'ephemeral_gb': 0,
    'image_id': '70a599e0-31e7-49b7-b260-868f441e862b',
    'image_properties': {},
    'config_drive': '',
    'disk_config': 'AUTO',
    'metadata': {},
    'network_info': [],
    'reservation_id': 'r-1',
    'launch_index': 0,
}


@pytest.fixture
def servers(store):
    """For tests that need servers but no running cloud: servers.add(name='web')."""
    return Servers(store)


@pytest.fixture
def logged(caplog):
    """logged(): the records that the service itself logged; libraries may still log for an earlier test."""
    return lambda: [record for record in caplog.records if record.name.split('.')[0] == 'computeapi']


SAMPLES = Path(__file__).parent / 'samples'


@pytest.fixture(scope='session')
def sample():
    """Recorded bodies by their names below tests/samples: sample('os-keypairs/v2.2/keypairs-get-resp.json')."""
    return lambda name: json.loads((SAMPLES / name).read_text())


@pytest.fixture(scope='session')
def shape():
    """The keys and JSON types of a body at all depths: what it must have in common with a sample."""
    return _shape


def _shape(value):
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted({json.dumps(_shape(item), sort_keys=True) for item in value})
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return 'number'
    return type(value).__name__
