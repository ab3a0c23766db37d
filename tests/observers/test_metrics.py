"""Metrics as Prometheus scrapes them, and how little influence clients have on them."""

import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
import webob
from prometheus_client.parser import text_string_to_metric_families

from computeapi.backends.hypervisor import NotYet
from computeapi.compute.tasks.job import FAULT
from computeapi.db.tasks import Task
from computeapi.errors import DatabaseError, NeighbourAway
from computeapi.main import Service
from computeapi.observers.families import COUNTED, FAMILIES, table
from computeapi.pipeline import load
from tests.api.servers.conftest import create, settle, world  # noqa: F401
from tests.conftest import Client

DOCUMENT = Path(__file__).parents[2] / 'docs/reference/metrics.md'


@pytest.fixture
def conf(conf):
    conf.set_override('enabled', True, 'metrics')
    return conf


def page(app, address='127.0.0.1', method='GET', environ=None, **headers):
    """The response to a client at that address."""
    req = webob.Request.blank('/metrics', method=method, environ={'REMOTE_ADDR': address, **(environ or {})})
    req.headers.update({name.replace('_', '-'): value for name, value in headers.items()})
    return req.get_response(app)


def read(text):
    """{(name, label values in the order of FAMILIES, with that of a bucket): value}."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            known = next(
                FAMILIES[name] for name in (sample.name, family.name, f'{family.name}_total') if name in FAMILIES
            )
            labels = [sample.labels.pop(label) for label in known.labels]
            found[sample.name, *labels, *sample.labels.values()] = sample.value
    return found


def scrape(app):
    answer = page(app)
    assert answer.status_int == 200, answer.text
    return read(answer.text)


def requests_in(found):
    return {key[1:]: value for key, value in found.items() if key[0] == 'computeapi_requests_total'}


def test_requests_are_counted_by_what_they_ask_for(app, api, legacy, servers):
    server_id = servers.add()
    for _ in range(3):
        assert api.get(f'/servers/{server_id}', '2.79').status == 200
    assert api.get(f'/servers/{server_id}x', '2.79').status == 404
    assert api.post(f'/servers/{server_id}/action', {'lock': None}).status == 202
    assert api.post('/servers', {}, 'latest').status == 400
    assert legacy.get('/servers').status == 200
    assert api.get('/servers', '2.1000').status == 406
    found = scrape(app)
    assert requests_in(found) == {
        ('GET /servers/{server_id}', '2.79', '200'): 3,
        ('GET /servers/{server_id}', '2.79', '404'): 1,
        ('POST /servers/{server_id}/action {lock}', '2.1', '202'): 1,
        ('POST /servers', '2.104', '400'): 1,
        ('GET /servers', '2.0', '200'): 1,
        ('none', 'none', '406'): 1,
    }
    assert found['computeapi_request_seconds_count', 'GET /servers/{server_id}'] == 4
    assert found['computeapi_request_seconds_bucket', 'GET /servers/{server_id}', '+Inf'] == 4
    assert found['computeapi_request_seconds_sum', 'GET /servers/{server_id}'] > 0


def test_what_clients_make_up_makes_no_new_series(app, api):
    def ask(number):
        api.get(f'/odd-{number}', '2.1')
        api.get(f'/servers/{number}', f'2.{1000 + number}')
        api.get(f'/servers/{number}', f'odd{number}')
        api.get(f'/servers/{number}', '2.1')
        api.post(f'/servers/{number}/action', {f'odd-{number}': None})
        api.request(f'ODD{number}', '/servers')
        api.get(f'/servers?odd-{number}=1', '2.1', as_=f'somebody-{number}:project-{number}')

    ask(0)
    before = scrape(app)
    for number in range(1, 150):
        ask(number)
    after = scrape(app)
    assert after.keys() == before.keys()
    assert sum(requests_in(after).values()) == 150 * 7
    assert {key[0] for key in requests_in(after)} == {'none', 'GET /servers', 'GET /servers/{server_id}'}


def test_an_app_that_fails_is_counted_as_well(service):
    def fail(environ, start_response):
        raise MemoryError()

    with pytest.raises(MemoryError):
        Client(service.metrics.requests(fail)).get('/')
    assert requests_in(read(service.metrics.exposition().decode())) == {('none', 'none', '500'): 1}


def test_tasks_are_counted_by_what_came_of_them(app, create, settle):
    assert create().status == 202
    settle()
    found = scrape(app)
    assert found['computeapi_task_attempts_total', 'build', 'done'] == 1
    assert found['computeapi_task_seconds_count', 'build'] == 1
    assert found['computeapi_servers', 'active'] == 1


@pytest.mark.parametrize(
    ('error', 'outcome'),
    [(NotYet(1), 'waiting'), (NeighbourAway(name='Glance'), 'waiting'), (DatabaseError('full'), 'retried')],
)
def test_a_task_that_is_not_done_yet(service, error, outcome):
    def work(task):
        raise error

    task = Task(1, 'create', 'server', {}, {}, None, None, None, None, 1, None, taken_from='another')
    with pytest.raises(type(error)):
        service.metrics.tasks(work)(task)
    found = read(service.metrics.exposition().decode())
    assert found['computeapi_task_attempts_total', 'create', outcome] == 1
    assert found['computeapi_task_takeovers_total', 'create'] == 1


def test_a_task_that_fails(service):
    def work(task):
        task.arguments[FAULT] = {'message': 'No valid host'}

    task = Task(1, 'create', 'server', {}, {}, None, None, None, None, 1, None)
    service.metrics.tasks(work)(task)
    found = read(service.metrics.exposition().decode())
    assert found['computeapi_task_attempts_total', 'create', 'failed'] == 1
    assert ('computeapi_task_takeovers_total', 'create') not in found


def test_database_errors_is_counted(service, store):
    metrics = service.metrics
    gone = sa.exc.OperationalError('', None, Exception('gone'), connection_invalidated=True)
    for error in (gone, sa.exc.TimeoutError()):
        with pytest.raises(DatabaseError), store.read():
            raise error
    found = read(metrics.exposition().decode())
    assert found['computeapi_database_errors_total', 'lost'] == 1
    assert found['computeapi_database_errors_total', 'other'] == 1


def test_connections_are_looked_at(service, store):
    with store.read():
        found = read(service.metrics.exposition().decode())
    assert found['computeapi_database_connections', 'in_use'] == 1
    assert found['computeapi_database_connections_kept',] == 10


# ------------------------------------------------------------------ access


@pytest.mark.parametrize(
    ('address', 'headers', 'status'),
    [
        ('127.0.0.1', {}, 200),
        ('::1', {}, 200),
        ('::ffff:127.0.0.1', {}, 200),
        ('192.0.2.1', {}, 403),
        ('', {}, 403),
        ('127.0.0.1', {'X_Forwarded_For': '127.0.0.1'}, 403),
        ('127.0.0.1', {'Forwarded': 'for=127.0.0.1'}, 403),
        ('127.0.0.1', {'X_Real_IP': '127.0.0.1'}, 403),
    ],
)
def test_without_a_token_addresses_let_in(app, address, headers, status):
    assert page(app, address, **headers).status_int == status


def test_a_proxy_is_known_by_its_headers_also_where_they_are_dropped(conf, service):
    conf.set_override('public_url', 'https://cloud.example.org', 'api')
    app = load(service, 'compute')
    assert page(app).status_int == 200
    assert page(app, Forwarded='for=192.0.2.1').status_int == 403
    assert page(app, X_Forwarded_Host='cloud.example.org').status_int == 403


@pytest.mark.parametrize(
    ('given', 'status'), [('Bearer secret', 200), ('Bearer secre', 401), ('secret', 401), ('\xff', 401)]
)
def test_with_a_token_nothing_else_lets_in(conf, service, given, status):
    conf.set_override('token', 'secret', 'metrics')
    app = load(service, 'compute')
    assert page(app, '192.0.2.1', Authorization=given).status_int == status
    assert page(app).status_int == 401
    assert page(app).headers['WWW-Authenticate'] == 'Bearer'


def test_an_empty_token_is_none(conf, service):
    conf.set_override('token', '', 'metrics')
    app = load(service, 'compute')
    assert page(app, '192.0.2.1', Authorization='Bearer ').status_int == 403
    assert page(app).status_int == 200


def test_it_can_be_read_and_nothing_else(app):
    assert page(app, method='POST').status_int == 405
    head = page(app, method='HEAD')
    assert (head.status_int, head.text, head.headers['Cache-Control']) == (200, '', 'no-store')


def test_one_process_among_several_does_not_speak_for_all(app):
    answer = page(app, environ={'wsgi.multiprocess': True})
    assert (answer.status_int, '[metrics]directory' in answer.text) == (503, True)


# ------------------------------------------------------------------ disabled


def test_where_it_is_off_nothing_of_it_is_there(conf, store):
    conf.set_override('enabled', False, 'metrics')
    service = Service(conf, store)
    app = load(service, 'compute')
    assert page(app).status_int == 404
    assert service.observers == []
    assert 'observers' not in type(app.below['/v2.1']).__module__
    conf.set_override('enabled', True, 'metrics')
    assert 'observers' in type(load(Service(conf, store), 'compute').below['/v2.1']).__module__


def test_where_it_is_off_nothing_of_it_is_loaded():
    code = 'import computeapi.pipeline, sys; print([name for name in sys.modules if "prometheus" in name])'
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout == '[]\n'


# ------------------------------------------------------------------ documents


def test_all_metrics_are_documented():
    assert table() in DOCUMENT.read_text(), 'python -m computeapi.observers.families prints it'


def test_all_metrics_are_told(app, api):
    """Except those without any observations yet."""
    api.get('/servers')
    text = page(app).text
    named = {line.split()[2] for line in text.splitlines() if line.startswith('# HELP')}
    assert named >= COUNTED.keys()
    off = {'placement_changes', 'notifications_waiting', 'broker_up'}
    assert FAMILIES.keys() - named == {f'computeapi_{name}' for name in off}
    assert named <= FAMILIES.keys()
