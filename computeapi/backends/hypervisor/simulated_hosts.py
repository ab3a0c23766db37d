"""The hosts of the simulated hypervisor: their resources, and whether they are on."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.backends.hypervisor import Host, HypervisorError, PowerState
from computeapi.clock import utcnow
from computeapi.db.declared_hosts import DECLARED, DeclaredHost
from computeapi.db.engine import Store
from computeapi.db.virtual_machines import DOMAINS, HOSTS_OFF, note_off

CPU = {
    'arch': 'x86_64',
    'vendor': 'Simulated',
    'model': 'qemu64',
    'features': ['sse2', 'pge', 'mca'],
    'topology': {'cores': 1, 'threads': 1, 'sockets': 1},
}


def address(number: int) -> str:
    """A distinct address for each host: access to shares is granted by host address."""
    return f'127.0.{number // 256 % 256}.{number % 256}'


def connector(name: str, ip: str) -> dict[str, Any]:
    """The connector properties of a host with an iSCSI initiator."""
    return {
        'host': name,
        'ip': ip,
        'initiator': f'iqn.2024-01.org.computeapi:{name}',
        'multipath': False,
        'do_local_attach': False,
        'platform': CPU['arch'],
        'os_type': 'linux',
    }


def _declared(host: DeclaredHost, off: set[str]) -> Host:
    facts = host._asdict()
    del facts['id']
    name = facts.pop('host')
    facts |= {'traits': host.traits or (), 'resources': host.resources or {}}
    return Host(name=name, **facts, on=name not in off)


class SimulatedHosts:
    """The declared hosts if there are any, else as many as *options* say, named compute1, compute2 ... or as
    configured.

    options: the group [simulated] of the configuration.
    """

    def __init__(self, store: Store, options: cfg.ConfigOpts.GroupAttr, clock: Callable[[], datetime] = utcnow):
        self.store, self.options, self.clock = store, options, clock

    def all(self) -> list[Host]:
        with self.store.read() as connection:
            off = {each.host for each in HOSTS_OFF.all(connection, HOSTS_OFF.select)}
            declared = DECLARED.every(connection)
        if declared:
            return [_declared(each, off) for each in declared]
        return [self._host(number, off) for number in range(1, self.options.hosts + 1)]

    def connector(self, name: str) -> dict[str, Any]:
        with self.store.read() as connection:
            declared = DECLARED.find(connection, host=name)
        return connector(name, address(int(re.sub(r'\D', '', name) or 0)) if declared is None else declared.host_ip)

    def _host(self, number: int, off: set[str]) -> Host:
        name = f'{self.options.host_name}{number}'
        return Host(
            name=name,
            hypervisor_hostname=name,
            hypervisor_type=self.options.hypervisor_type,
            hypervisor_version=1000,
            host_ip=address(number),
            vcpus=self.options.vcpus,
            memory_mb=self.options.memory_mb,
            local_gb=self.options.local_gb,
            cpu_info=CPU,
            cell=f'cell{(number - 1) % self.options.cells + 1}',
            on=name not in off,
            traits=self.options.traits,
            resources=self.options.resources,
        )

    def switch(self, host: str, on: bool) -> None:
        with self.store.write() as connection:
            if on:
                HOSTS_OFF.delete(connection, host=host)
            else:
                note_off(connection, host, self.clock())
                DOMAINS.update(connection, {'power_state': int(PowerState.SHUTDOWN)}, host=host)


def check_on(connection: sa.Connection, host: str | None) -> None:
    """HypervisorError if the host is off."""
    if HOSTS_OFF.find(connection, host=host) is not None:
        raise HypervisorError(f'Host {host} is off.')
