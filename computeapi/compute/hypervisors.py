"""Hypervisors: the resources of the compute hosts, their usage, and their uptime."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from oslo_config import cfg

from computeapi.compute.scheduler.hosts import is_up
from computeapi.db import hypervisors
from computeapi.db.engine import Store
from computeapi.db.hypervisors import USAGE, ComputeNode
from computeapi.db.listing import Page
from computeapi.errors import HypervisorNotFound, NotFound


class HostResources(NamedTuple):
    """Some of a host's resources, and their holder: a project, or a word in parentheses."""

    project: str
    vcpus: int
    memory_mb: int
    disk_gb: int


class HypervisorManager:
    """`needs` names what is loaded in addition to the rows: USAGE, SERVERS of db.hypervisors.

    Errors: HypervisorNotFound, Invalid, NotFound.
    """

    def __init__(self, store: Store, conf: cfg.ConfigOpts):
        self.store, self.clock = store, store.clock
        self.down_after, self.name_template = conf.service_down_time, conf.instance_name_template

    def page(self, page: Page, needs: Collection[str] = ()) -> list[ComputeNode]:
        """The hypervisors after a marker, which is an ID or a UUID."""
        return self._finished(self.store.query(hypervisors.page, page, needs))

    def matching(self, text: str, needs: Collection[str] = ()) -> list[ComputeNode]:
        """The hypervisors whose hostname contains the text; NotFound if there are none."""
        found = self.store.query(hypervisors.matching, text, needs)
        if not found:
            raise NotFound(f"No hypervisor matching '{text}' could be found.")
        return self._finished(found)

    def get(self, identifier: str, needs: Collection[str] = ()) -> ComputeNode:
        """The hypervisor with that ID or UUID."""
        found = self.store.query(hypervisors.get, identifier, needs)
        if found is None:
            raise HypervisorNotFound(id=identifier)
        return self._finished([found])[0]

    def enabled(self) -> list[ComputeNode]:
        """The hypervisors whose hosts accept new servers, with their usage."""
        return self.store.query(hypervisors.all_enabled, needs=[USAGE])

    def resources(self, host: str) -> list[HostResources]:
        """The resources of a host: its total, what is used, and the sizes of its servers, in all and by project."""
        with self.store.read() as connection:
            found = hypervisors.of_host(connection, host, needs=[USAGE])
            shares = [
                HostResources(project, *amounts) for project, amounts in hypervisors.shares(connection, host).items()
            ]
        has = [(each.vcpus, each.memory_mb, each.local_gb) for each in found]
        taken = [each.usage[:3] for each in found[:1]]
        return [
            HostResources('(total)', *_sums(has)),
            HostResources('(used_now)', *_sums(taken)),
            HostResources('(used_max)', *_sums([share[1:] for share in shares])),
            *shares,
        ]

    def _finished(self, found: list[ComputeNode]) -> list[ComputeNode]:
        now = self.clock()
        for each in found:
            each.up = is_up(each.service, now, self.down_after)
            each.uptime = _uptime(each.started_at, now) if each.up else None
            if each.servers is not None:
                each.servers = [server._replace(domain_name=self.name_template % server.id) for server in each.servers]
        return found


def _sums(amounts: Sequence[Sequence[Any]]) -> tuple[int, int, int]:
    vcpus, memory_mb, disk_gb = (sum(column) for column in zip((0, 0, 0), *amounts, strict=True))
    return vcpus, memory_mb, disk_gb


def _uptime(since: datetime, now: datetime) -> str:
    """The output of `uptime` on a host, which clients parse.

    The numbers of users and the load are 0: nobody logs in to the hosts, and they do not report their load.
    """
    running = now - since
    hours, minutes = divmod(running.seconds // 60, 60)
    days = f'{running.days} day{"" if running.days == 1 else "s"}, ' if running.days else ''
    return f' {now:%H:%M:%S} up {days}{hours:2}:{minutes:02},  0 users,  load average: 0.00, 0.00, 0.00'
