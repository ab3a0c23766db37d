"""Subnet pools, from which the ranges of subnets are allocated, and address scopes, in which ranges do not overlap."""

from computeapi import errors
from computeapi.db.network_collection import Collection, Document, Work, own_or_shared, shared
from computeapi.db.networks import SUBNETS
from computeapi.db.tables.network import address_scopes, subnet_pools

ADDRESS_SCOPES = Collection(
    address_scopes,
    errors.AddressScopeNotFound,
    hidden=['description', 'created_at', 'updated_at', 'revision_number', 'tags'],
    attributes={'shared': shared(address_scopes)},
    visible=lambda context: own_or_shared(address_scopes, context),
)
SUBNET_POOLS = Collection(
    subnet_pools,
    errors.SubnetPoolNotFound,
    attributes={'shared': shared(subnet_pools)},
    visible=lambda context: own_or_shared(subnet_pools, context),
)


def default_pool(work: Work, ip_version: int) -> Document | None:
    """The default pool of that IP version, if the caller can see it."""
    found = SUBNET_POOLS.find(work, ip_version=ip_version, is_default=True)
    return found[0] if found else None


def clear_default_pool(work: Work, ip_version: int) -> None:
    """Unset the default pool."""
    pools = subnet_pools.c
    chosen = (pools.ip_version == ip_version, pools.is_default)
    work.connection.execute(subnet_pools.update().where(*chosen).values(is_default=False))


def subnets_from(work: Work, pool_id: str) -> list[Document]:
    """The subnets allocated from this pool, regardless of their owners."""
    return SUBNETS.find(work.elevated(), subnetpool_id=pool_id)
