"""The part of a Spec that the database can evaluate itself: which hosts are candidates, and in which order."""

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

HOSTS_PER_PAGE = 10
"""How many hosts are loaded at a time: usually the first one fits."""
ORDERED = {'RAMWeigher': MEMORY, 'CPUWeigher': VCPUS, 'DiskWeigher': DISK}
OF_GROUPS = {'ServerGroupSoftAffinityWeigher', 'ServerGroupSoftAntiAffinityWeigher'}
"""Weighers that rate all hosts equally, unless the server is in a group with such a policy."""


class HostChoice:
    """filters, weighers: the names of the enabled ones, in order."""

    def __init__(self, conf: cfg.ConfigOpts, ratios: Ratios, filters: Collection[str], weighers: Sequence[str]):
        self.conf, self.ratios = conf, ratios
        self.up, self.zone = 'ComputeFilter' in filters, 'AvailabilityZoneFilter' in filters
        self.weighers = weighers
        self.order = tuple(ORDERED[name] for name in weighers if name in ORDERED)
        self.given = {f'ratio_{name}': ratio for name, ratio in zip(SIZES, ratios, strict=True)}

    def is_possible(self, connection: sa.Connection, spec: Spec) -> bool:
        """Whether the database has all that the choice of the best host depends on."""
        if spec.forced or not set(self.weighers) <= ORDERED.keys() | OF_GROUPS:
            return False
        if spec.group_id is None or not OF_GROUPS.intersection(self.weighers):
            return True
        group = server_groups.get(connection, spec.group_id, members=False)
        return group is None or group.policy not in (SOFT_AFFINITY, SOFT_ANTI_AFFINITY)

    def page(self, connection: sa.Connection, spec: Spec, now: datetime, first: int) -> list[HostState]:
        """Up to HOSTS_PER_PAGE candidates, starting at *first*; fewer if there are no more."""
        choice, facts = self.query(connection, spec, now)
        nodes = candidates.page(connection, choice, facts, first, HOSTS_PER_PAGE)
        return states(connection, self.conf, self.ratios, now, spec, nodes)

    def query(self, connection: sa.Connection, spec: Spec, now: datetime) -> tuple[Choice, dict[str, Any]]:
        """The query for hosts, with its values."""
        needed = {f'needed_{name}': need for name, need in zip(SIZES, spec.needs, strict=True)}
        facts: dict[str, Any] = {**self.given, **needed, 'server': spec.server_id}
        zone = spec.availability_zone if self.zone else None
        if self.up:
            facts['since'] = now - timedelta(seconds=self.conf.service_down_time)
        if zone is not None:
            facts |= candidates.zone_facts(connection, zone)
        cell = candidates.cell_of(connection, spec.current_host) if spec.current_host else None
        named = {'host': spec.host, 'hypervisor_hostname': spec.node, 'cell': cell}
        facts |= {f'its_{column}': value for column, value in named.items() if value is not None}
        if spec.among is not None:
            facts['suitable'] = list(spec.among)
        if spec.ignored_hosts:
            facts['ignored'] = list(spec.ignored_hosts)
        choice = Choice(
            up=self.up,
            zone=zone is not None,
            unzoned=zone == self.conf.default_availability_zone,
            host=spec.host is not None,
            node=spec.node is not None,
            cell=cell is not None,
            among=spec.among is not None,
            skips_ignored=bool(spec.ignored_hosts),
            order=self.order,
        )
        return choice, facts
