"""A trace continues from a client through the request and the task to the driver and to other services."""

import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from oslo_config import cfg

from computeapi.compute.tasks.job import FAULT
from computeapi.db.tables.servers import tasks
from computeapi.errors import NeighbourAway
from computeapi.main import Service
from computeapi.observers.traces import provider_of
from computeapi.pipeline import load
from tests.api.servers.conftest import body, create, settle, world  # noqa: F401
from tests.conftest import Client

TRACE, CLIENT = 'a' * 32, 'b' * 16
PARENT = {'traceparent': f'00-{TRACE}-{CLIENT}-01'}


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter):
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider
    provider.shutdown()


@pytest.fixture
def conf(conf):
    conf.set_override('enabled', True, 'tracing')
    return conf


@pytest.fixture
def service(conf, store, provider):
    return Service(conf, store, tracer_provider=provider)


@pytest.fixture
def spans(exporter):
    """spans(): {name: span} of the finished spans, the last one of each name."""
    return lambda: {span.name: span for span in exporter.get_finished_spans()}


def hexadecimal(number, digits):
    return format(number, f'0{digits}x')


def above(span):
    return hexadecimal(span.parent.span_id, 16)


def own(span):
    return hexadecimal(span.context.span_id, 16)


def test_a_boot_is_one_trace_from_the_client_to_the_driver(api, create, settle, spans):
    answer = api.post('/servers', body(), '2.79', headers=PARENT)
    assert answer.status == 202
    settle()
    found = spans()
    request, task = found['POST /servers'], found['task build']
    step, driver = found['compute__do_build_and_run_instance'], found['hypervisor spawn']
    assert {hexadecimal(span.context.trace_id, 32) for span in (request, task, step, driver)} == {TRACE}
    assert above(request) == CLIENT
    assert above(task) == own(request)
    assert above(step) == own(task)
    assert above(driver) == own(step)
    request_id = answer.headers['x-openstack-request-id']
    assert dict(request.attributes) == {
        'http.request.method': 'POST',
        'http.route': '/servers',
        'http.response.status_code': 202,
        'computeapi.microversion': '2.79',
        'computeapi.request_id': request_id,
    }
    assert dict(task.attributes) == {
        'computeapi.task.kind': 'build',
        'computeapi.task.attempt': 1,
        'computeapi.server_id': answer.json['server']['id'],
        'computeapi.request_id': request_id,
    }


def test_what_clients_send_is_in_no_name_and_no_attribute(api, spans):
    api.get('/servers?name=secret', '2.1', as_='secret:secret')
    api.request('SECRET', '/servers', '2.secret')
    api.get('/secret')
    api.post('/servers/secret/action', {'secret': 'secret'}, headers={'traceparent': 'secret'})
    found = spans()
    assert set(found) == {'GET /servers', 'HTTP', 'GET', 'POST'}
    assert 'secret' not in str([(span.name, dict(span.attributes), span.status) for span in found.values()])


def test_without_a_client_who_traces_each_request_is_a_trace_of_its_own(api, exporter):
    api.get('/servers')
    api.get('/servers')
    first, second = exporter.get_finished_spans()
    assert first.parent is None and first.context.trace_id != second.context.trace_id


def test_work_without_a_trace_begins_one(service, spans, conf, store, create, settle, api):
    assert create().status == 202
    with store.write() as connection:
        connection.execute(tasks.update().values(arguments={}))
    settle()
    assert spans()['task build'].parent is None


@pytest.mark.parametrize(('error', 'status'), [(NeighbourAway(name='Glance'), 'NeighbourAway'), (None, 'failed')])
def test_work_that_fails_says_so_without_words(service, spans, error, status):
    def work(task):
        task.arguments[FAULT] = {'message': 'secret'}
        if error:
            raise error

    task = SimpleNamespace(kind='build', server_id='', arguments={}, context={}, attempts=1)
    if error:
        with pytest.raises(NeighbourAway):
            service.traces.tasks(work)(task)
    else:
        service.traces.tasks(work)(task)
    [span] = spans().values()
    assert (span.status.status_code, span.status.description, span.events) == (StatusCode.ERROR, status, ())


