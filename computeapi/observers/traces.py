"""OpenTelemetry spans of what this process does: from a client's traceparent to the driver and to neighbours.

The OTEL_* environment variables of OpenTelemetry configure the export and sampling. The names of spans come from the
service, never from clients. Of errors, only the class is recorded, because a message may contain secrets.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Any, cast

from opentelemetry import context as current
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from oslo_config import cfg

from computeapi import __version__
from computeapi.backends.hypervisor import Capability, Hypervisor, NotYet
from computeapi.compute.tasks.job import FAULT
from computeapi.compute.tasks.queue import tries
from computeapi.context import STEPS
from computeapi.db.tasks import Task
from computeapi.observers import Ask, Names, Work
from computeapi.web.filters import Environ, PasteFilter, WSGIApp, environ_key
from computeapi.web.request import OPERATION, REQUEST_ID, VERSION

TRACE = 'trace'
"""The argument of a task that contains its trace."""
METHODS = frozenset({'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'})
PARENT = TraceContextTextMapPropagator()
HEADERS = {name: environ_key(name) for name in PARENT.fields}


def provider_of(binary: str) -> TracerProvider:
    """A provider as configured by OTEL_*. Raises cfg.ConfigFileValueError for an exporter that is not installed."""
    # The environment variables take precedence.
    own = {} if os.environ.get('OTEL_SERVICE_NAME') else {SERVICE_NAME: binary}
    provider = TracerProvider(resource=Resource.create(own))
    for name in os.environ.get('OTEL_TRACES_EXPORTER', 'otlp').split(','):
        if name.strip() != 'none':
            provider.add_span_processor(BatchSpanProcessor(_exporter(name.strip())))
    return provider


def _exporter(name: str) -> Any:
    if name == 'otlp':
        protocols = ('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL')
        protocol = next(filter(None, map(os.environ.get, protocols)), 'http/protobuf')
        name = f'otlp_proto_{protocol.partition("/")[0]}'
    found = [*entry_points(group='opentelemetry_traces_exporter', name=name)]
    if not found:
        raise cfg.ConfigFileValueError(
            f'OTEL_TRACES_EXPORTER: there is no {name}; the extra `tracing` has otlp over HTTP'
        )
    return found[0].load()()


class Traces:
    """Creates spans."""

    def __init__(self, provider: TracerProvider):
        self.provider, self.tracer = provider, provider.get_tracer('computeapi', __version__)

    def end(self) -> None:
        """Export the remaining spans."""
        self.provider.shutdown()

    @contextmanager
    def span(self, name: str, kind: SpanKind, attributes: Mapping[str, Any], parent: Any = None) -> Iterator[Span]:
        """A span for the block. NotYet is not an error."""
        with self.tracer.start_as_current_span(
            name, parent, kind, attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except NotYet:
                span.set_attribute('computeapi.waits', True)
                raise
            except BaseException as error:
                span.set_status(StatusCode.ERROR, type(error).__name__)
                raise

    # ------------------------------------------------------------------ hooks

    def requests(self, app: WSGIApp) -> WSGIApp:
        return TracedRequests(app, self)

    def tasks(self, work: Work) -> Work:
        def do(task: Task) -> None:
            attributes = {
                'computeapi.task.kind': task.kind,
                'computeapi.task.attempt': tries(task),
                'computeapi.server_id': task.server_id,
                'computeapi.request_id': task.context.get('request_id') or '',
            }
            parent = PARENT.extract(task.arguments.get(TRACE, {}), current.Context())
            steps = STEPS.set(self.step)
            try:
                with self.span(f'task {task.kind}', SpanKind.CONSUMER, attributes, parent) as span:
                    work(task)
                    if FAULT in task.arguments:
                        span.set_status(StatusCode.ERROR, 'failed')
            finally:
                STEPS.reset(steps)

        return do

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """A span for a step of a task, with the name of its event."""
        with self.span(name, SpanKind.INTERNAL, {}):
            yield

    def neighbours(self, name_of: Names, ask: Ask) -> Ask:
        def ask_in_span(url: str, method: str, *args: Any, **kwargs: Any) -> Any:
            name = name_of(url)
            attributes = {'http.request.method': method, 'computeapi.service': name}
            with self.span(f'{method} {name}', SpanKind.CLIENT, attributes) as span:
                kwargs['headers'] = {**(kwargs.get('headers') or {}), **self.mark()}
                answer = ask(url, method, *args, **kwargs)
                span.set_attribute('http.response.status_code', answer.status_code)
                if answer.status_code >= 400:
                    span.set_status(StatusCode.ERROR)
                return answer

        return ask_in_span

    def hypervisor(self, driver: Hypervisor) -> Hypervisor:
        return cast(Hypervisor, TracedDriver(driver, self))

    def of_task(self) -> dict[str, Any]:
        """The arguments with which a task becomes part of the current trace."""
        found = self.mark()
        return {TRACE: found} if found else {}

    def mark(self) -> dict[str, str]:
        """The headers that make a call to another service, or a task, part of the current trace; empty if there is
        none."""
        headers: dict[str, str] = {}
        PARENT.inject(headers)
        return headers


class TracedRequests(PasteFilter):
    """traces: a span for each request, with the client's traceparent as its parent."""

    def __init__(self, app: WSGIApp, traces: Traces):
        super().__init__(app)
        self.traces = traces

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        method = environ['REQUEST_METHOD'] if environ['REQUEST_METHOD'] in METHODS else 'HTTP'
        sent = {name: environ[key] for name, key in HEADERS.items() if key in environ}
        parent = PARENT.extract(sent, current.Context())
        with self.traces.span(method, SpanKind.SERVER, {'http.request.method': method}, parent) as span:

            def start(status: str, headers: Any, exc_info: Any = None) -> Any:
                set_attributes(span, environ, int(status[:3]))
                return start_response(status, headers, exc_info)

            return self.app(environ, start)


def set_attributes(span: Span, environ: Environ, status: int) -> None:
    """Add what is known of a request."""
    operation, version = environ.get(OPERATION), environ.get(VERSION)
    if operation is not None:
        span.update_name(str(operation))
        span.set_attribute('http.route', operation.path)
    if version is not None and not isinstance(version, Exception):
        span.set_attribute('computeapi.microversion', str(version))
    span.set_attribute('http.response.status_code', status)
    span.set_attribute('computeapi.request_id', environ.get(REQUEST_ID) or '')
    if status >= 500:
        span.set_status(StatusCode.ERROR)


class TracedDriver:
    """A driver whose calls become spans, if there is a trace; their arguments are not recorded."""

    def __init__(self, driver: Hypervisor, traces: Traces):
        self._driver, self._traces = driver, traces

    def during(self, passed: Callable[[str], float], token: int = 0, task: int = 0) -> 'TracedDriver':
        return TracedDriver(self._driver.during(passed, token, task), self._traces)

    def capabilities_of(self, host: str | None) -> frozenset[Capability]:
        """Not a span: the result is known without a call to the host."""
        return self._driver.capabilities_of(host)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._driver, name)
        if not callable(found):
            return found

        def act(*args: Any, **kwargs: Any) -> Any:
            if not self._traces.mark():
                return found(*args, **kwargs)
            with self._traces.span(f'hypervisor {name}', SpanKind.CLIENT, {}):
                return found(*args, **kwargs)

        return act
