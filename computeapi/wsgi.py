"""The compute API as a WSGI application, for any server that runs one:

    uwsgi --ini etc/computeapi/uwsgi.ini
    gunicorn --workers 4 --threads 8 computeapi.wsgi:application
    WSGIScriptAlias /compute .../computeapi/wsgi.py            (mod_wsgi)

It is set up by the files that OS_COMPUTEAPI_CONFIG_FILES names (separated by `;`), or else by
/etc/computeapi/computeapi.conf, and by OS_<GROUP>__<OPTION> in the environment.
"""

import atexit
import threading
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

from oslo_config import cfg

from computeapi import config, log
from computeapi.main import Service
from computeapi.web.filters import WSGIApp


class Application:
    """The Paste app `compute`, made at the first request: neither connections nor threads survive a fork before."""

    def __init__(self, conf: cfg.ConfigOpts):
        self.conf = conf
        self.app: WSGIApp | None = None
        self.lock = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        app = self.app or self.load()
        return app(environ, start_response)

    def load(self) -> WSGIApp:
        with self.lock:
            if self.app is None:
                log.start(self.conf)
                service = Service(self.conf)
                self.app = service.load('compute')
                service.start()
                atexit.register(_end, service)
            return self.app


def _end(service: Service) -> None:
    service.stop()
    service.close()


application = Application(config.load(config.standard_files()))
