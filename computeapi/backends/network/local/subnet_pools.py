"""Rules for subnet pools and address scopes, and the allocation of subnets from pools."""

import ipaddress
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from computeapi import errors
from computeapi.backends.network.local import addresses, rbac_policies
from computeapi.backends.network.local.addresses import IPNetwork
from computeapi.db import network_projects, subnet_pools
from computeapi.db.network_collection import Document, Work
from computeapi.db.rbac_policies import forget
from computeapi.db.subnet_pools import ADDRESS_SCOPES, SUBNET_POOLS

DEFAULT_MIN_PREFIXLEN = {4: 8, 6: 64}
"""The default for min_prefixlen, by IP version."""

UNITS = {4: 32, 6: 64}
"""The prefix length of the unit in which the quota of a pool counts: addresses, or /64 networks."""


MAX_SCOPES = 100
"""The maximum number of address scopes of a project."""


def create_scope(work: Work, facts: Document) -> str:
    project_id = network_projects.owner(work, facts)
    network_projects.lock_project(work, project_id)
    if len(ADDRESS_SCOPES.find(work, project_id=project_id)) >= MAX_SCOPES:
        raise errors.OverQuota("Quota exceeded for resources: ['address_scope'].")
    return rbac_policies.insert(work, 'address_scope', {**facts, 'project_id': project_id})


def update_scope(work: Work, scope_id: str, facts: Document) -> None:
    scope = ADDRESS_SCOPES.owned(work, scope_id)
    if scope['shared'] and facts.get('shared') is False:
        raise errors.Invalid(f'Unable to update address scope {scope_id}: Shared address scope can not be unshared')
    rbac_policies.follow(work, 'address_scope', scope, facts)
    ADDRESS_SCOPES.update(work, scope_id, facts)


def delete_scope(work: Work, scope_id: str) -> None:
    ADDRESS_SCOPES.owned(work, scope_id)
    if SUBNET_POOLS.find(work.elevated(), address_scope_id=scope_id):
        raise errors.Conflict(f'Address scope {scope_id} is still in use.')
    forget(work, scope_id)
    ADDRESS_SCOPES.delete(work, id=scope_id)


def create(work: Work, facts: Document) -> str:
    project_id = network_projects.owner(work, facts)
    network_projects.reserve(work, project_id, 'subnetpool')
    _check_rights(work, facts)
    hold_cloud(work, '', facts)
    pool = _checked(work, {'id': '', **facts})
    _clear_default(work, facts, pool)
    return rbac_policies.insert(work, 'subnetpool', {**pool, 'id': None, 'project_id': project_id})


def hold_cloud(work: Work, pool_id: str, facts: Document) -> None:
    """Locks the cloud, before any pool, for a change of the default pool."""
    if facts.get('is_default'):
        network_projects.lock_cloud(work)


def update(work: Work, pool_id: str, facts: Document) -> None:
    hold_cloud(work, pool_id, facts)
    _check_rights(work, facts)
    pool = SUBNET_POOLS.owned(work, pool_id)
    prefixes = [ipaddress.ip_network(text) for text in pool['prefixes']]
    if 'prefixes' in facts and not _within(prefixes, _parsed(facts['prefixes'])):
        raise errors.Invalid('Illegal subnetpool update : Existing prefixes must be a subset of the new prefixes.')
    _check_scope_owner(work, pool)
    changed = _checked(work, pool | facts)
    _clear_default(work, facts, changed)
    SUBNET_POOLS.update(work, pool_id, {name: changed[name] for name in facts})


def delete(work: Work, pool_id: str) -> None:
    SUBNET_POOLS.owned(work, pool_id)
    if subnet_pools.subnets_from(work, pool_id):
        raise errors.Invalid(f'Unable to delete subnet pool: Subnet pool has existing allocations: {pool_id}.')
    forget(work, pool_id)
    SUBNET_POOLS.delete(work, id=pool_id)


def taken(work: Work, subnet: Document) -> Document:
    """The attributes of a subnet with the range that it gets: its own, or a free one of the pool that it names."""
    if subnet.get('cidr') and subnet.get('prefixlen') is not None:
        raise errors.Invalid('Bad subnets request: cidr and prefixlen must not be supplied together.')
    pool = _pool_of(work, subnet)
    if pool is None:
        if not subnet.get('cidr'):
            raise errors.Invalid('Bad subnets request: a subnetpool_id must be specified in the absence of a cidr.')
        return subnet
    SUBNET_POOLS.lock(work.elevated(), pool['id'])
    there = subnet_pools.subnets_from(work, pool['id'])
    held = [ipaddress.ip_network(each['cidr']) for each in there]
    own = [network for network, each in zip(held, there, strict=True) if each['project_id'] == subnet['project_id']]
    wanted = addresses.parse_cidr(subnet['cidr']) if subnet.get('cidr') else None
    length = wanted.prefixlen if wanted else subnet.get('prefixlen') or pool['default_prefixlen']
    if not pool['min_prefixlen'] <= length <= pool['max_prefixlen']:
        raise errors.Invalid(f'A subnet of pool {pool["id"]} cannot have a prefix of /{length}.')
    _check_quota(pool, [length, *(network.prefixlen for network in own)])
    prefixes = _parsed(pool['prefixes'])
    if wanted is None:
        cidr = next((found for prefix in prefixes if (found := first_free(prefix, length, held))), None)
    else:
        cidr = wanted if _within([wanted], prefixes) and not any(map(wanted.overlaps, held)) else None
    if cidr is None:
        raise errors.Conflict('Failed to allocate subnet: Insufficient prefix space to allocate subnet size.')
    return {**subnet, 'cidr': str(cidr), 'subnetpool_id': pool['id']}


