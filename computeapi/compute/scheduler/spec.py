"""The requirements of a server for its host."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from computeapi.compute.scheduler.requirements import RequestGroup, groups_of, sizes_in
from computeapi.db.allocations import Amounts, Held
from computeapi.db.servers import Server


@dataclass(frozen=True)
class Spec:
    """Memory in MiB, disk in GiB.

    host, node: the only acceptable one.  forced: the filters are skipped.  ignored_hosts: unacceptable hosts.
    current_host: where the server is; it does not leave the cell of that host.
    hints: the scheduler hints of the request.  group_id: the server's group.
    among: the acceptable hosts, and what the server will hold of their providers; None: all hosts, and nothing.
    """

    server_id: str
    project_id: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    availability_zone: str | None = None
    host: str | None = None
    node: str | None = None
    forced: bool = False
    ignored_hosts: frozenset[str] = frozenset()
    current_host: str | None = None
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    image_properties: Mapping[str, Any] = field(default_factory=dict)
    image_id: str | None = None
    flavor_id: str = ''
    flavor_name: str = ''
    hints: Mapping[str, Any] = field(default_factory=dict)
    group_id: str | None = None
    among: Mapping[str, Held] | None = None

    @property
    def needs(self) -> Amounts:
        """The resources that it needs on the host."""
        return Amounts(self.vcpus, self.memory_mb, self.disk_gb)

    @functools.cached_property
    def groups(self) -> dict[str, RequestGroup]:
        """The groups of requirements, unless they are only sizes, of which every host has some. A forced move ignores
        traits."""
        groups = {name: each.stripped for name, each in groups_of(self.extra_specs, self.image_properties).items()}
        if self.forced and self.current_host is not None:
            groups = {name: RequestGroup(group.resources) for name, group in groups.items()}
        groups = {name: group for name, group in groups.items() if any(group)}
        several = len(groups.keys() - {''}) > 1
        return groups if several or any(group.is_special for group in groups.values()) else {}

    @property
    def group_policy(self) -> str | None:
        """One of GROUP_POLICIES, if it is valid."""
        return self.extra_specs.get('group_policy')

    @classmethod
    def of(cls, server: Server, *, on_volume: bool, **more: Any) -> Spec:
        """The requirements of *server* by its row; *more* overrides some. on_volume: whether its root disk is a
        volume."""
        facts: dict[str, Any] = {
            'server_id': server.uuid,
            'project_id': server.project_id,
            **needs_of(server.flavor, on_volume=on_volume),
            'availability_zone': server.pinned_availability_zone,
            'current_host': server.host,
            'extra_specs': server.flavor.get('extra_specs') or {},
            'flavor_id': server.flavor.get('flavorid', ''),
            'flavor_name': server.flavor.get('name', ''),
            'image_properties': server.image_properties,
            'image_id': server.image_id,
            'hints': server.scheduler_hints,
            'group_id': server.server_group_id,
        }
        return cls(**(facts | more))


def needs_of(flavor: Mapping[str, Any], *, on_volume: bool) -> dict[str, int]:
    """The sizes that a server of that flavor needs on a host, unless its extra specs override them; a root disk on a
    volume does not count."""
    root_gb = 0 if on_volume else flavor['root_gb']
    disk_gb = root_gb + flavor['ephemeral_gb'] + math.ceil(flavor['swap'] / 1024)
    sizes = {'vcpus': flavor['vcpus'], 'memory_mb': flavor['memory_mb'], 'disk_gb': disk_gb}
    return sizes | sizes_in(flavor.get('extra_specs') or {})
