"""Agents in this process, connected by the broker to a driver that calls them."""

import functools
import tempfile
from pathlib import Path

from computeapi import bus, config
from computeapi.agent.process import AgentProcess
from computeapi.backends.hypervisor.remote.calls import REPORT
from computeapi.backends.hypervisor.remote.driver import RemoteHypervisor
from computeapi.compute.agent_reports import AgentReports
from computeapi.compute.hosts import HostRegistry
from tests import broker

HOSTS = ('alpha', 'beta')


def agent_conf(folder, host, **options):
    """The configuration of an agent that simulates its host. options: of [simulated]."""
    folder.mkdir()
    conf = config.load()
    conf.set_override('state_path', str(folder / 'agent'), 'agent')
    conf.set_override('host', host, 'agent')
    conf.set_override('my_ip', '127.0.0.1', 'agent')
    conf.set_override('console_port', 0, 'agent')
    for name, value in options.items():
        conf.set_override(name, value, 'simulated')
    return conf


@functools.cache
def agents():
    """One agent for each of HOSTS, for as long as this process lives."""
    folder = Path(tempfile.mkdtemp(prefix='computeapi-agents-'))
    made = []
    for host in HOSTS:
        conf = agent_conf(folder / host, host)
        with_bus(conf)
        made.append(AgentProcess(conf))
        made[-1].start()
        broker.LEAVING.append(made[-1].stop)
    return made


def with_bus(conf):
    """Configure the broker."""
    bus.register(conf)
    conf.set_override('transport_url', broker.transport_url())


def told(store, conf):
    """A driver of HOSTS, with a store to which the agents have reported."""
    longest = 20
    registered = HostRegistry(store, list, control=None, beat_seconds=0, clock=store.clock)
    agent_reports = AgentReports(store, registered, lambda host, machines: None)
    for agent in agents():
        agent_reports.report({}, REPORT.write(agent.reporter.made()))
    return RemoteHypervisor(driver_bus(), store, down_after=60, longest=longest, clock=store.clock)


@functools.cache
def driver_bus():
    conf = config.load()
    with_bus(conf)
    made = bus.Bus(conf)
    broker.LEAVING.append(made.close)
    return made
