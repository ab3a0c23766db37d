"""The hosts that a new claim can go to, as far as the database can tell, those with the most room first."""

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from computeapi.db.aggregates import ZONE
from computeapi.db.hypervisors import SELECT, record
from computeapi.db.services import RUNS_SERVERS, up
from computeapi.db.tables.compute import ComputeNode, aggregate_hosts, aggregates, allocations, hypervisors, services

VCPUS, MEMORY, DISK = 'vcpus', 'memory_mb', 'local_gb'
SIZES = {VCPUS: hypervisors.c.used_vcpus, MEMORY: hypervisors.c.used_memory_mb, DISK: hypervisors.c.used_disk_gb}
"""The size columns of hosts, and the used amount of each."""


class Choice(NamedTuple):
    """The conditions on hosts; their values are parameters of the statement.

    up: the service is enabled, and was seen `since`.  zone: in the zone whose aggregates are `zone`, of `zones`, all
    that put hosts into a zone; `unzoned`: hosts without a zone, too.  host, node, cell: of that name.  among: one of
    `suitable`.  skips_ignored: none of `ignored`.  order: the sizes by which hosts are sorted, most room left first.
    """

    up: bool = False
    zone: bool = False
    unzoned: bool = False
    host: bool = False
    node: bool = False
    cell: bool = False
    among: bool = False
    skips_ignored: bool = False
    order: tuple[str, ...] = ()


def page(
    connection: sa.Connection, choice: Choice, facts: Mapping[str, Any], first: int, most: int
) -> list[ComputeNode]:
    """Some of them. facts: the parameters: the values of the conditions, `needed_` and `ratio_` of each size, and the
    server; on hosts of which it already holds something, room is not checked."""
    rows = connection.execute(statement(choice), {**facts, 'first': first, 'most': most})
    return [record(row) for row in rows]


@functools.cache
def statement(choice: Choice) -> sa.Select[Any]:
    """Built once for each choice, because building it costs more than executing it."""
    holding = sa.select(allocations.c.host).where(allocations.c.server_id == sa.bindparam('server'))
    room = sa.and_(*(used + sa.bindparam(f'needed_{name}') <= _capacity(name) for name, used in SIZES.items()))
    order = [(_capacity(name) - SIZES[name]).desc() for name in choice.order]
    return (
        SELECT.where(*_conditions(choice), sa.or_(room, hypervisors.c.host.in_(holding)))
        .order_by(*order, hypervisors.c.id)
        .limit(sa.bindparam('most', type_=sa.Integer))
        .offset(sa.bindparam('first', type_=sa.Integer))
    )


def _capacity(name: str) -> sa.ColumnElement[float]:
    """The amount of it that may be allocated."""
    return hypervisors.c[name] * sa.bindparam(f'ratio_{name}', type_=sa.Double)


def _conditions(choice: Choice) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]] = []
    if choice.up:
        conditions += [services.c.disabled.is_(False), up(sa.bindparam('since'))]
    if choice.zone:
        conditions.append(_in_zone(hypervisors.c.host, choice.unzoned))
    for wanted, column in ((choice.host, 'host'), (choice.node, 'hypervisor_hostname'), (choice.cell, 'cell')):
        if wanted:
            conditions.append(hypervisors.c[column] == sa.bindparam(f'its_{column}'))
    if choice.among:
        conditions.append(hypervisors.c.host.in_(sa.bindparam('suitable', expanding=True)))
    if choice.skips_ignored:
        conditions.append(hypervisors.c.host.not_in(sa.bindparam('ignored', expanding=True)))
    return conditions


def _in_zone(host: sa.Column[Any], unzoned: bool) -> sa.ColumnElement[bool]:
    """The oldest of a host's aggregates with a zone counts."""
    mine = aggregate_hosts.c.host == host
    zoned = mine & aggregate_hosts.c.aggregate_id.in_(sa.bindparam('zones', expanding=True))
    oldest = sa.select(sa.func.min(aggregate_hosts.c.aggregate_id)).where(zoned).scalar_subquery()
    within = oldest.in_(sa.bindparam('zone', expanding=True))
    return within | ~sa.exists().where(zoned) if unzoned else within


def zone_facts(connection: sa.Connection, zone: str) -> dict[str, list[int]]:
    """The parameters `zone` and `zones` of a choice of hosts in that zone."""
    known = connection.execute(sa.select(aggregates.c.id, aggregates.c.metadata))
    zones = {number: metadata[ZONE] for number, metadata in known if metadata.get(ZONE)}
    return {'zones': list(zones), 'zone': [number for number, name in zones.items() if name == zone]}


def has_enabled_host(connection: sa.Connection, zone: str, ignored: Collection[str], *, unzoned: bool) -> bool:
    """Whether the zone has an enabled host besides those ignored; `unzoned`: hosts without a zone count, too."""
    facts = {**zone_facts(connection, zone), 'ignored': list(ignored)}
    return connection.execute(_enabled(unzoned), facts).first() is not None


@functools.cache
def _enabled(unzoned: bool) -> sa.Select[Any]:
    counted = services.c.disabled.is_(False) & services.c.host.not_in(sa.bindparam('ignored', expanding=True))
    return sa.select(services.c.id).where(RUNS_SERVERS, counted, _in_zone(services.c.host, unzoned)).limit(1)


def cell_of(connection: sa.Connection, host: str) -> str | None:
    """The cell of a reachable host, if it is in one."""
    found: Sequence[str | None] = connection.scalars(
        SELECT.with_only_columns(hypervisors.c.cell).where(hypervisors.c.host == host).order_by(hypervisors.c.id)
    ).all()
    return found[0] if found else None
