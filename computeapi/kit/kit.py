"""The kit around a cloud for tests, which can do to the cloud what none of its own APIs can.

A service without a kit has none of this in the path of its requests.
"""

import secrets
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from oslo_config import cfg

from computeapi.backends.hypervisor import Hypervisor
from computeapi.db.engine import Transaction
from computeapi.db.tasks import Task
from computeapi.kit.control import control
from computeapi.kit.events.source import WatchedTransactions
from computeapi.kit.faults.hypervisor import FaultyHypervisor
from computeapi.kit.faults.requests import FatedApp, FaultyApp
from computeapi.kit.journal.recorder import Recorder
from computeapi.kit.reads import ReadServers
from computeapi.kit.seed import Seed
from computeapi.kit.tools import Tools
from computeapi.kit.variables import CONTROL_PATH, LOOK, TOKEN_VARIABLE, URL_VARIABLE
from computeapi.main import Service
from computeapi.serve.directory import Directory
from computeapi.serve.hooks import Backend, ServiceHooks
from computeapi.web.filters import Environ, URLMap, WSGIApp

if TYPE_CHECKING:
    from computeapi.kit.cloud_files.accounts import UserAccount
    from computeapi.kit.cloud_files.document import Document

__all__ = ['CONTROL_PATH', 'TOKEN_VARIABLE', 'URL_VARIABLE', 'Kit']

DAY = 24 * 3600
EVER = 10 * 365 * DAY
QUICK = {
    'task_sweep_interval': 1.0,
    # This process has all hosts and tasks: they must not be given up because a test advances the clock.
    'service_down_time': EVER,
    'task_lease': EVER,
}
"""Defaults, by option name, for tests. `configure` also makes password hashes cheap, because nobody attacks them."""


class Kit(ServiceHooks):
    """The tools for one cloud, with the hooks into it, and the control API, which requires `token`.

    journal: a file to which requests are appended; OSError. Close the kit at the end.
    cloud_file: a cloud file with the initial content.  on_user_loaded: is called with each user that is loaded.
    seed: from which IDs, addresses and passwords are drawn.
    webhook_allow: networks that webhooks may connect to, besides the loopback; Invalid.
    """

    def __init__(
        self,
        *,
        token: str | None = None,
        journal: Path | str | None = None,
        cloud_file: 'Path | Document | None' = None,
        on_user_loaded: 'Callable[[UserAccount], None]' = lambda account: None,
        seed: Seed | None = None,
        webhook_allow: Iterable[str] = (),
    ):
        # Hexadecimal, because a token in base64 may start with "-" and be taken for an option.
        self.token = token or secrets.token_hex(24)
        self.tools, self.on_user_loaded = Tools(cloud_file, seed, webhook_allow), on_user_loaded
        if journal is not None:
            self.tools.journal.write_to(journal)

    @property
    def control_token(self) -> str:
        return self.token

    def close(self) -> None:
        """Close files."""
        self.tools.journal.close()

    def configure(self, conf: cfg.ConfigOpts) -> None:
        for name, value in QUICK.items():
            conf.set_default(name, value)
        conf.set_default('bcrypt_cost', 4, 'identity')
        conf.set_default('idempotency_seconds', DAY, 'api')
        if self.tools.seed.on:
            # Several workers would create servers in a different order each time, and hosts and numbers depend on the
            # order.
            conf.set_default('workers', 1)

    def clock(self, clock: Callable[[], datetime]) -> Callable[[], datetime]:
        self.tools.clock.follow(clock)
        return self.tools.clock

    def transaction(self, begin: Transaction) -> Transaction:
        self.watched = WatchedTransactions(begin, self.tools.events)
        return self.watched

    def follows(self) -> bool:
        return self.watched.on

    def end(self) -> None:
        self.tools.webhooks.end()
        self.tools.events.end()
        self.tools.clock.stop()

    def driver(self, driver: Hypervisor) -> Hypervisor:
        return cast(Hypervisor, FaultyHypervisor(driver, self.tools, self.tools.behaviour()))

    def neighbour(self, name: str, backend: Backend) -> Backend:
        return self.tools.neighbours.wrap_backend(name, backend)

    def beginning(self) -> AbstractContextManager[None]:
        return self.tools.seed.during('beginning')

    def work(self, run: Callable[[Task], None]) -> Callable[[Task], None]:
        return self.tools.seed.work(run)

    def app(self, app: WSGIApp) -> WSGIApp:
        gate, tools = self.tools.gate, self.tools
        hinting = tools.hints.wrap(tools.seed.app(app))

        def pass_on(environ: Environ, start_response: Any) -> Iterable[bytes]:
            with gate.passing():
                return hinting(environ, start_response)

        def unrecorded(environ: Environ, start_response: Any) -> Iterable[bytes]:
            with gate.passing():
                return app(environ, start_response)

        read = ReadServers(tools.neighbours.wrap_app(pass_on), tools.plans)
        faulty = FaultyApp(Recorder(FatedApp(read), tools.journal), tools.faults, lambda: tools.service)

        def serve(environ: Environ, start_response: Any) -> Iterable[bytes]:
            # Reads of the web interface use up no fault rule and are not in the journal.
            return (unrecorded if environ.get(LOOK) else faulty)(environ, start_response)

        return URLMap({'/': tools.uploads.wrap(serve), CONTROL_PATH: control(self.tools, self.token)})

    def begin(self, service: Service, directory: Directory) -> None:
        self.tools.begin(service, directory)
        self.watched.on = True
        for account in self.tools.accounts.known.values():
            self.on_user_loaded(account)
