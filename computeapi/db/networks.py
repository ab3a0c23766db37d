"""Networks and their subnets."""

from collections.abc import Iterable

import sqlalchemy as sa

from computeapi import errors
from computeapi.context import Context
from computeapi.db.constant_queries import fetch
from computeapi.db.listing import Clause
from computeapi.db.network_collection import Collection, Document, Work, ids_of, own_or_shared, shared, shared_by_policy
from computeapi.db.ownership import own_rows, owned
from computeapi.db.records import Among, dicts, grouped
from computeapi.db.tables.network import fixed_ips, networks, rbac_policies, subnet_pools, subnets

EXTERNAL = 'access_as_external'


def _visible_networks(context: Context) -> Clause:
    return sa.or_(own_or_shared(networks, context), _leads_out(context))


def _leads_out(context: Context) -> Clause:
    """The external networks of the caller's project: those of everybody, unless policies say whose they are."""
    limited = sa.select(rbac_policies.c.object_id).where(rbac_policies.c.action == EXTERNAL)
    open_to = sa.or_(networks.c.id.not_in(limited), shared_by_policy(networks, context, EXTERNAL))
    return sa.and_(networks.c.external, open_to)


def _visible_subnets(context: Context) -> Clause:
    """One's own, and those of visible networks."""
    seen = sa.select(networks.c.id).where(_visible_networks(context))
    return sa.or_(own_rows(subnets, context), subnets.c.network_id.in_(seen))


def _on_shared_networks(values: list[str]) -> Clause:
    """The filter `shared` of subnets, which do not show it."""
    seen = sa.select(networks.c.id).where(NETWORKS.clause('shared', values))
    return subnets.c.network_id.in_(seen)


WIRE = ('id', 'name', 'mtu')
WIRES = Among(sa.select(*networks.c[WIRE]), networks.c.id)
RANGES = ('id', 'cidr', 'ip_version', 'ipv6_address_mode', 'allocation_pools', 'last_address')
RANGES_ON = (
    sa.select(*subnets.c[RANGES])
    .where(subnets.c.network_id == sa.bindparam('network'))
    .order_by(subnets.c.created_at, subnets.c.id)
)
SUBNETS_ON = Among(
    sa.select(subnets.c.network_id, subnets.c.id, subnets.c.ip_version, subnet_pools.c.address_scope_id)
    .outerjoin_from(subnets, subnet_pools, subnet_pools.c.id == subnets.c.subnetpool_id)
    .order_by(subnets.c.created_at, subnets.c.id),
    subnets.c.network_id,
)


def _add_subnets(work: Work, documents: list[Document]) -> None:
    """Add the subnets of each network, oldest first, and their address scopes."""
    rows = SUBNETS_ON.rows(work.connection, ids_of(documents))
    on = grouped((network_id, rest) for network_id, *rest in rows)
    for document in documents:
        document.update(subnets=[], ipv4_address_scope=None, ipv6_address_scope=None)
        for subnet_id, version, scope_id in on.get(document['id'], []):
            document['subnets'].append(subnet_id)
            if scope_id is not None:
                document[f'ipv{version}_address_scope'] = scope_id


NETWORKS = Collection(
    networks,
    errors.NetworkNotFound,
    renamed={
        'external': 'router:external',
        **{name: f'provider:{name}' for name in ('network_type', 'physical_network', 'segmentation_id')},
    },
    hidden=['auto_allocated'],
    attributes={'status': sa.literal('ACTIVE'), 'shared': shared(networks)},
    visible=_visible_networks,
    complete=_add_subnets,
    filters={
        'subnets': lambda ids: networks.c.id.in_(sa.select(subnets.c.network_id).where(subnets.c.id.in_(ids))),
    },
)

SUBNETS = Collection(
    subnets,
    errors.SubnetNotFound,
    hidden=['last_address', 'interface'],
    attributes={
        'router:external': sa.select(networks.c.external).where(networks.c.id == subnets.c.network_id).scalar_subquery()
    },
    visible=_visible_subnets,
    filters={'shared': _on_shared_networks},
)


def named_networks(work: Work, ids: Iterable[str]) -> list[Document]:
    """Those of these networks that the caller can see, without the data of their subnets."""
    return NETWORKS.find(work, id=list(ids), complete=False)


def is_usable(work: Work, network_id: str) -> bool:
    """Whether the network is shared with the caller's project, or its own."""
    return bool(NETWORKS.find(work, _usable(work.context), networks.c.id == network_id, complete=False))


def usable_networks(work: Work) -> list[Document]:
    """The networks to which a server of the caller's project is attached by default, its own and shared ones, without
    the data of their subnets."""
    return NETWORKS.find(work, _usable(work.context), external=False, admin_state_up=True, complete=False)


def _usable(context: Context) -> Clause:
    """The networks of the caller's project, and those that are shared with it; the same for administrators."""
    return sa.or_(owned(networks, context), shared(networks, context))


def wires(work: Work, network_ids: Iterable[str]) -> dict[str, Document]:
    """Name and MTU of these networks, by ID, regardless of their owners: visible to everybody with a port on them."""
    return {wire['id']: wire for wire in dicts(WIRE, WIRES.rows(work.connection, set(network_ids)))}


def ranges_on(work: Work, network_id: str) -> list[Document]:
    """The address ranges of the network's subnets; `last_address` is the address assigned last."""
    return dicts(RANGES, fetch(work.connection, RANGES_ON, {'network': network_id}))


def subnets_of(work: Work, network_ids: Iterable[str]) -> list[Document]:
    """The subnets of these networks, regardless of their owners."""
    return SUBNETS.find(work.elevated(), network_id=list(network_ids))


def auto_network(work: Work, project_id: str) -> str | None:
    """The ID of the network that was allocated automatically for the project."""
    mine = (networks.c.project_id == project_id, networks.c.auto_allocated)
    return work.connection.scalar(sa.select(networks.c.id).where(*mine))


def set_auto_network(work: Work, network_id: str) -> None:
    work.connection.execute(networks.update().where(networks.c.id == network_id).values(auto_allocated=True))


def clear_default(work: Work) -> None:
    """Unset the default external network."""
    work.connection.execute(networks.update().where(networks.c.is_default).values(is_default=False))


def segment_is_taken(work: Work, network_type: str, physical_network: str | None, segmentation_id: int | None) -> bool:
    """Whether a network with these provider attributes exists."""
    found = NETWORKS.find(
        work.elevated(),
        network_type=network_type,
        physical_network=physical_network,
        segmentation_id=segmentation_id,
    )
    return bool(found)


def used_addresses(work: Work, network_ids: Iterable[str]) -> dict[str, int]:
    """How many addresses ports hold, by subnet."""
    rows = work.connection.execute(
        sa.select(fixed_ips.c.subnet_id, sa.func.count())
        .join(subnets, subnets.c.id == fixed_ips.c.subnet_id)
        .where(subnets.c.network_id.in_(list(network_ids)))
        .group_by(fixed_ips.c.subnet_id)
    )
    return {row[0]: row[1] for row in rows}


def is_owner(work: Work, network_id: str) -> bool:
    """Whether the caller manages everything on the network: as its project, an administrator or a service."""
    context = work.context
    if context.is_admin or context.is_service:
        return True
    return any(network['project_id'] == context.project_id for network in NETWORKS.find(work, id=network_id))
