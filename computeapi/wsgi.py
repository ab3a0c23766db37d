"""The compute API as a WSGI application, for any server that runs one:

    uwsgi --ini etc/computeapi/uwsgi.ini
    gunicorn --workers 4 --threads 8 computeapi.wsgi:application
    WSGIScriptAlias /compute .../computeapi/wsgi.py            (mod_wsgi)

`computeapi.wsgi:metadata` is what guests ask, by way of a proxy such as neutron-metadata-agent.

Both are set up by the files that OS_COMPUTEAPI_CONFIG_FILES names (separated by `;`), or else by
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
    """A Paste app, made at the first request: neither connections nor threads survive a fork before.

    works: whether this process does what the requests leave to be done.
    """

    def __init__(self, conf: cfg.ConfigOpts, name: str, *, works: bool):
        self.conf, self.name, self.works = conf, name, works
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
                self.app = service.load(self.name)
                if self.works:
                    service.start()
                atexit.register(self.end, service)
            return self.app

    def end(self, service: Service) -> None:
        if self.works:
            service.stop()
        service.close()


conf = config.load(config.standard_files())
application = Application(conf, 'compute', works=True)
metadata = Application(conf, 'metadata', works=False)
