"""The simulated hypervisor of one machine, driven by an agent; it shares nothing with those of other machines."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from oslo_config import cfg

from computeapi.backends.hypervisor import Host, PowerState
from computeapi.backends.hypervisor.behaviour import Behaviour, ConfiguredRules
from computeapi.backends.hypervisor.simulated import SimulatedHypervisor
from computeapi.backends.hypervisor.simulated_hosts import SimulatedHosts, connector
from computeapi.backends.hypervisor.simulated_migration import MigrationReceiver, send
from computeapi.db.engine import Store
from computeapi.db.servers import Server
from computeapi.db.virtual_machines import DOMAINS


class LoneHost(SimulatedHosts):
    """A single host with that name and address."""

    def __init__(
        self, store: Store, options: cfg.ConfigOpts.GroupAttr, clock: Callable[[], datetime], name: str, address: str
    ):
        super().__init__(store, options, clock)
        self.name, self.address = name, address

    def all(self) -> list[Host]:
        found = self._host(1, set())
        return [replace(found, name=self.name, hypervisor_hostname=self.name, host_ip=self.address)]

    def connector(self, name: str) -> dict[str, Any]:
        return connector(self.name, self.address)


class LoneSimulatedHypervisor(SimulatedHypervisor):
    """store: its own, which contains only its machines."""

    def __init__(
        self, store: Store, options: cfg.ConfigOpts.GroupAttr, clock: Callable[[], datetime], name: str, address: str
    ):
        super().__init__(store, options, clock)
        self.behaviour = Behaviour(None, ConfiguredRules(options), self.seconds)
        self.simulated_hosts = LoneHost(store, options, clock, name, address)
        self.receiver = MigrationReceiver(store, name, address)

    def prepare_migration(self, server: Server, host: str, machine: Mapping[str, Any]) -> Mapping[str, Any]:
        super().prepare_migration(server, host, machine)
        return self.receiver.facts

    def migrate(self, server: Server, host: str, facts: Mapping[str, Any]) -> None:
        self.act('migrate', server)
        self.set_power(server, PowerState.SHUTDOWN, 'shut down')
        if host != server.host:
            send(facts, self.existing(server))

    def prepare_live_migration(self, server: Server, host: str, machine: Mapping[str, Any]) -> Mapping[str, Any]:
        super().prepare_live_migration(server, host, machine)
        return self.receiver.facts

    def live_migrate(self, server: Server, host: str, facts: Mapping[str, Any], wish: str) -> bool:
        if wish == 'cancelling':
            return False
        if wish != 'forcing':
            self.behaviour.wait('live_migrate', server)
        self.behaviour.fail('live_migrate', server)
        # It exists here until it exists there: an interrupted move is repeated, or the copy is destroyed.
        send(facts, self.existing(server))
        with self.changing(server) as connection:
            DOMAINS.delete(connection, server_id=server.uuid, host=server.host)
        return True