def _check_quota(pool: Document, lengths: Iterable[int]) -> None:
    """Raises OverQuota if a project may not have ranges of these lengths from the pool; 0 means no quota."""
    units = sum((1 << UNITS[pool['ip_version']]) >> each for each in lengths)
    if pool['default_quota'] and units > pool['default_quota']:
        raise errors.OverQuota('Per-tenant subnet pool prefix quota exceeded.')


def first_free(prefix: IPNetwork, length: int, held: Iterable[IPNetwork]) -> IPNetwork | None:
    """The first range of this length in the prefix that does not overlap with any of the held ones."""
    if length < prefix.prefixlen:
        return None
    kind, size = type(prefix), 1 << (prefix.max_prefixlen - length)
    start, end = int(prefix.network_address), int(prefix.broadcast_address) + 1
    for other in sorted((each for each in held if each.overlaps(prefix)), key=lambda each: int(each.network_address)):
        if start + size <= int(other.network_address):
            break
        after = int(other.broadcast_address) + 1
        start = max(start, -(-after // size) * size)
    return kind((start, length)) if start + size <= end else None


def _pool_of(work: Work, subnet: Document) -> Document | None:
    if subnet.get('subnetpool_id'):
        return SUBNET_POOLS.get(work, subnet['subnetpool_id'])
    if subnet.get('use_default_subnetpool'):
        pool = subnet_pools.default_pool(work, subnet.get('ip_version', 4))
        if pool is None:
            raise errors.Invalid('Bad subnets request: No default subnetpool found.')
        return pool
    return None


def _check_rights(work: Work, facts: Document) -> None:
    if not work.context.is_admin and (facts.get('shared') or facts.get('is_default')):
        raise errors.Forbidden('Only an administrator can share a subnet pool or make it the default.')


def _checked(work: Work, pool: Document) -> Document:
    """The pool with its defaults filled in; raises Invalid if its attributes contradict each other."""
    prefixes = _collapsed(_parsed(pool['prefixes']))
    version, max_length = prefixes[0].version, prefixes[0].max_prefixlen
    lengths = {'min_prefixlen': DEFAULT_MIN_PREFIXLEN[version], 'max_prefixlen': max_length}
    lengths = {name: default if (given := pool.get(name)) is None else given for name, default in lengths.items()}
    usual = pool.get('default_prefixlen')
    lengths['default_prefixlen'] = lengths['min_prefixlen'] if usual is None else usual
    if not lengths['min_prefixlen'] <= lengths['default_prefixlen'] <= lengths['max_prefixlen'] <= max_length:
        raise errors.Invalid('The prefix lengths must satisfy min <= default <= max.')
    if pool.get('address_scope_id'):
        _check_scope(work, pool, version, prefixes)
    return {**pool, **lengths, 'ip_version': version, 'prefixes': [str(prefix) for prefix in prefixes]}


def _clear_default(work: Work, facts: Document, pool: Document) -> None:
    """Only one pool of each version is the default: the one most recently set."""
    if facts.get('is_default'):
        subnet_pools.clear_default_pool(work, pool['ip_version'])


def _check_scope_owner(work: Work, pool: Document) -> None:
    """Raises Invalid if the pool is in an address scope of another project, which its owner may not change."""
    scope_id, context = pool['address_scope_id'], work.context
    if scope_id and not context.is_admin:
        scope = ADDRESS_SCOPES.get(work.elevated(), scope_id)
        if scope['project_id'] != context.project_id:
            raise errors.Invalid(
                f'Illegal subnetpool update : subnetpool {pool["id"]} cannot be updated: it is associated with address '
                f'scope {scope_id} of another project.'
            )


def _check_scope(work: Work, pool: Document, version: int, prefixes: list[IPNetwork]) -> None:
    scope = ADDRESS_SCOPES.get(work, pool['address_scope_id'])
    ADDRESS_SCOPES.lock(work.elevated(), scope['id'])
    if scope['ip_version'] != version:
        raise errors.Invalid(f'Address scope {scope["id"]} has another IP version than the pool.')
    for other in SUBNET_POOLS.find(work.elevated(), address_scope_id=scope['id']):
        if other['id'] != pool['id'] and _overlap([*prefixes, *_parsed(other['prefixes'])]):
            raise errors.Conflict(f'The prefixes overlap with those of pool {other["id"]} in the same address scope.')


def _parsed(texts: Iterable[str]) -> list[IPNetwork]:
    prefixes = [addresses.parse_cidr(text, 'prefixes') for text in texts]
    if not prefixes or len({prefix.version for prefix in prefixes}) > 1:
        raise errors.Invalid('Invalid input for prefixes. Reason: all prefixes must have the same IP version.')
    return prefixes


def _collapsed(prefixes: Iterable[IPNetwork]) -> list[IPNetwork]:
    """The same ranges in the smallest number of prefixes."""
    collapse: Any = ipaddress.collapse_addresses
    return list(collapse(prefixes))


def _overlap(prefixes: Iterable[Any]) -> bool:
    """Whether any of the prefixes, all of one version, overlap: when sorted, overlapping ones are adjacent."""
    return any(one.overlaps(other) for one, other in pairwise(sorted(prefixes)))


def _within(inner: Iterable[IPNetwork], outer: Iterable[IPNetwork]) -> bool:
    """Whether each of the inner prefixes lies in one of the outer ones."""
    around = [*outer]
    return all(any(_lies_in(each, other) for other in around) for each in inner)


def _lies_in(inner: IPNetwork, outer: IPNetwork) -> bool:
    return outer.prefixlen <= inner.prefixlen and inner.network_address in outer
