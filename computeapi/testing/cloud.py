"""A cloud in this process, in memory, which goes away with the test."""

import copy
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

import yaml
from oslo_config import cfg

from computeapi import config, serve
from computeapi.kit.around import CONTROL_PATH, TOKEN_VARIABLE, URL_VARIABLE, Kit
from computeapi.kit.clock import CloudClock
from computeapi.kit.events import Events
from computeapi.kit.faults import Faults
from computeapi.kit.hints import Hints
from computeapi.kit.journal import Journal
from computeapi.kit.outages import CellOutages, HostOutages, NeighbourOutages
from computeapi.kit.plans import Plans
from computeapi.kit.releases import options_of
from computeapi.kit.scenes import exporting
from computeapi.kit.scenes.accounts import UserAccount
from computeapi.kit.scenes.document import commented
from computeapi.kit.seed import NOTHING, Seed
from computeapi.kit.snapshots import CloudSnapshot
from computeapi.kit.tools import INITIAL, Tools
from computeapi.kit.webhooks import Webhooks
from computeapi.listening import listening_at
from computeapi.serve import consoles, credentials
from computeapi.serve.directory import Directory, opened
from computeapi.serve.http.server import HTTPServer

if TYPE_CHECKING:
    from openstack.connection import Connection

HOST = '127.0.0.1'
POLICY_FILE = 'oslo_policy', 'policy_file'
NOT_THERE = 'The cloud is not there: start it, or use it in a `with`.'
Options = Mapping[tuple[str, str], object]
"""Of the configuration, by group and name."""


Prepare = Callable[[Directory], None]
"""Puts into a new directory what a cloud begins with."""


def empty(directory: Directory) -> None:
    """It begins with nothing, and makes what it needs."""


