"""The endpoint for the agents of hosts: they report that they are alive, the facts about their hosts, and the virtual
machines there."""

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any

import orjson
import sqlalchemy as sa
from oslo_config import cfg
from oslo_utils.uuidutils import is_uuid_like

from computeapi.backends.hypervisor import Host
from computeapi.backends.hypervisor.remote.calls import EXPECTATION, REPORT, Expectation, Report
from computeapi.backends.hypervisor.remote.codec import UNREADABLE
from computeapi.backends.hypervisor.remote.signing import Keys, is_signed, keys_of
from computeapi.compute.hosts import HostRegistry
from computeapi.db import audits, hypervisors, servers
from computeapi.db.agents import Agent
from computeapi.db.engine import Store
from computeapi.errors import DatabaseError
from computeapi.states import VMState

LOG = logging.getLogger(__name__)
WITH_MACHINES = frozenset(VMState) - {VMState.BUILDING, VMState.ERROR, VMState.SHELVED_OFFLOADED, VMState.DELETED}
"""The states of servers that have a virtual machine."""
MAX_BYTES = 2**20
"""The size limit of a report; tens of thousands of virtual machines fit."""
Networks = Sequence[IPv4Network | IPv6Network]


class AgentReports:
    """Agents can call its public method; they learn nothing about hosts other than their own.

    returned: called when the agent of a host starts, with the name of the host and the servers whose machines it found;
    it runs in a thread of its own, one at a time for each host.
    secrets: those from which the keys of agents are derived; empty: all reports are trusted.
    networks: those in which the addresses of hosts must lie; empty: any.
    """

    def __init__(
        self,
        store: Store,
        registry: HostRegistry,
        returned: Callable[[str, Collection[str]], None],
        secrets: Keys = (),
        networks: Networks = (),
    ):
        self._store, self._registry, self._returned, self._secrets = store, registry, returned, secrets
        self._networks = networks
        self._lock, self._returning = threading.Lock(), set[str]()

    def report(self, context: Mapping[str, Any], report: Mapping[str, Any], **unknown: Any) -> Any:
        """Record a report of an agent about its host, and answer what should be on that host."""
        try:
            received: Report = read(report)
        except UNREADABLE:
            LOG.warning('A report is rejected: it is not valid')
            return EXPECTATION.write(Expectation(refused='it is not valid'))
        try:
            refused = self._refusal(received, {'report': report, **unknown})
            if refused:
                LOG.warning('A report of host %s is rejected: %s', received.host.name, refused)
            return EXPECTATION.write(Expectation(refused=refused) if refused else self._record(received))
        except DatabaseError as error:
            # The store has already logged it.
            return EXPECTATION.write(Expectation(refused=str(error)))

    def _record(self, received: Report) -> Expectation:
        now = self._store.clock()
        agent = Agent(
            host=received.host.name,
            id=received.id,
            release=received.release,
            pid=received.pid,
            machine=received.machine,
            capabilities=sorted(each.name for each in received.capabilities),
            # Storage must not take it for another host.
            connector=received.connector | {'host': received.host.name},
            started_at=now,
            seen_at=now,
        )
        self._registry.record_report(received.host, agent)
        if not received.arriving:
            return Expectation()
        LOG.info('The agent of host %s has connected: %s, process %d', agent.host, agent.release, agent.pid)
        with self._lock:
            if agent.host not in self._returning:
                self._returning.add(agent.host)
                name, arguments = f'return-{agent.host}', [agent.host, received.machines]
                threading.Thread(target=self._return, args=arguments, name=name, daemon=True).start()
        return self._expected(received)

    def _refusal(self, received: Report, message: Mapping[str, Any]) -> str | None:
        """Why the report is rejected, if it is."""
        host = received.host
        if not is_signed(keys_of(self._secrets, host.name), 'report', message):
            return f'it is not signed with the key of host {host.name}'
        if self._networks and not is_within(host.host_ip, self._networks):
            return f'its address {host.host_ip} is not in [agent]allowed_networks'
        return self._store.query(misnamed, host)

    def _return(self, host: str, machines: Collection[str]) -> None:
        try:
            self._returned(host, machines)
        except DatabaseError:
            # The agent reports what is there until nothing is left to remove.
            pass
        finally:
            with self._lock:
                self._returning.remove(host)

    def _expected(self, received: Report) -> Expectation:
        host = received.host.name
        with self._store.read() as connection:
            expected = {each.uuid for each in servers.on_host(connection, host, WITH_MACHINES)}
            claimed = {
                server_id for server_id, there in audits.claims_of(connection, received.machines) if there == host
            }
            there = {server_id for server_id, place in audits.places_of(connection, received.machines) if place == host}
            # A deletion in progress may have found the host down; it keeps its claim there until it ends.
            leaving = audits.known(connection, there - claimed) | audits.going(connection, there | claimed)
        return Expectation(sorted(expected), sorted(claimed), sorted(leaving))


def read(report: Mapping[str, Any]) -> Report:
    """UNREADABLE for a report that no agent sends, or that cannot be stored."""
    received: Report = REPORT.read(report)
    host = received.host
    texts = [(each, 64) for each in (host.hypervisor_type, host.host_ip, received.release)]
    texts += [(received.id, 36), *((each, 255) for each in (host.name, host.hypervisor_hostname, received.machine))]
    texts += [(each, 255) for each in (*host.traits, *host.resources)]
    numbers = [host.hypervisor_version, host.vcpus, host.memory_mb, host.local_gb, received.pid]
    numbers += host.resources.values()
    if (
        None in (host.cpu_info, received.capabilities, received.connector)
        or len(orjson.dumps(report)) > MAX_BYTES
        or any(not 0 < len(text) <= longest or not text.isprintable() for text, longest in texts)
        or any(not 0 <= number < 2**31 for number in numbers)
        or not all(map(is_uuid_like, received.machines))
    ):
        raise ValueError('not a report')
    # Cells are the administrator's.
    return replace(received, host=replace(host, cell=Host.cell))


def is_within(address: str, networks: Networks) -> bool:
    """Whether it is an address, and not a name that could stand for any, in one of the networks."""
    try:
        return any(ip_address(address) in each for each in networks)
    except ValueError:
        return False


def misnamed(connection: sa.Connection, host: Host) -> str | None:
    """What is wrong with the name of its hypervisor, if anything: it never changes, and belongs to one host."""
    hostname = host.hypervisor_hostname
    if hypervisors.exists(connection, host.name, hostname):
        return None
    if hypervisors.exists(connection, None, hostname):
        return f'hypervisor {hostname} is of another host'
    if hypervisors.exists(connection, host.name, None):
        return f'host {host.name} has another hypervisor than {hostname}'
    return None


def networks_of(conf: cfg.ConfigOpts) -> Networks:
    """The networks of hosts; cfg.ConfigFileValueError."""
    try:
        return [ip_network(text) for text in conf.agent.allowed_networks]
    except ValueError as error:
        raise cfg.ConfigFileValueError(f'[agent]allowed_networks: {error}') from None