def test_neighbours_are_told_of_the_trace(service, spans):
    heard = []

    def ask(url, method, *, headers=None):
        heard.append(headers)
        return SimpleNamespace(status_code=404)

    asking = service.traces.neighbours(lambda url: 'Glance', ask)
    asking('/v2/images/secret', 'GET', headers={'Accept': 'text/plain'})
    [span] = spans().values()
    trace = hexadecimal(span.context.trace_id, 32)
    assert heard == [{'Accept': 'text/plain', 'traceparent': f'00-{trace}-{own(span)}-{span.context.trace_flags:02x}'}]
    assert (span.name, dict(span.attributes)) == (
        'GET Glance',
        {'http.request.method': 'GET', 'computeapi.service': 'Glance', 'http.response.status_code': 404},
    )


def test_what_a_host_can_do_is_no_question_to_it(create, settle, api, spans):
    server_id = create().json['server']['id']
    settle()
    assert api.post(f'/servers/{server_id}/action', {'pause': None}).status == 202
    settle()
    found = set(spans())
    assert 'hypervisor pause' in found and 'hypervisor capabilities_of' not in found


def test_the_driver_is_what_it_was(service, conf, store):
    plain = Service(conf, store, wrap_driver=lambda driver: driver).hypervisor
    assert service.hypervisor.capabilities_of(None) == plain.capabilities_of(None)
    assert [host.name for host in service.hypervisor.hosts()] == [host.name for host in plain.hosts()]


# ------------------------------------------------------------------ configuration


def test_where_it_is_off_nothing_of_it_is_there(conf, store, servers):
    conf.set_override('enabled', False, 'tracing')
    service = Service(conf, store)
    app = load(service, 'compute')
    assert Client(app).get('/servers', headers=PARENT).status == 200
    assert service.observers == []
    assert service.tasks.mark() == {}


def test_where_it_is_off_nothing_of_it_is_loaded():
    code = 'import computeapi.pipeline, sys; print([name for name in sys.modules if "opentelemetry" in name])'
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout == '[]\n'


def test_without_the_extra_it_says_what_is_missing(conf, store, monkeypatch):
    monkeypatch.setitem(sys.modules, 'computeapi.observers.traces', None)
    with pytest.raises(cfg.ConfigFileValueError, match='the extra `tracing`'):
        load(Service(conf, store), 'compute')


EXPORTING = """
from computeapi.observers.traces import Traces, provider_of
traces = Traces(provider_of('computeapi-worker'))
with traces.step('something'):
    pass
traces.end()
"""


def test_the_environment_says_what_is_exported():
    said = {'OTEL_TRACES_EXPORTER': 'console', 'OTEL_RESOURCE_ATTRIBUTES': 'deployment.environment=test'}
    command = [sys.executable, '-c', EXPORTING]
    shown = subprocess.run(command, env=os.environ | said, capture_output=True, text=True, check=True).stdout
    assert all(text in shown for text in ('something', 'computeapi-worker', '"deployment.environment": "test"'))


class Collector(BaseHTTPRequestHandler):
    """An OTLP collector over HTTP."""

    def do_POST(self):
        self.server.received.append((self.path, self.rfile.read(int(self.headers['Content-Length']))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments):
        """Nobody reads the log."""


def test_by_default_it_goes_out_by_otlp():
    with HTTPServer(('127.0.0.1', 0), Collector) as server:
        server.received = []
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        said = {'OTEL_EXPORTER_OTLP_ENDPOINT': f'http://127.0.0.1:{server.server_port}'}
        subprocess.run([sys.executable, '-c', EXPORTING], env=os.environ | said, check=True)
        server.shutdown()
        thread.join()
    [(path, body)] = server.received
    assert path == '/v1/traces' and b'computeapi-worker' in body


def test_an_exporter_that_is_not_there(monkeypatch):
    monkeypatch.setenv('OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc')
    with pytest.raises(cfg.ConfigFileValueError, match='otlp_proto_grpc'):
        provider_of('computeapi-api')
    monkeypatch.setenv('OTEL_TRACES_EXPORTER', 'none')
    provider_of('computeapi-api').shutdown()