class Cloud:
    """An OpenStack cloud at a port of the loopback: compute with its own identity, images, networks, volumes and hosts.

        with Cloud(hosts=3) as cloud:
            cloud.connection().compute.create_server(...)

    hosts: how many are simulated.  port: 0 takes one that is free.  options: of the configuration, by group and
    name, e.g. {('quota', 'instances'): 3}; the file for a service on this machine is not looked at.
    conf: all of the configuration, instead of hosts and options.
    release: of OpenStack, such as 2023.1 or antelope, whose microversions it offers; computeapi.errors.Invalid.
    prepare: what puts something into its directory before the start.
    journal: a file to which each request is appended with its answer, as a line of JSON.
    load: a file that says what it has to begin with, or what such a file holds; see `load`.
    told: hears of each user of it.
    seed: of ids, addresses and passwords, which are then the same each time.
    webhook_allow: networks that webhooks may lead to, such as 10.1.0.0/16, besides the loopback.
    OSError when the port, or a file, cannot be had, oslo_config.cfg.Error for options that do not fit.
    """

    url: str
    """Where it is, without a slash at the end."""
    clouds_yaml: Path
    """A file for clients, with a cloud for each of its users whose password is known."""
    control_token: str
    """What the control API, which is at /control of `url`, takes in the header X-Control-Token."""

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
        told: Callable[[UserAccount], None] = lambda account: None,
        seed: int | None = None,
        webhook_allow: Iterable[str] = (),
    ):
        newest = {} if release is None else options_of(release)
        given = dict(options or {})
        if rules := given.get(POLICY_FILE):
            # Of one that is not found, nobody hears: there are the usual rules then.
            given[POLICY_FILE] = str(Path(str(rules)).resolve(strict=True))
        self._conf = conf or config.load(overrides={('simulated', 'hosts'): hosts, **newest, **given})
        self._port, self._prepare, self._journal_file = port, prepare, journal
        self._scene = Path(load) if isinstance(load, str) else load
        self._told, self._given = told, list[UserAccount]()
        self._seed, self._drawn = seed, NOTHING
        self._webhook_allow = tuple(webhook_allow)
        self._accounts: dict[str, UserAccount] = {}
        self._accounts_then = WeakKeyDictionary[CloudSnapshot, dict[str, UserAccount]]()
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
        """Be there; when it returns, requests are answered."""
        if self._stack is not None:
            raise RuntimeError('The cloud is there already.')
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
        kit = Kit(None, self._journal_file, self._scene, self._told, seed, self._webhook_allow)
        stack.enter_context(closing(kit))
        doors = consoles.open_doors(conf, stack, HOST, conf.api.public_url or serve.url(listening))
        app, own = stack.enter_context(serve.running(conf, self._directory, surroundings=kit, doors=doors))
        self._tools, self.control_token = kit.tools, kit.token
        self._accounts = {user: UserAccount.own(user, password) for user, password in own.items()}
        self._learn((*self._given, *kit.tools.accounts))
        self._accounts_then[kit.tools.snapshots.get(INITIAL)] = dict(self._accounts)
        stack.enter_context(HTTPServer(app, [listening], conf.standalone, serve.THREADS).in_background())
        self.url = serve.url(listening)
        self._connections = stack.enter_context(ExitStack())
        self._write_clouds()

    def _learn(self, accounts: Iterable[UserAccount]) -> None:
        """Know these by their names, of several domains those that came later with their domain."""
        for each in accounts:
            known = self._accounts.get(each.user, each)
            self._accounts[each.user if known.domain == each.domain else f'{each.user}@{each.domain}'] = each

    def _write_clouds(self) -> None:
        clouds = credentials.clouds_of(self.url, self._conf.api.auth_strategy, self.passwords)
        if self._conf.api.auth_strategy == 'local':
            for user in self._accounts:
                clouds['clouds'][credentials.name_of(user)] = self._facts(user)
        self.clouds_yaml = self._directory.write('clouds.yaml', yaml.safe_dump(clouds, sort_keys=False))

    def stop(self) -> None:
        """Go away, with everything that it had; connections are closed. What it was asked can be read on.

        A process that was forked from its own leaves it where it is.
        """
        if self._stack is not None and self._process == os.getpid():
            self._stack.close()
            self._stack = None

    @property
    def tools(self) -> Tools:
        """What can be done to it; RuntimeError while it is not there, and in a process that was forked from its own."""
        if self._stack is None:
            raise RuntimeError(NOT_THERE)
        return self._records

    @property
    def _records(self) -> Tools:
        """The same, for what can be read after its end."""
        if self._tools is None:
            raise RuntimeError(NOT_THERE)
        if self._process != os.getpid():
            raise RuntimeError(
                f'The cloud is in process {self._process}; one that was forked from it has only its URL.'
            )
        return self._tools

    @property
    def environ(self) -> dict[str, str]:
        """Variables by which a command that is run with them finds the cloud, as its administrator.

        OS_AUTH_URL, OS_PASSWORD and so on, OS_CLIENT_CONFIG_FILE for those that choose with OS_CLOUD among
        `computeapi` and `computeapi-demo`, and where `computeapi control` finds it. To be added to `os.environ`.
        """
        return {
            **credentials.variables_of(self._facts('admin')),
            'OS_CLIENT_CONFIG_FILE': str(self.clouds_yaml),
            URL_VARIABLE: self.url + CONTROL_PATH,
            TOKEN_VARIABLE: self.control_token,
        }

    def connection(self, user: str = 'admin', **options: Any) -> 'Connection':
        """openstacksdk's Connection as this user of the cloud; needs the package openstacksdk.

        options: as `openstack.connect` takes them, e.g. compute_default_microversion='2.96'.
        KeyError for a user whose password is not among `passwords`, RuntimeError while the cloud is not there.
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
        """By the names of its users: `admin` and `demo`, each with a project of its own name, and those loaded; one who
        is called like another of another domain has the domain in its name here: `demo@east`."""
        return {user: account.password for user, account in self._accounts.items()}

    def load(self, given: Path | str | Mapping[str, Any]) -> None:
        """Add what a file describes (YAML or JSON), or what it would hold: projects, networks, servers in any state ...

        computeapi.errors.Invalid with the line and the place of what cannot be; then nothing of it is there.
        """
        found = self.tools.load(Path(given) if isinstance(given, str) else given)
        self._learn(found)
        self._write_clouds()

    def export(self, path: Path | str | None = None, *, hashes: bool = False) -> dict[str, Any]:
        """All that it has, as `load` takes it, also written to a file if one is named.

        hashes: whether users keep their passwords, as hashes; else new ones are made where it is loaded.
        """
        with self.tools.standing_still():
            document, left_out = exporting.export(self.tools.service, hashes=hashes)
        if path is not None:
            Path(path).write_text(commented(document, left_out))
        return document

    @property
    def journal(self) -> Journal:
        """What was asked of it since the start or the last reset: `cloud.journal.count('POST /servers')`."""
        return self._records.journal

    @property
    def events(self) -> Events:
        """What happened in it: `cloud.events.wait_for(server='web', status='ACTIVE')`, `cloud.events.entries()`."""
        return self._records.events

    @property
    def webhooks(self) -> Webhooks:
        """Who is sent events: `cloud.webhooks.add('http://127.0.0.1:9000/', types=['server'])`."""
        return self.tools.webhooks

    @property
    def clock(self) -> CloudClock:
        """The time that it lives by: `clock.step(hours=2)`, `clock.freeze()`, `clock.run(60)`."""
        return self.tools.clock

    @property
    def hints(self) -> Hints:
        """What clients were told of other versions, in the header Computeapi-Hint: `cloud.hints.given`."""
        return self._records.hints

    @property
    def faults(self) -> Faults:
        """What goes wrong: `with cloud.faults.add(operation='POST /servers', status=503, retry_after=1) as rule:`, and
        `rule.hits`."""
        return self.tools.faults

    @property
    def plans(self) -> Plans:
        """How long states last: `cloud.plans.add(state='BUILD', reads=2)`, `cloud.plans.release('web')`."""
        return self.tools.plans

    @property
    def hosts(self) -> HostOutages:
        """Which hosts are down: `with cloud.hosts.down('compute1'):`."""
        return self.tools.hosts

    @property
    def cells(self) -> CellOutages:
        """Which cells are down: `cloud.cells.down('cell1')`, `cloud.cells.up('cell1')`."""
        return self.tools.cells

    @property
    def neighbours(self) -> NeighbourOutages:
        """Which of the services beside compute are away: `with cloud.neighbours.down('volume'):`."""
        return self.tools.neighbours

    def dry_run(self, body: Mapping[str, Any], **who: Any) -> dict[str, Any]:
        """What POST /servers would do with this body; nothing is made: computeapi.kit.rehearsal.DryRun.create_server.

        who: microversion='2.1', user='demo', project='demo'.
        """
        return self.tools.dry_run.create_server(body, **who)

    def reset(self) -> None:
        """Be as it was after the start; connections are closed, and those that are used again open anew."""
        self.tools.reset()
        # A process of many tests would have too many files open.
        self._connections.close()
        self._recall(INITIAL)

    def snapshot(self, name: str) -> None:
        """Remember under this name what there is now; computeapi.errors.Conflict if the name is taken."""
        self.tools.snapshot(name)
        self._accounts_then[self.tools.snapshots.get(name)] = dict(self._accounts)

    def restore(self, name: str) -> None:
        """Be as it was when the snapshot was taken; computeapi.errors.NotFound."""
        self.tools.restore(name)
        self._recall(name)

    def _recall(self, name: str) -> None:
        """Know the users of this snapshot, unless it was taken by others."""
        then = self._accounts_then.get(self.tools.snapshots.get(name), self._accounts)
        if self._accounts != then:
            self._accounts = dict(then)
            self._write_clouds()

    def branch(self, name: str | None = None) -> 'Cloud':
        """Another cloud that begins with the snapshot *name*, or with what is there now; computeapi.errors.NotFound.

        It has the same users, passwords and options, goes its own way, and is to be started while this one is there.
        """
        snapshot = self.tools.now() if name is None else self.tools.snapshots.get(name)

        def prepare(directory: Directory) -> None:
            if self._stack is None:
                raise RuntimeError(NOT_THERE)
            self._directory.copy_to(directory)
            snapshot.begin(directory)

        conf, allowed = copy.deepcopy(self._conf), self._webhook_allow
        other = Cloud(conf=conf, prepare=prepare, seed=self._seed, webhook_allow=allowed)
        other._given = list(self._accounts_then.get(snapshot, self._accounts).values())
        other._drawn = snapshot.drawn
        return other
