"""The traits and resources of hosts besides the usual, and what servers hold of these resources.

Each host is one provider, with the ID of its hypervisor; others of its providers exist only in Placement.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from computeapi.db.allocations import Held
from computeapi.db.tables.compute import agents, allocations, hypervisors

Used = Counter[tuple[str, str]]
"""Amounts by provider and resource class."""


class HostProvider(NamedTuple):
    """traits, resources: the operator's.  capabilities: those that the host's agent reported, if it has one."""

    id: str
    traits: Sequence[str]
    resources: Mapping[str, int]
    capabilities: Sequence[str] | None


def select(connection: sa.Connection, host: str | None = None) -> dict[str, HostProvider]:
    """All by host, or that of one host."""
    columns = (hypervisors.c.host, hypervisors.c.uuid, hypervisors.c.traits, hypervisors.c.resources)
    found = sa.select(*columns, agents.c.capabilities).outerjoin_from(
        hypervisors, agents, agents.c.host == hypervisors.c.host
    )
    if host is not None:
        found = found.where(hypervisors.c.host == host)
    # If a host has several hypervisors, the first one counts.
    return {
        name: HostProvider(provider_id, traits or (), resources or {}, capabilities)
        for name, provider_id, traits, resources, capabilities in connection.execute(
            found.order_by(hypervisors.c.id.desc())
        )
    }


def used(connection: sa.Connection, hosts: Collection[str], but: tuple[str, str] | None = None) -> Used:
    """What servers hold of the providers of these hosts. but: leaves out what this server holds for this flavor."""
    found: Used = Counter()
    statement = sa.select(allocations.c.server_id, allocations.c.flavors).where(
        allocations.c.host.in_(hosts), allocations.c.flavors.is_not(None)
    )
    for server_id, flavors in connection.execute(statement):
        for flavor_id, held in flavors.items():
            if (server_id, flavor_id) != but:
                for provider_id, resources in held.items():
                    found.update({(provider_id, name): amount for name, amount in resources.items()})
    return found


def has_room(connection: sa.Connection, host: str, held: Held, server_id: str, flavor_id: str) -> bool:
    """Whether the host, which must be locked, has all this for a server of that flavor, of the resources that the
    operator gave it; others are up to Placement."""
    provider = select(connection, host).get(host)
    mine = held.get(provider.id, {}) if provider else {}
    if provider is None or not mine.keys() & provider.resources.keys():
        return True
    taken = used(connection, [host], (server_id, flavor_id))
    return all(
        taken[provider.id, name] + amount <= provider.resources[name]
        for name, amount in mine.items()
        if name in provider.resources
    )
