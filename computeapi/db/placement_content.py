"""The content for Placement: the inventories of hosts, and the allocations of consumers.

It is derived from the claims. While a server moves, its claim on the source host is held by the migration.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.allocations import HELD, Amounts, Held
from computeapi.db.server_migrations import OVER
from computeapi.db.services import runs
from computeapi.db.tables.compute import aggregate_hosts, aggregates, allocations, hypervisors, services
from computeapi.db.tables.servers import migrations, servers
from computeapi.states import MigrationType


class HostFacts(NamedTuple):
    """A compute host; memory in MiB, disk in GiB. traits, resources: the operator's.  aggregates: the UUID of each, and
    whether the host is in it."""

    uuid: str
    host: str
    hypervisor_hostname: str
    vcpus: int
    memory_mb: int
    local_gb: int
    traits: Sequence[str] | None
    resources: Mapping[str, int] | None
    disabled: bool
    aggregates: Mapping[str, bool] = {}


class Claims(NamedTuple):
    """The claims of a server, or of its migration, by the UUIDs of the hosts' hypervisors.

    more: the further resources of its flavor and its ports, by provider and resource class.
    """

    consumer_id: str
    server_id: str
    project_id: str
    user_id: str
    moving: bool
    amounts: Mapping[str, Amounts]
    more: Held


class HeldOnHost(NamedTuple):
    """One claim, with the host's hypervisor."""

    host: str
    hypervisor_id: str
    amounts: Amounts
    flavors: Mapping[str, Held] | None
    ports: Mapping[str, Any] | None


FACTS = [*(hypervisors.c[name] for name in HostFacts._fields[:-2]), services.c.disabled]
SERVED = hypervisors.join(services, runs(hypervisors.c.host))
UNDER_WAY = sa.and_(
    migrations.c.status.not_in(OVER),
    migrations.c.migration_type != MigrationType.EVACUATION,
    migrations.c.dest_host.is_not(None),
)


def host(connection: sa.Connection, hypervisor_id: str) -> HostFacts | None:
    """The facts of a host, even if its cell is down; None if its service was deleted."""
    facts = sa.select(*FACTS).select_from(SERVED).where(hypervisors.c.uuid == hypervisor_id)
    for row in connection.execute(facts):
        found = HostFacts(*row)
        break
    else:
        return None
    mine = (aggregate_hosts.c.aggregate_id == aggregates.c.id) & (aggregate_hosts.c.host == found.host)
    groups = connection.execute(sa.select(aggregates.c.uuid, sa.exists().where(mine)))
    return found._replace(aggregates={group_id: bool(inside) for group_id, inside in groups})


def hypervisor_ids(connection: sa.Connection) -> list[str]:
    """The UUIDs of all hypervisors."""
    return list(connection.scalars(sa.select(hypervisors.c.uuid).select_from(SERVED).order_by(hypervisors.c.id)))


def hypervisors_by_host(connection: sa.Connection) -> dict[str, str]:
    """The UUID of each host's hypervisor; the first one if it has several."""
    rows = connection.execute(sa.select(hypervisors.c.host, hypervisors.c.uuid).order_by(hypervisors.c.id.desc()))
    return {host: hypervisor_id for host, hypervisor_id in rows}  # noqa: C416


def move_of(connection: sa.Connection, server_id: str) -> str | None:
    """The UUID of the server's current migration, if that has a destination host."""
    found = sa.select(migrations.c.uuid).where(migrations.c.server_id == server_id, UNDER_WAY)
    move_id: str | None = connection.scalar(found.order_by(migrations.c.id.desc()).limit(1))
    return move_id


def of_servers(connection: sa.Connection, server_ids: Collection[str]) -> dict[str, Claims]:
    """By consumer, the claims of these servers and of their current migrations."""
    by_server = _claims_of(connection, server_ids)
    found: dict[str, Claims] = {}
    moves = _moves_of(connection, by_server)
    owners = sa.select(servers.c.uuid, servers.c.project_id, servers.c.user_id).where(servers.c.uuid.in_(by_server))
    for server_id, project_id, user_id in connection.execute(owners):
        move_id, source = moves.get(server_id, (None, None))
        claims = by_server[server_id]
        left = [each for each in claims if each.host == source and len(claims) > 1]
        kept = [each for each in claims if each not in left]
        owner = (server_id, project_id, user_id)
        found[server_id] = Claims(server_id, *owner, False, _amounts(kept), _more(kept))
        if move_id is not None and left:
            found[move_id] = Claims(move_id, *owner, True, _amounts(left), _more(left))
    return found


def _claims_of(connection: sa.Connection, server_ids: Collection[str]) -> dict[str, list[HeldOnHost]]:
    by_server: dict[str, list[HeldOnHost]] = defaultdict(list)
    more = (allocations.c.flavors, allocations.c.ports)
    held = sa.select(allocations.c.server_id, allocations.c.host, hypervisors.c.uuid, *HELD, *more)
    there = held.join_from(allocations, hypervisors, hypervisors.c.host == allocations.c.host)
    chosen = there.where(allocations.c.server_id.in_(server_ids)).order_by(hypervisors.c.id)
    for server_id, name, hypervisor_id, *amounts, flavors, ports in connection.execute(chosen):
        # Only the first hypervisor of a host counts.
        if name not in {each.host for each in by_server[server_id]}:
            amounts_held = Amounts(*map(int, amounts))
            by_server[server_id].append(HeldOnHost(name, hypervisor_id, amounts_held, flavors, ports))
    return by_server


def _amounts(claims: Iterable[HeldOnHost]) -> dict[str, Amounts]:
    return {each.hypervisor_id: each.amounts for each in claims}


def _more(claims: Iterable[HeldOnHost]) -> dict[str, dict[str, int]]:
    """The sums of what flavors and ports hold, by provider."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for each in claims:
        of_ports = (port['resources'] for port in (each.ports or {}).values())
        for held in (*(each.flavors or {}).values(), *of_ports):
            for provider_id, resources in held.items():
                found[provider_id].update(resources)
    return {provider_id: dict(resources) for provider_id, resources in found.items()}


def _moves_of(connection: sa.Connection, server_ids: Iterable[str]) -> dict[str, tuple[str, str | None]]:
    """The current migration of each of these servers, and its source host; the newest, if there are several."""
    under_way = (
        sa.select(migrations.c.server_id, migrations.c.uuid, migrations.c.source_host)
        .where(migrations.c.server_id.in_(list(server_ids)), UNDER_WAY)
        .order_by(migrations.c.id)
    )
    return {server_id: (move_id, source) for server_id, move_id, source in connection.execute(under_way)}


def servers_on(connection: sa.Connection, name: str) -> list[str]:
    """The servers that hold something of the host."""
    return list(connection.scalars(sa.select(allocations.c.server_id).where(allocations.c.host == name)))


def servers_behind(connection: sa.Connection, consumer_ids: Collection[str]) -> dict[str, str]:
    """Those of these consumers that are known servers or migrations, with the server of each."""
    known = sa.select(servers.c.uuid).where(servers.c.uuid.in_(consumer_ids))
    moved = sa.select(migrations.c.uuid, migrations.c.server_id).where(migrations.c.uuid.in_(consumer_ids))
    found = {server_id: server_id for server_id in connection.scalars(known)}
    for move_id, server_id in connection.execute(moved):
        found[move_id] = server_id
    return found
