"""Availability zones: the parts of the cloud that a server can be asked into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.clock import utcnow
from computeapi.compute.hosts import COMPUTE, is_up
from computeapi.db import zones as rows
from computeapi.db.engine import Store
from computeapi.errors import Invalid

# Where the services are that run no servers.
INTERNAL = 'internal'


class Member(NamedTuple):
    """A service in a zone; up: whether it was heard of lately."""

    host: str
    binary: str
    enabled: bool
    up: bool
    seen_at: datetime | None


class Zone(NamedTuple):
    name: str
    members: Sequence[Member]

    @property
    def available(self) -> bool:
        """Whether any service in it is enabled."""
        return any(member.enabled for member in self.members)


class Zones:
    """A compute host is in the zone that the metadata of its aggregate names, or else in the default one."""

    def __init__(self, store: Store, conf: cfg.ConfigOpts, clock: Callable[[], datetime] = utcnow):
        self.store, self.clock = store, clock
        self.default = conf.default_availability_zone
        self.down_after = conf.service_down_time

    def of_host(self, connection: sa.Connection, host: str) -> str:
        """The zone of a compute host."""
        return rows.of_hosts(connection, [host]).get(host, self.default)

    def hosts_of(self, zone: str) -> list[str]:
        """The compute hosts in a zone."""
        with self.store.read() as connection:
            zones = rows.of_hosts(connection)
            return [host for host in rows.hosts(connection, COMPUTE) if zones.get(host, self.default) == zone]

    def list(self) -> list[Zone]:
        """Every zone that has a service, by name."""
        with self.store.read() as connection:
            zones, services = rows.of_hosts(connection), rows.all_services(connection)
        now = self.clock()
        members: dict[str, list[Member]] = {}
        for row in services:
            zone = zones.get(row.host, self.default) if row.binary == COMPUTE else INTERNAL
            up = is_up(row, now, self.down_after)
            members.setdefault(zone, []).append(Member(row.host, row.binary, not row.disabled, up, row.seen_at))
        return [Zone(name, found) for name, found in sorted(members.items())]

    def check(self, name: str) -> None:
        """Invalid for a zone that no server can be put into."""
        if not any(zone.available and zone.name == name != INTERNAL for zone in self.list()):
            raise Invalid('The requested availability zone is not available')
