"""Availability zones: the parts of the cloud in which a server can be requested."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from oslo_config import cfg

from computeapi.compute.cells import Cells
from computeapi.compute.scheduler.hosts import is_up
from computeapi.db import aggregates, candidates, services
from computeapi.db.engine import Store
from computeapi.db.services import COMPUTE
from computeapi.errors import Invalid

# The zone of the services that run no servers.
INTERNAL = 'internal'


class ZoneMember(NamedTuple):
    """A service in a zone; up: whether it has sent a heartbeat lately and was not forced down."""

    host: str
    binary: str
    enabled: bool
    up: bool
    seen_at: datetime | None


class Zone(NamedTuple):
    name: str
    members: Sequence[ZoneMember]

    @property
    def available(self) -> bool:
        """Whether any service in it is enabled."""
        return any(member.enabled for member in self.members)


class Zones:
    """The zone of a compute host is the one in the metadata of its aggregate, or else the default one."""

    def __init__(self, store: Store, cells: Cells, conf: cfg.ConfigOpts):
        self.store, self.cells, self.clock = store, cells, store.clock
        self.default: str = conf.default_availability_zone
        self.down_after = conf.service_down_time

    def of_host(self, host: str) -> str:
        """The zone of a compute host; the default one for an unknown host."""
        return self.store.query(aggregates.zones, [host]).get(host, self.default)

    def list(self) -> list[Zone]:
        """Every zone that has a service, by name; services whose cell is down do not count."""
        with self.store.read() as connection:
            zones, found = aggregates.zones(connection), services.select(connection)
        now, lost = self.clock(), self.cells.out_of_reach()
        members: dict[str, list[ZoneMember]] = {}
        there = [service for service in found if service.host not in lost]
        for each in sorted(there, key=lambda service: (service.host, service.binary)):
            zone = zones.get(each.host, self.default) if each.binary == COMPUTE else INTERNAL
            up = is_up(each, now, self.down_after)
            members.setdefault(zone, []).append(ZoneMember(each.host, each.binary, not each.disabled, up, each.seen_at))
        return [Zone(name, served) for name, served in sorted(members.items())]

    def check(self, name: str) -> None:
        """Invalid for a zone in which no server can be created."""
        lost, unzoned = self.cells.out_of_reach(), name == self.default
        if name == INTERNAL or not self.store.query(candidates.has_enabled_host, name, lost, unzoned=unzoned):
            raise Invalid('The requested availability zone is not available')
