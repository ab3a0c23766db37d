"""The database is away, disconnected, silent, slow, locked or full: clients are told to retry, and work continues."""

import logging
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, nullcontext

import pytest
import sqlalchemy as sa

from computeapi import errors
from computeapi.clock import utcnow
from computeapi.db.driver_errors import LOG_INTERVAL_SECONDS, DatabaseErrorLog
from computeapi.db.engine import Store
from computeapi.db.tables import metadata
from computeapi.db.tables.compute import flavors
from computeapi.db.timeouts import Timeouts
from computeapi.db.virtual_machines import note_off
from computeapi.main import Service
from computeapi.pipeline import load
from tests.conftest import Client, configured
from tests.proxy import Proxy

FACES = {
    '/v2.1': '/flavors',
    '/identity': '/v3/projects',
    '/image': '/v2/images',
    '/networking': '/v2.0/networks',
    '/volume': '/v3/admin/volumes',
    '/share': '/v2/shares',
}
HASTY = Timeouts(statement=1, lock=1, connect=2)
FLAVOR = {'flavor': {'name': 'f', 'id': 'f', 'ram': 64, 'vcpus': 1, 'disk': 1}}


@pytest.fixture
def proxy(store):
    """A proxy in front of a database server."""
    proxy = Proxy(store.url.host, store.url.port or {'postgresql': 5432, 'mysql': 3306}[store.dialect])
    yield proxy
    proxy.close()


@pytest.fixture
def hasty(store, request):
    """The same database with short timeouts, through the proxy if the test uses it."""
    port = request.getfixturevalue('proxy').port if 'proxy' in request.fixturenames else store.url.port
    url = store.url.set(port=port).render_as_string(hide_password=False)
    with closing(Store(url, timeouts=HASTY)) as hasty:
        yield hasty


@pytest.fixture
def service(conf, hasty):
    conf.set_override('task_sweep_interval', 0.2)
    return Service(conf, hasty)


@pytest.fixture
def client(service):
    return Client(load(service, 'standalone'), prefix='')


def assert_unavailable(answer):
    assert answer.status == 503, answer
    assert int(answer.headers['Retry-After']) > 0
    assert 'psycopg' not in answer.text and 'pymysql' not in answer.text and 'flavors' not in answer.text


# ------------------------------------------------------------------ outages


@pytest.mark.several_writers
def test_a_database_that_is_away(client, proxy, logged):
    assert client.get('/v2.1/flavors').status == 200
    proxy.refuse()
    for face, path in FACES.items():
        assert_unavailable(client.get(face + path))
    assert_unavailable(client.post('/v2.1/flavors', FLAVOR))
    assert_unavailable(client.delete('/v2.1/flavors/f'))
    for _ in range(100):
        assert_unavailable(client.get('/v2.1/flavors'))
    proxy.go_on()
    assert client.get('/v2.1/flavors').status == 200
    errors = [record for record in logged() if record.levelno >= logging.WARNING]
    assert 1 <= len(errors) <= 3 and not any(record.exc_info for record in errors)
    assert 'connect' in errors[0].getMessage().lower()


@pytest.mark.several_writers
def test_tokens_cannot_be_checked(tmp_path, hasty, proxy):
    conf = configured(tmp_path)
    conf.set_override('auth_strategy', 'local', 'api')
    client = Client(load(Service(conf, hasty), 'standalone'), prefix='', token='secret')
    assert client.get('/v2.1/flavors').status == 401
    proxy.refuse()
    for path in ('/v2.1/flavors', '/identity/v3/users', '/networking/v2.0/ports'):
        assert_unavailable(client.get(path))
    proxy.go_on()
    # Only the first connection is cut before the response.
    proxy.cut_at('identity_tokens')
    assert client.post('/v2.1/flavors', FLAVOR).status == 401
    assert proxy.cuts == 0


