"""The metrics endpoint of a process that answers no API requests."""

from collections.abc import Iterator
from contextlib import contextmanager

from computeapi.listening import listening_at
from computeapi.main import Service
from computeapi.observers.app import metrics_app
from computeapi.serve.http.server import HTTPServer


@contextmanager
def told(service: Service) -> Iterator[None]:
    """Serve metrics at [metrics]worker_port, if it is set, for the duration of the block. Raises OSError if the address
    is not available."""
    options = service.conf.metrics
    if service.metrics is None or options.worker_port is None:
        yield
        return
    with listening_at(options.worker_host, options.worker_port, '[metrics]worker_port') as listening:
        app = metrics_app(service.metrics, service.conf)
        with HTTPServer(app, [listening], service.conf.standalone, threads=1).in_background():
            yield
