"""`computeapi serve`: a complete cloud in one process, from an empty directory to answering requests."""

import argparse
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address
from types import FrameType

from oslo_config import cfg

from computeapi import config, cpu_affinity, garbage, log, malloc_arenas, ui
from computeapi.backends.encryption import Cipher
from computeapi.consoles.background import accepting_clients
from computeapi.consoles.listeners import ConsoleListener, open_default_listeners
from computeapi.db import schema
from computeapi.db.engine import store_of
from computeapi.listening import listening_at
from computeapi.main import Service
from computeapi.pipeline import load
from computeapi.serve import bootstrap, cleanup, credentials, guests
from computeapi.serve.directory import Directory, database, database_file, opened
from computeapi.serve.hooks import ServiceHooks
from computeapi.serve.http.hub import UPLOADS
from computeapi.serve.http.server import HTTPServer
from computeapi.web.filters import WSGIApp

LOG = logging.getLogger(__name__)
THREADS = 8
CONTROLLER = 'controller'
"""The host name of the control services, whatever the machine is called."""
LONELY = 'There is one; `computeapi serve --hosts 2` has two.'


def run(conf: cfg.ConfigOpts, options: argparse.Namespace, hooks: ServiceHooks | None = None) -> None:
    """Serve until SIGTERM or SIGINT; OSError if the address or the data directory is not available."""
    log.start(conf, logging.WARNING if options.quiet else logging.INFO)
    _exit_on_signals()
    malloc_arenas.limit()
    cpu_affinity.settle(conf)
    os.umask(0o077)
    with (
        ExitStack() as stack,
        listening_at(options.host, options.port) as listening,
        opened(None if options.in_memory else options.data_dir or conf.standalone.data_dir) as directory,
    ):
        configure(conf, directory)
        conf.set_default('enabled', True, 'metrics')
        warn(conf, listening)
        listeners = open_default_listeners(conf, stack, options.host, conf.api.public_url or url(listening))
        guests.share_secret(conf, directory)
        guest_sockets = guests.GuestSockets(directly=stack.enter_context(guests.direct(conf)))
        if options.metadata_port is not None:
            by_proxy = listening_at(options.host, options.metadata_port, '--metadata-port')
            guest_sockets = guest_sockets._replace(by_proxy=stack.enter_context(by_proxy))
        sockets = [listening, *guest_sockets.sockets]
        with running(conf, directory, options.admin_password, guest_sockets, hooks, listeners) as (app, passwords):
            shown = credentials.show(
                conf.api.public_url or url(listening),
                conf.api.auth_strategy,
                passwords,
                directory,
                secrets=sys.stdout.isatty(),
                page=conf.ui.enabled,
            )
            print(shown, flush=True)
            garbage.exempt_existing_objects()
            HTTPServer(app, sockets, conf.standalone, THREADS).run()


def configure(conf: cfg.ConfigOpts, directory: Directory) -> None:
    """Keep everything in the directory and use the built-in identity, unless conf says otherwise."""
    own = database(directory.path)
    conf.set_default('host', CONTROLLER)
    config.use_own_identity(conf)
    # A cloud with one host can only resize to the same host.
    conf.set_default('allow_resize_to_same_host', conf.simulated.hosts == 1)
    conf.set_default('state_path', str(directory.path / 'qemu'), 'qemu')
    if conf.hypervisor.backend == 'qemu':
        conf.set_default('hosts', conf.simulated.hosts, 'qemu')
        conf.set_default('force_config_drive', True)
    conf.set_default('connection', own, 'database')
    conf.set_default('enabled', True, 'ui')
    conf.set_default('credential_key', directory.key('credential-key'), 'identity')
    conf.set_override('data_dir', str(directory.path), 'standalone')
    if directory.temporary:
        conf.set_override('connection', own, 'database')


def warn(conf: cfg.ConfigOpts, listening: socket.socket) -> None:
    """Warn if anybody on the network is an administrator, which may not be intended."""
    address = listening.getsockname()[0]
    if conf.api.auth_strategy == 'none' and not ip_address(address).is_loopback:
        LOG.warning(
            '[api]auth_strategy is none, and %s is not a loopback address: anybody on the network is an administrator',
            address,
        )


def service_in(conf: cfg.ConfigOpts, directory: Directory, hooks: ServiceHooks) -> Service:
    """A service with its data in this directory, not started yet."""
    pool_size = max(conf.database.max_pool_size, THREADS + UPLOADS + conf.workers)
    store = store_of(conf, durable=not directory.temporary, pool_size=pool_size)
    store.clock = hooks.clock(store.clock)
    store.transaction, store.followed = hooks.transaction(store.transaction), hooks.follows
    service = Service(
        conf,
        store,
        lonely=LONELY,
        binary='computeapi-serve',
        wrap_driver=hooks.driver,
        wrap_neighbour=hooks.neighbour,
        wrap_work=hooks.work,
    )
    if conf.hypervisor.backend != 'simulated':
        service.password_cipher = Cipher([directory.key('password-key')])
    return service


@contextmanager
def running(
    conf: cfg.ConfigOpts,
    directory: Directory,
    admin_password: str | None = None,
    guest_sockets: guests.GuestSockets = guests.NOWHERE,
    hooks: ServiceHooks | None = None,
    listeners: Sequence[ConsoleListener] = (),
) -> Iterator[tuple[WSGIApp, dict[str, str]]]:
    """Run the service, with its tables and the initial content; yields the app and the passwords of the users.

    guest_sockets: the sockets for guests, if there are any.  listeners: the sockets for consoles, if there are any.
    """
    with ExitStack() as stack:
        hooks = hooks or ServiceHooks()
        hooks.configure(conf)
        service = service_in(conf, directory, hooks)
        stack.callback(service.close)
        if directory.temporary and conf.hypervisor.backend == 'qemu':
            # Otherwise they would keep running, unknown to anybody.
            stack.callback(cleanup.end_all, service)
        if directory.temporary:
            stack.callback(cleanup.end_exports, service)
        with hooks.beginning():
            with service.store.error_log.silenced():
                (schema.create if directory.temporary else schema.upgrade)(service.store)
                passwords = bootstrap.prepare(service, directory, admin_password)
            app = load(service, 'standalone')
            metadata = guest_sockets.apps(service)
            app = guests.ByPort(app, metadata)
            # The directory is locked, so tasks of a previous process can be taken over at once.
            service.start(alone=service.store.url.database == str(database_file(directory.path)))
            stack.callback(service.stop)
            stack.callback(hooks.end)
            hooks.begin(service, directory)
        stack.enter_context(accepting_clients(listeners, lambda: service.cloud.consoles, conf))
        app = hooks.app(app)
        page = ui.beside(app, conf, hooks.control_token, service)
        # Guests get no web interface.
        yield guests.ByPort(page, dict.fromkeys(metadata, app)), passwords


def url(listening: socket.socket) -> str:
    """The URL of the service on this machine."""
    host, port = listening.getsockname()[:2]
    host = {'0.0.0.0': '127.0.0.1', '::': '::1'}.get(host, host)
    return f'http://[{host}]:{port}' if ':' in host else f'http://{host}:{port}'


def _exit_on_signals() -> None:
    """Exit by an exception, so that everything is cleaned up; a second signal is ignored."""

    def stop(number: int, frame: FrameType | None) -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)
        raise SystemExit(0)

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, stop)
