"""`computeapi agent`: a process that drives the hypervisor of one machine, as workers request over the bus."""

import logging
import re
import socket
from pathlib import Path

from oslo_config import cfg
from oslo_utils.netutils import get_my_ipv4

from computeapi import log
from computeapi.agent.endpoint import AgentEndpoint
from computeapi.agent.executor import ServerExecutor
from computeapi.agent.gate import ConsoleGate
from computeapi.agent.reporting import Reporter
from computeapi.agent.server_state import ServerStates
from computeapi.backends.hypervisor.remote.calls import topic_of
from computeapi.backends.hypervisor.remote.signing import own_keys
from computeapi.bus import Bus, leave
from computeapi.compute.periodic import Periodic
from computeapi.config import neighbours
from computeapi.db import schema
from computeapi.db.engine import Store
from computeapi.lock_files import hold
from computeapi.main import Service
from computeapi.shutdown import ShutdownSignals

LOG = logging.getLogger(__name__)
REMOTE = 'remote'
# The number of calls that are answered at a time; most of them wait for an operation.
CALLS = 64
DAY = 24 * 3600
HOST_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9._-]{0,200}')


class AgentProcess:
    """All the parts of an agent; raises cfg.Error, OSError."""

    def __init__(self, conf: cfg.ConfigOpts):
        options = conf.agent
        self.host = options.host or socket.gethostname()
        conf.set_override('host', self.host, 'agent')
        conf.set_override('my_ip', options.my_ip or get_my_ipv4(), 'agent')
        check(conf, self.host)
        keys = own_keys(conf)
        for name, value in {'host_name': self.host, 'hosts': 1, 'my_ip': options.my_ip}.items():
            conf.set_override(name, value, 'qemu')
        state = Path(options.state_path)
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.lock = hold(state / 'agent.lock', f'{state} is in use by another agent')
        self.store = own_store(state)
        self.driver = Service(conf, self.store, binary='computeapi-agent').hypervisor
        self.bus = Bus(conf, topic_of(self.host))
        self.gate = ConsoleGate(self.driver, options.my_ip, options.console_port)
        self.states = ServerStates(state / 'servers')
        self.executor = ServerExecutor(self.states, options.errands)
        known = (self.host, self.driver, self.states, self.executor, self.gate)
        self.endpoint = AgentEndpoint(*known, conf.neighbour_timeout, keys)
        self.reporter = Reporter(self.bus, self.host, self.driver, keys)
        self.beat = Periodic('report', self.reporter.report, conf.report_interval)
        # It may take longer than a host may go without a report.
        self.care = Periodic('upkeep', self.driver.upkeep, conf.report_interval)
        self.tidying = Periodic('server-states', self.states.forget, DAY)

    def start(self) -> None:
        self.tidying.alarm.set()
        self.tidying.start()
        self.gate.start()
        # Calls may come from the first report on.
        self.bus.serve(topic_of(self.host), self.endpoint, CALLS)
        for each in (self.beat, self.care):
            each.alarm.set()
            each.start()

    def stop(self) -> None:
        """Stop; callers repeat operations in progress when a new agent has started."""
        for each in (self.beat, self.care, self.tidying):
            each.stop(timeout=0)
        self.bus.close()
        self.executor.close()
        self.gate.close()
        self.store.close()
        self.lock.close()


def check(conf: cfg.ConfigOpts, host: str) -> None:
    """cfg.ConfigFileValueError for a configuration that is not valid for an agent."""
    if conf.hypervisor.backend == REMOTE:
        raise cfg.ConfigFileValueError(
            '[hypervisor]backend: an agent must drive a hypervisor itself, not another agent'
        )
    if conf.agent.secret is not None:
        raise cfg.ConfigFileValueError('[agent]secret is for the control plane: an agent needs only its [agent]key')
    if not HOST_NAME.fullmatch(host):
        raise cfg.ConfigFileValueError(f'host: {host} is not a valid host name')
    if neighbours.are_among(conf, *neighbours.ASKED_BY_HOSTS):
        from computeapi.backends.neighbour import SERVICE_USER, own_auth

        # There are no callers here: all requests to other services are sent as this user.
        own_auth(conf, SERVICE_USER)


def own_store(state: Path) -> Store:
    """A store for drivers that need one: the simulated driver keeps its machines there. It is not shared."""
    store = Store(f'sqlite:///{state / "driver.db"}')
    schema.create(store)
    return store


def run(conf: cfg.ConfigOpts) -> None:
    """Work until SIGTERM or SIGINT."""
    log.start(conf)
    shutdown = ShutdownSignals()
    agent = AgentProcess(conf)
    agent.start()
    LOG.info('The agent of host %s has started', agent.host)
    shutdown.wait()
    agent.stop()
    leave()
