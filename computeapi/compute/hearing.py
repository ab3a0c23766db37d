"""The endpoint for the agents of hosts: they report that they live, what their hosts are, and what runs there."""

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

import sqlalchemy as sa

from computeapi.backends.hypervisor import Host
from computeapi.backends.hypervisor.remote.calls import EXPECTATION, REPORT, Expectation, Report
from computeapi.backends.hypervisor.remote.signing import is_signed, key_of
from computeapi.compute.hosts import HostRegistry
from computeapi.db import audits, hypervisors
from computeapi.db import servers as rows
from computeapi.db.agents import Agent
from computeapi.db.engine import Store
from computeapi.states import VMState

LOG = logging.getLogger(__name__)
WITH_MACHINES = frozenset(VMState) - {VMState.BUILDING, VMState.ERROR, VMState.SHELVED_OFFLOADED, VMState.DELETED}
"""The states of servers that have a virtual machine."""


class AgentHearing:
    """Agents can call its public method; they learn nothing about hosts other than their own.

    returned: called when the agent of a host starts, with the name of the host and the servers whose machines it found;
    it runs in a thread of its own, one at a time for each host.
    secret: the secret from which the keys of agents are derived; None: all reports are trusted.
    """

    def __init__(
        self,
        store: Store,
        registry: HostRegistry,
        returned: Callable[[str, Collection[str]], None],
        secret: str | None = None,
    ):
        self._store, self._registry, self._returned, self._secret = store, registry, returned, secret
        self._lock, self._returning = threading.Lock(), set[str]()

    def report(self, context: Mapping[str, Any], report: Mapping[str, Any], **unknown: Any) -> Any:
        """Record a report of an agent about its host, and answer what should be on that host."""
        said: Report = REPORT.read(report)
        key = key_of(self._secret, said.host.name) if self._secret else None
        if not is_signed(key, 'report', {'report': report, **unknown}):
            LOG.warning('A report of host %s is rejected: it is not signed with its key', said.host.name)
            return EXPECTATION.write(Expectation(refused=f'it is not signed with the key of host {said.host.name}'))
        if self._store.ask(is_of_another, said.host):
            hostname = said.host.hypervisor_hostname
            LOG.warning(
                'A report of host %s is rejected: hypervisor %s belongs to another host', said.host.name, hostname
            )
            return EXPECTATION.write(Expectation(refused=f'hypervisor {hostname} is of another host'))
        now = self._store.clock()
        agent = Agent(
            host=said.host.name,
            id=said.id,
            release=said.release,
            pid=said.pid,
            machine=said.machine,
            capabilities=sorted(each.name for each in said.capabilities),
            connector=said.connector,
            started_at=now,
            seen_at=now,
        )
        self._registry.heard(said.host, agent)
        if not said.arriving:
            return EXPECTATION.write(Expectation())
        LOG.info('The agent of host %s has connected: %s, process %d', agent.host, agent.release, agent.pid)
        with self._lock:
            if agent.host not in self._returning:
                self._returning.add(agent.host)
                name, arguments = f'return-{agent.host}', [agent.host, said.machines]
                threading.Thread(target=self._return, args=arguments, name=name, daemon=True).start()
        return EXPECTATION.write(self._expected(said))

    def _return(self, host: str, machines: Collection[str]) -> None:
        try:
            self._returned(host, machines)
        finally:
            with self._lock:
                self._returning.remove(host)

    def _expected(self, said: Report) -> Expectation:
        host = said.host.name
        with self._store.read() as connection:
            expected = {each.uuid for each in rows.on_host(connection, host, WITH_MACHINES)}
            claimed = {server_id for server_id, there in audits.claims_of(connection, said.machines) if there == host}
            stray = audits.known(connection, set(said.machines) - claimed)
            # A deletion in progress may have found the host down; it keeps its claim there until it ends.
            leaving = stray | audits.going(connection, said.machines)
        return Expectation(sorted(expected), sorted(claimed), sorted(leaving))


def is_of_another(connection: sa.Connection, host: Host) -> bool:
    """Whether a hypervisor of that name belongs to another host."""
    hostname = host.hypervisor_hostname
    return hypervisors.exists(connection, None, hostname) and not hypervisors.exists(connection, host.name, hostname)
