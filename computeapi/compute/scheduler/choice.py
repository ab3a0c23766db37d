"""What of a Spec the database can decide itself: which hosts are worth a look, and which of them first."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.compute.scheduler.hosts import HostState, Ratios, states
from computeapi.compute.scheduler.spec import Spec
from computeapi.compute.server_groups import SOFT_AFFINITY, SOFT_ANTI_AFFINITY
from computeapi.db import candidates, server_groups
from computeapi.db.candidates import DISK, MEMORY, SIZES, VCPUS, Choice

AT_ONCE = 10
"""How many hosts are looked at: mostly the first will do."""
ORDERED = {'RAMWeigher': MEMORY, 'CPUWeigher': VCPUS, 'DiskWeigher': DISK}
OF_GROUPS = {'ServerGroupSoftAffinityWeigher', 'ServerGroupSoftAntiAffinityWeigher'}
"""Weighers for which all hosts are alike, unless the server is in a group with such a policy."""


class HostChoice:
    """filters, weighers: the names of those that are enabled, in order."""

    def __init__(self, conf: cfg.ConfigOpts, ratios: Ratios, filters: Collection[str], weighers: Sequence[str]):
        self.conf, self.ratios = conf, ratios
        self.up, self.zone = 'ComputeFilter' in filters, 'AvailabilityZoneFilter' in filters
        self.weighers = weighers
        self.order = tuple(ORDERED[name] for name in weighers if name in ORDERED)
        self.given = {f'ratio_{name}': ratio for name, ratio in zip(SIZES, ratios, strict=True)}

    def is_possible(self, connection: sa.Connection, spec: Spec) -> bool:
        """Whether the database knows all that the best host depends on."""
        if spec.forced or not set(self.weighers) <= ORDERED.keys() | OF_GROUPS:
            return False
        if spec.group_id is None or not OF_GROUPS.intersection(self.weighers):
            return True
        group = server_groups.get(connection, spec.group_id, members=False)
        return group is None or group.policy not in (SOFT_AFFINITY, SOFT_ANTI_AFFINITY)

    def page(self, connection: sa.Connection, spec: Spec, now: datetime, first: int) -> list[HostState]:
        """AT_ONCE hosts that may do, from that one on; fewer when there are no more."""
        choice, facts = self.asked(connection, spec, now)
        nodes = candidates.page(connection, choice, facts, first, AT_ONCE)
        return states(connection, self.conf, self.ratios, now, spec, nodes)

    def asked(self, connection: sa.Connection, spec: Spec, now: datetime) -> tuple[Choice, dict[str, Any]]:
        """What to ask of hosts, with the values."""
        needed = {f'needed_{name}': need for name, need in zip(SIZES, spec.needs, strict=True)}
        facts: dict[str, Any] = {**self.given, **needed, 'server': spec.server_id}
        zoned = self.zone and spec.availability_zone is not None
        if self.up:
            facts['since'] = now - timedelta(seconds=self.conf.service_down_time)
        if zoned:
            zones = candidates.zones(connection)
            facts['zones'] = list(zones)
            facts['zone'] = [number for number, zone in zones.items() if zone == spec.availability_zone]
        cell = candidates.cell_of(connection, spec.current_host) if spec.current_host else None
        named = {'host': spec.host, 'hypervisor_hostname': spec.node, 'cell': cell}
        facts |= {f'its_{column}': value for column, value in named.items() if value is not None}
        if spec.ignored_hosts:
            facts['ignored'] = list(spec.ignored_hosts)
        choice = Choice(
            up=self.up,
            zone=zoned,
            unzoned=spec.availability_zone == self.conf.default_availability_zone,
            host=spec.host is not None,
            node=spec.node is not None,
            cell=cell is not None,
            besides=bool(spec.ignored_hosts),
            order=self.order,
        )
        return choice, facts
