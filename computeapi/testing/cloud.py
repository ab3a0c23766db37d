"""An in-memory cloud in this process, which disappears with the test."""

import copy
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import yaml
from oslo_config import cfg

from computeapi import config, serve
from computeapi.consoles.listeners import open_default_listeners
from computeapi.kit.clock import CloudClock
from computeapi.kit.cloud_files import exporting
from computeapi.kit.cloud_files.accounts import UserAccount
from computeapi.kit.cloud_files.document import commented
from computeapi.kit.events import Events
from computeapi.kit.faults import Faults
from computeapi.kit.hints import Hints
from computeapi.kit.journal import Journal
from computeapi.kit.kit import CONTROL_PATH, TOKEN_VARIABLE, URL_VARIABLE, Kit
from computeapi.kit.outages import CellOutages, HostOutages, NeighbourOutages
from computeapi.kit.plans import Plans
from computeapi.kit.releases import options_of
from computeapi.kit.seed import NOTHING, Seed
from computeapi.kit.tools import INITIAL, Tools
from computeapi.kit.webhooks import Webhooks
from computeapi.listening import listening_at
from computeapi.serve import credentials
from computeapi.serve.directory import Directory, opened
from computeapi.serve.http.server import HTTPServer

if TYPE_CHECKING:
    from openstack.connection import Connection

HOST = '127.0.0.1'
POLICY_FILE = 'oslo_policy', 'policy_file'
NOT_THERE = 'The cloud is not there: start it, or use it in a `with`.'
Options = Mapping[tuple[str, str], object]
"""Configuration options, by group and name."""


Prepare = Callable[[Directory], None]
"""Puts the initial content of a cloud into a new directory."""


def empty(directory: Directory) -> None:
    """Put nothing into the directory: the cloud creates what it needs."""