@pytest.mark.several_writers
def test_who_stands_still_with_a_lock_loses_it(store, hasty):
    """Like a stopped process: others do not have to wait until it continues."""
    store.change(note_off, 'compute1', utcnow())
    with pytest.raises(errors.DatabaseError), hasty.write() as standing:
        note_off(standing, 'compute1', utcnow())
        store.change(note_off, 'compute1', utcnow())
        note_off(standing, 'compute1', utcnow())


@pytest.mark.several_writers
def test_what_is_only_read_is_read_again_when_the_connection_is_cut(client, proxy):
    proxy.cut_at('FROM flavors')
    assert client.get('/v2.1/flavors').status == 200
    proxy.cut_at('FROM networks')
    assert client.get('/networking/v2.0/networks').status == 200
    assert proxy.cuts == 0
    proxy.cut_at('INSERT INTO flavors')
    assert_unavailable(client.post('/v2.1/flavors', FLAVOR))
    proxy.cut_at('FROM flavors', times=2)
    assert_unavailable(client.get('/v2.1/flavors'))
    assert client.get('/v2.1/flavors').status == 200


@pytest.mark.several_writers
def test_a_database_that_says_nothing(client, proxy):
    assert client.get('/v2.1/flavors').status == 200
    proxy.hold()
    begun = time.monotonic()
    assert_unavailable(client.get('/v2.1/flavors'))
    assert time.monotonic() - begun < 15
    proxy.go_on()
    assert client.get('/v2.1/flavors').status == 200


@pytest.mark.several_writers
def test_connections_that_the_database_ends(client, store, hasty):
    assert client.get('/v2.1/flavors').status == 200
    for connection_id in _connections(store, hasty):
        with store.write() as connection:
            kill = {'postgresql': 'SELECT pg_terminate_backend(%s)', 'mysql': 'KILL %s'}[store.dialect]
            connection.exec_driver_sql(kill % connection_id)
    assert client.get('/v2.1/flavors').status == 200
    assert client.post('/v2.1/flavors', FLAVOR).status == 200


def _connections(store, hasty):
    ask = {'postgresql': 'SELECT pg_backend_pid()', 'mysql': 'SELECT connection_id()'}[store.dialect]
    with hasty.read() as one, hasty.read() as other:
        return [connection.exec_driver_sql(ask).scalar() for connection in (one, other)]


@pytest.mark.several_writers
def test_a_database_that_takes_no_connections(client, store, database):
    if database != 'postgresql':
        return
    server = sa.create_engine(store.url.set(database='postgres'), isolation_level='AUTOCOMMIT')
    name = store.url.database
    with server.connect() as connection:
        connection.exec_driver_sql(f'ALTER DATABASE {name} ALLOW_CONNECTIONS false')
        try:
            connection.execute(
                sa.text('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name'), {'name': name}
            )
            assert_unavailable(client.get('/v2.1/flavors'))
            assert_unavailable(client.post('/v2.1/flavors', FLAVOR))
        finally:
            connection.exec_driver_sql(f'ALTER DATABASE {name} ALLOW_CONNECTIONS true')
    server.dispose()
    assert client.post('/v2.1/flavors', FLAVOR).status == 200


@pytest.mark.several_writers
def test_the_work_goes_on_after_it(service, client, proxy, logged):
    service.start()
    try:
        flavor = client.post('/v2.1/flavors', FLAVOR).json['flavor']['id']
        image = client.post('/image/v2/images', {'name': 'i', 'disk_format': 'raw', 'container_format': 'bare'}).json
        kind = {'Content-Type': 'application/octet-stream'}
        client.request('PUT', f'/image/v2/images/{image["id"]}/file', headers=kind, raw=b'x')
        for outage in range(3):
            proxy.refuse()
            time.sleep(0.7)
            proxy.go_on()
            server = {'name': f's{outage}', 'flavorRef': flavor, 'imageRef': image['id'], 'networks': 'none'}
            until = time.monotonic() + 20
            # With such short timeouts, requests may have to be repeated.
            while (made := client.post('/v2.1/servers', {'server': server}, '2.37')).status == 503:
                assert time.monotonic() < until, made
            path = f'/v2.1/servers/{made.json["server"]["id"]}'
            while client.get(path).json['server']['status'] != 'ACTIVE' and time.monotonic() < until:
                time.sleep(0.05)
            assert client.get(path).json['server']['status'] == 'ACTIVE'
    finally:
        service.stop()
    assert not any(record.exc_info for record in logged())


