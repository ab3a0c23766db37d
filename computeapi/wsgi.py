"""The compute API as a WSGI application, for any WSGI server:

    uwsgi --ini etc/computeapi/uwsgi.ini
    gunicorn --workers 4 --threads 8 computeapi.wsgi:application
    WSGIScriptAlias /compute .../computeapi/wsgi.py            (mod_wsgi)

`computeapi.wsgi:metadata` serves the metadata of guests, behind a proxy such as neutron-metadata-agent.

Both read the config files that OS_COMPUTEAPI_CONFIG_FILES names (separated by `;`), by default
/etc/computeapi/computeapi.conf, and OS_<GROUP>__<OPTION> in the environment.

Each process of the server starts [DEFAULT]workers workers when it begins, even before the first request. Set
OS_DEFAULT__WORKERS=0 where `computeapi worker` runs alongside; COMPUTEAPI_APP=metadata implies it.
"""

import atexit
import logging
import os
import threading
from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from oslo_config import cfg

from computeapi import config, cpu_affinity, garbage, log, malloc_arenas, ui
from computeapi.errors import Unavailable
from computeapi.main import Service
from computeapi.pipeline import load
from computeapi.startup import Startup
from computeapi.web import faults
from computeapi.web.filters import WSGIApp

LOG = logging.getLogger(__name__)
MISTAKE = 'The configuration is not valid: %s'
# How long after loading this module a server may take to fork its serving processes and to set them up, e.g. to switch
# them to another user.
SETTLING_SECONDS = 1.0


class ServingProcess:
    """The service of this process, created after the last fork because connections and threads do not survive one."""

    def __init__(self, conf: cfg.ConfigOpts):
        self.conf = conf
        self.forget()

    def forget(self) -> None:
        self.lock = threading.RLock()
        self.startup: Startup | None = None
        self.apps: dict[str, WSGIApp] = {}
        self.timer = threading.Timer(SETTLING_SECONDS, self.begin_early)
        self.timer.daemon = True

    def begin(self) -> Startup:
        with self.lock:
            if self.startup is None:
                malloc_arenas.limit()
                cpu_affinity.settle(self.conf)
                garbage.begin()
                log.start(self.conf)
                self.startup = Startup(Service(self.conf))
                self.startup.start()
            return self.startup

    def begin_early(self) -> None:
        """Begin before the first request."""
        try:
            self.begin()
        except cfg.Error as error:
            LOG.critical(MISTAKE, error)

    def load(self, name: str) -> WSGIApp:
        """The app *name* of the Paste file."""
        with self.lock:
            if name not in self.apps:
                app = load(self.begin().service, name)
                self.apps[name] = ui.beside(app, self.conf) if name == 'compute' else app
                garbage.exempt_existing_objects()
            return self.apps[name]

    def end(self) -> None:
        self.no_longer_begin()
        if self.startup is not None:
            self.startup.stop()

    # Fork hooks: uwsgi calls its own; other servers are covered by os.register_at_fork.

    def begin_with_uwsgi(self, uwsgi: Any) -> None:
        """Start the timer after the fork. uwsgi calls a single post-fork function, so one that is already set is kept.

        With lazy-apps the fork has already happened. The hook must return quickly: until it does, the process does not
        notice a request to stop, and uwsgi would wait for it forever.
        """
        if uwsgi.worker_id():
            self.timer.start()
            return
        earlier = getattr(uwsgi, 'post_fork_hook', None)

        def begin() -> None:
            if earlier is not None:
                earlier()
            self.timer.start()

        uwsgi.post_fork_hook = begin

    def begin_soon(self) -> None:
        """Begin unless this process forks first, in which case it is not one that serves."""
        os.register_at_fork(before=self.no_longer_begin, after_in_child=self.begin_in_child)
        self.timer.start()

    def no_longer_begin(self) -> None:
        self.timer.cancel()
        if self.timer.is_alive():
            self.timer.join()

    def begin_in_child(self) -> None:
        self.forget()
        self.timer.start()


class Application:
    """An app of the Paste file, loaded at the first request."""

    def __init__(self, process: ServingProcess, name: str):
        self.process, self.name = process, name

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            app = self.process.apps.get(self.name) or self.process.load(self.name)
        except cfg.Error as error:
            # The server has started, because this is only known after the fork.
            LOG.critical(MISTAKE, error)
            return faults.of(Unavailable())(environ, start_response)
        startup = self.process.startup
        if startup is not None and startup.obstacle is not None:
            app = faults.of(startup.obstacle)
        return app(environ, start_response)


conf = config.load(config.standard_files())
if os.environ.get('COMPUTEAPI_APP') == 'metadata':
    # The metadata app runs no workers; other processes do the work.
    conf.set_override('workers', 0)
process = ServingProcess(conf)
application = Application(process, 'compute')
metadata = Application(process, 'metadata')
atexit.register(process.end)
try:
    import uwsgi
except ImportError:
    process.begin_soon()
else:
    process.begin_with_uwsgi(uwsgi)