class Cloud:
    """An OpenStack cloud on a port of the loopback: compute with its own identity, images, networks, volumes and hosts.

        with Cloud(hosts=3) as cloud:
            cloud.connection().compute.create_server(...)

    hosts: the number of simulated hosts.  port: 0 chooses a free one.  options: configuration options, by group and
    name, e.g. {('quota', 'instances'): 3}; the config file of a service on this machine is ignored.
    conf: the complete configuration, instead of hosts and options.
    release: an OpenStack release, such as 2023.1 or antelope, whose microversions are offered;
    computeapi.errors.Invalid.
    prepare: puts something into the directory of the cloud before the start.
    journal: a file to which each request is appended with its response, as a line of JSON.
    load: a cloud file with the initial content, or the content of such a file; see `load`.
    on_user_loaded: is called with each user that is loaded at the start.
    seed: makes IDs, addresses and passwords the same each time.
    webhook_allow: networks that webhooks may connect to, such as 10.1.0.0/16, besides the loopback.
    Raises OSError if the port or a file is not available, and oslo_config.cfg.Error for invalid options.
    """

    url: str
    """The URL of the cloud, without a trailing slash."""
    clouds_yaml: Path
    """A file for clients, with a cloud for each user whose password is known."""
    control_token: str
    """The token that the control API, at /control of `url`, expects in the header X-Control-Token."""

    def __init__(
        self,
        *,
        hosts: int = 1,
        port: int = 0,
        release: str | float | None = None,
        options: Options | None = None,
        conf: cfg.ConfigOpts | None = None,
        prepare: Prepare = empty,
        journal: Path | str | None = None,
        load: Path | str | Mapping[str, Any] | None = None,
        on_user_loaded: Callable[[UserAccount], None] = lambda account: None,
        seed: int | None = None,
        webhook_allow: Iterable[str] = (),
    ):
        newest = {} if release is None else options_of(release)
        given = dict(options or {})
        if rules := given.get(POLICY_FILE):
            # oslo.policy silently uses the default rules if the file does not exist.
            given[POLICY_FILE] = str(Path(str(rules)).resolve(strict=True))
        self._conf = conf or config.load(overrides={('simulated', 'hosts'): hosts, **newest, **given}, standalone=True)
        self._port, self._prepare, self._journal_file = port, prepare, journal
        self._cloud_file = Path(load) if isinstance(load, str) else load
        self._on_user_loaded, self._given = on_user_loaded, list[UserAccount]()
        self._seed, self._drawn = seed, NOTHING
        self._webhook_allow = tuple(webhook_allow)
        self._tools: Tools | None = None
        self._stack: ExitStack | None = None
        self._process = os.getpid()

    def __repr__(self) -> str:
        return '<Cloud that is not there>' if self._stack is None else f'<Cloud at {self.url}>'

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the cloud; when this returns, it answers requests."""
        if self._stack is not None:
            raise RuntimeError('The cloud has already been started.')
        with ExitStack() as stack:
            self._start(stack)
            self._process = os.getpid()
            self._stack = stack.pop_all()

    def _start(self, stack: ExitStack) -> None:
        conf = self._conf
        listening = stack.enter_context(listening_at(HOST, self._port))
        self._directory: Directory = stack.enter_context(opened(None))
        self._prepare(self._directory)
        serve.configure(conf, self._directory)
        seed = Seed(self._seed, self._drawn)
        kit = Kit(
            journal=self._journal_file,
            cloud_file=self._cloud_file,
            on_user_loaded=self._on_user_loaded,
            seed=seed,
            webhook_allow=self._webhook_allow,
        )
        stack.enter_context(closing(kit))
        listeners = open_default_listeners(conf, stack, HOST, conf.api.public_url or serve.url(listening))
        app, own = stack.enter_context(serve.running(conf, self._directory, hooks=kit, listeners=listeners))
        self._tools, self.control_token = kit.tools, kit.token
        self._learn_at_first([UserAccount.own(*each) for each in own.items()], kit.tools)
        stack.enter_context(HTTPServer(app, [listening], conf.standalone, serve.THREADS).in_background())
        self.url = serve.url(listening)
        self._connections = stack.enter_context(ExitStack())
        kit.tools.accounts.changed = self._write_clouds
        self._write_clouds()

    def _learn_at_first(self, own: Iterable[UserAccount], tools: Tools) -> None:
        """Let the tools know the initial users, before those that they have loaded."""
        loaded, tools.accounts.known = tools.accounts.known.values(), {}
        tools.accounts.add([*own, *self._given, *loaded])
        tools.snapshots.get(INITIAL).accounts = tools.accounts.known

    @property
    def _accounts(self) -> Mapping[str, UserAccount]:
        return {} if self._tools is None else self._tools.accounts.known

    def _write_clouds(self) -> None:
        clouds = credentials.clouds_of(self.url, self._conf.api.auth_strategy, self.passwords)
        if self._conf.api.auth_strategy == 'local':
            for user in self._accounts:
                clouds['clouds'][credentials.name_of(user)] = self._facts(user)
        self.clouds_yaml = self._directory.write('clouds.yaml', yaml.safe_dump(clouds, sort_keys=False))

    def stop(self) -> None:
        """Stop the cloud, delete everything in it and close connections. Its journal, events and hints stay readable.

        In a process that was forked from the one that started the cloud, this does nothing.
        """
        if self._stack is not None and self._process == os.getpid():
            self._stack.close()
            self._stack = None

    @property
    def tools(self) -> Tools:
        """The tools for this cloud. Raises RuntimeError while it is not running, and in a forked process."""
        if self._stack is None:
            raise RuntimeError(NOT_THERE)
        return self._records

    @property
    def _records(self) -> Tools:
        """The same, for what can still be read after the cloud has stopped."""
        if self._tools is None:
            raise RuntimeError(NOT_THERE)
        if self._process != os.getpid():
            raise RuntimeError(
                f'The cloud is in process {self._process}; one that was forked from it has only its URL.'
            )
        return self._tools

    @property
    def environ(self) -> dict[str, str]:
        """Environment variables with which a command finds the cloud, as its administrator.

        They are OS_AUTH_URL, OS_PASSWORD and so on, OS_CLIENT_CONFIG_FILE (for clients that choose between `computeapi`
        and `computeapi-demo` with OS_CLOUD), and the URL and token for `computeapi control`. Add them to `os.environ`.
        """
        return {
            **credentials.variables_of(self._facts('admin')),
            'OS_CLIENT_CONFIG_FILE': str(self.clouds_yaml),
            URL_VARIABLE: self.url + CONTROL_PATH,
            TOKEN_VARIABLE: self.control_token,
        }

    def connection(self, user: str = 'admin', **options: Any) -> 'Connection':
        """An openstacksdk Connection as this user; requires the package openstacksdk.

        options: as for `openstack.connect`, e.g. compute_default_microversion='2.96'.
        Raises KeyError for a user whose password is not in `passwords`, and RuntimeError while the cloud is not
        running.
        """
        if self._stack is None:
            raise RuntimeError(NOT_THERE)
        try:
            import openstack
        except ModuleNotFoundError:
            raise ModuleNotFoundError('connection() is that of openstacksdk: pip install openstacksdk') from None
        connection = openstack.connect(load_yaml_config=False, load_envvars=False, **self._facts(user), **options)
        self._connections.callback(connection.close)
        return connection

    def _facts(self, user: str) -> dict[str, Any]:
        if user not in self._accounts:
            known = ', '.join(self._accounts)
            raise KeyError(f'There is no user {user} whose password is known; there are {known}.')
        account = self._accounts[user]
        facts = credentials.cloud_of(self.url, account.user, account.password)
        facts['auth'] |= {'user_domain_name': account.domain}
        if account.project is None:
            del facts['auth']['project_name'], facts['auth']['project_domain_name']
        else:
            facts['auth'] |= {'project_name': account.project, 'project_domain_name': account.project_domain}
        return facts

    @property
    def passwords(self) -> Mapping[str, str]:
        """Passwords by user name: those of `admin` and `demo`, each with a project of the same name, and of users that
        were loaded, here or through the control API. If a user of another domain has the same name, the key includes
        the domain: `demo@east`."""
        return {user: account.password for user, account in self._accounts.items()}

    def load(self, given: Path | str | Mapping[str, Any]) -> None:
        """Add what a cloud file (YAML or JSON) or its content describes: projects, networks, servers in any state and
        so on.

        Raises computeapi.errors.Invalid with the line and place of an error; then nothing was loaded.
        """
        self.tools.load(Path(given) if isinstance(given, str) else given)

    def export(self, path: Path | str | None = None, *, hashes: bool = False) -> dict[str, Any]:
        """Everything in the cloud, as `load` takes it; also written to a file if a path is given.

        hashes: whether to include password hashes; otherwise new passwords are generated when the result is loaded.
        """
        with self.tools.paused():
            document, left_out = exporting.export(self.tools.service, hashes=hashes)
        if path is not None:
            Path(path).write_text(commented(document, left_out))
        return document

    @property
    def journal(self) -> Journal:
        """The requests since the start or the last reset: `cloud.journal.count('POST /servers')`."""
        return self._records.journal

    @property
    def events(self) -> Events:
        """The events of the cloud: `cloud.events.wait_for(server='web', status='ACTIVE')`, `cloud.events.entries()`."""
        return self._records.events

    @property
    def webhooks(self) -> Webhooks:
        """Webhooks that receive events: `cloud.webhooks.add('http://127.0.0.1:9000/', types=['server'])`."""
        return self.tools.webhooks

    @property
    def clock(self) -> CloudClock:
        """The clock of the cloud: `clock.step(hours=2)`, `clock.freeze()`, `clock.run(60)`."""
        return self.tools.clock

    @property
    def hints(self) -> Hints:
        """Hints about other versions, which clients got in the header Computeapi-Hint: `cloud.hints.given`."""
        return self._records.hints

    @property
    def faults(self) -> Faults:
        """Fault rules: `with cloud.faults.add(operation='POST /servers', status=503, retry_after=1) as rule:`, and
        `rule.hits`."""
        return self.tools.faults

    @property
    def plans(self) -> Plans:
        """Plans for how long states last: `cloud.plans.add(state='BUILD', reads=2)`, `cloud.plans.release('web')`."""
        return self.tools.plans

    @property
    def hosts(self) -> HostOutages:
        """Hosts that are down: `with cloud.hosts.down('compute1'):`."""
        return self.tools.hosts

    @property
    def cells(self) -> CellOutages:
        """Cells that are down: `cloud.cells.down('cell1')`, `cloud.cells.up('cell1')`."""
        return self.tools.cells

    @property
    def neighbours(self) -> NeighbourOutages:
        """Services other than compute that are down: `with cloud.neighbours.down('volume'):`."""
        return self.tools.neighbours

    def dry_run(self, body: Mapping[str, Any], **who: Any) -> dict[str, Any]:
        """What POST /servers would do with this body, without doing it: computeapi.kit.dry_run.DryRun.create_server.

        who: microversion='2.1', user='demo', project='demo'.
        """
        return self.tools.dry_run.create_server(body, **who)

    def reset(self) -> None:
        """Return to the initial state. Connections are closed, and reopen when they are used again."""
        self.tools.reset()
        # Otherwise a process with many tests would have too many open files.
        self._connections.close()

    def snapshot(self, name: str) -> None:
        """Save the current state under this name; computeapi.errors.Conflict if the name is taken."""
        self.tools.snapshot(name)

    def restore(self, name: str) -> None:
        """Return to the state in the snapshot; computeapi.errors.NotFound."""
        self.tools.restore(name)

    def branch(self, name: str | None = None) -> 'Cloud':
        """Another cloud that starts from the snapshot *name*, or from the current state; computeapi.errors.NotFound.

        It has the same users, passwords and options, and is independent of this one, which must be running when it
        starts.
        """
        snapshot = self.tools.now() if name is None else self.tools.snapshots.get(name)

        def prepare(directory: Directory) -> None:
            if self._stack is None:
                raise RuntimeError(NOT_THERE)
            self._directory.copy_to(directory)
            snapshot.begin(directory)

        conf, allowed = copy.deepcopy(self._conf), self._webhook_allow
        other = Cloud(conf=conf, prepare=prepare, seed=self._seed, webhook_allow=allowed)
        other._given = list(snapshot.accounts.values())
        other._drawn = snapshot.drawn
        return other