# ------------------------------------------------------------------ slow and locked


@pytest.mark.several_writers
def test_a_statement_that_takes_too_long(hasty, store):
    sleep = {'postgresql': 'SELECT pg_sleep(10)', 'mysql': 'SELECT SLEEP(10) FROM dual'}[store.dialect]
    begun = time.monotonic()
    with pytest.raises(errors.DatabaseError), hasty.read() as connection:
        connection.exec_driver_sql(sleep).all()
    assert time.monotonic() - begun < 4
    with hasty.rebuild() as connection:
        connection.exec_driver_sql(sleep.replace('10', '1.5')).all()


def test_a_lock_that_another_has(client, store):
    assert client.post('/v2.1/flavors', FLAVOR).status == 200
    with store.write() as connection:
        connection.execute(sa.update(flavors).values(vcpus=2))
        assert client.get('/v2.1/flavors').status == 200
        assert_unavailable(client.put('/v2.1/flavors/f', {'flavor': {'description': 'locked'}}, '2.55'))
    changed = client.put('/v2.1/flavors/f', {'flavor': {'description': 'free'}}, '2.55')
    assert changed.status == 200 and changed.json['flavor']['vcpus'] == 2


@pytest.mark.several_writers
def test_changes_that_lock_each_other_out_are_made_again(store):
    with store.write() as connection:
        for number in (1, 2):
            connection.execute(metadata.tables['network_quota_locks'].insert().values(project_id=str(number)))
    quotas, both = metadata.tables['network_quotas'], threading.Barrier(2, timeout=10)
    locks, tries, met = metadata.tables['network_quota_locks'], [], [False, False]

    def change(connection, first, second):
        tries.append(first)
        for number in (first, second):
            connection.execute(sa.select(locks).where(locks.c.project_id == str(number)).with_for_update()).all()
            if not met[first - 1]:
                met[first - 1] = True
                both.wait()
        connection.execute(quotas.insert().values(project_id=str(first), resource='port', limit=1))

    threads = [threading.Thread(target=store.change, args=(change, *order)) for order in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with store.read() as connection:
        assert sorted(connection.scalars(sa.select(quotas.c.project_id))) == ['1', '2']
    assert len(tries) > 2


# ------------------------------------------------------------------ files


@pytest.fixture
def file(tmp_path):
    """The path of a SQLite database with all tables."""
    path = tmp_path / 'file.db'
    with closing(Store(f'sqlite:///{path}')) as store:
        metadata.create_all(store.engine)
    return path


def client_of(conf, url):
    store = Store(url, timeouts=HASTY)
    return store, Client(load(Service(conf, store), 'standalone'), prefix='')


def test_a_file_that_is_full(conf, file):
    store, client = client_of(conf, f'sqlite:///{file}')

    @sa.event.listens_for(store.engine, 'connect')
    def limit(connection, record):
        connection.execute('PRAGMA max_page_count = 1')

    with closing(store):
        answers = [client.post('/v2.1/flavors', _flavor(number)).status for number in range(1000)]
        assert set(answers) == {200, 503}
        assert client.get('/v2.1/flavors').status == 200


def _flavor(number):
    return {'flavor': FLAVOR['flavor'] | {'name': f'{number}' * 20, 'id': str(number)}}


def test_a_file_that_cannot_be_written(conf, file):
    store, client = client_of(conf, f'sqlite:///file:{file}?mode=ro&uri=true')
    with closing(store):
        assert client.get('/v2.1/flavors').status == 200
        assert_unavailable(client.post('/v2.1/flavors', FLAVOR))


@pytest.mark.parametrize('damage', ['no file', 'no database', 'torn'])
def test_a_file_that_is_damaged(conf, file, damage):
    if damage == 'no file':
        file.unlink()
        file.mkdir()
    else:
        data = file.read_bytes()
        file.write_bytes(b'What is this?' * 999 if damage == 'no database' else data[:8192] + b'\xff' * len(data))
    store, client = client_of(conf, f'sqlite:///{file}')
    with closing(store):
        assert_unavailable(client.get('/v2.1/flavors'))
        assert_unavailable(client.post('/v2.1/flavors', FLAVOR))


LOCKED = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute('BEGIN IMMEDIATE')
print('locked', flush=True)
sys.stdin.read()
"""


def test_a_file_that_another_process_has_locked(conf, file):
    store, client = client_of(conf, f'sqlite:///{file}')
    command = [sys.executable, '-c', LOCKED, str(file)]
    with closing(store), subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as other:
        other.stdout.readline()
        assert_unavailable(client.post('/v2.1/flavors', FLAVOR))
        assert client.get('/v2.1/flavors').status == 200
        other.communicate('')
        assert client.post('/v2.1/flavors', FLAVOR).status == 200


def test_a_disk_that_is_full(conf, file):
    """Files cannot grow beyond half the size of the database, as if the disk were full."""
    store, client = client_of(conf, f'sqlite:///{file}')
    with closing(store):
        assert client.post('/v2.1/flavors', FLAVOR).status == 200
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size // 2, before[1]))
            answers = [client.post('/v2.1/flavors', _flavor(number)).status for number in range(100)]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert 503 in answers and set(answers) <= {200, 503}
        made = client.get('/v2.1/flavors').json['flavors']
        assert len(made) == 1 + answers.count(200)
        assert client.post('/v2.1/flavors', _flavor(2000)).status == 200


def test_a_mistake_is_no_database_error(store):
    for statement in ('SELECT nothing FROM flavors', 'SELECT 1 FROM nothing', 'SELEC 1'):
        with pytest.raises(sa.exc.DBAPIError), store.read() as connection:
            connection.exec_driver_sql(statement)


# ------------------------------------------------------------------ the log


def test_the_same_trouble_is_told_now_and_then(logged):
    now = [0.0]
    error_log = DatabaseErrorLog(clock=lambda: now[0])
    original = sqlite3.OperationalError('database is locked')
    original.sqlite_errorcode = 5
    for second in range(2 * LOG_INTERVAL_SECONDS):
        now[0] = float(second)
        for _ in range(10):
            with pytest.raises(errors.DatabaseError), error_log.translating():
                raise sa.exc.OperationalError('SELECT', {}, original)
    assert [record.getMessage() for record in logged()] == [
        'Database error: database is locked',
        'Database error: database is locked (and 299 times since this was last logged)',
    ]


@pytest.mark.parametrize('facts', [{'flavorid': 'x' * 256}, {'vcpus': 2**31}, {'vcpus': 2**80}])
def test_what_fits_in_no_column_is_the_mistake_of_who_sent_it(store, facts):
    row = {'flavorid': 'a', 'name': 'a', 'memory_mb': 1, 'vcpus': 1, 'root_gb': 1, 'ephemeral_gb': 1, 'swap': 1}
    row |= {'rxtx_factor': 1.0, 'disabled': False, 'is_public': True, 'extra_specs': {}, 'created_at': utcnow()}
    # SQLite refuses only numbers that do not fit into 64 bits.
    kept = store.dialect == 'sqlite' and facts != {'vcpus': 2**80}
    with nullcontext() if kept else pytest.raises(errors.Invalid), store.write() as connection:
        connection.execute(sa.insert(flavors).values(row | facts))
