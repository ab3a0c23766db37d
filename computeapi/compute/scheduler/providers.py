"""The hosts with the resources and traits that a server requires, according to the operator and the drivers.

Without Placement, each host is a single provider, so that groups of requirements matter little.
"""

from collections.abc import Set

import sqlalchemy as sa

from computeapi.backends.hypervisor import Capability
from computeapi.compute.scheduler.requirements import ISOLATE, Groups, are_valid, special, total
from computeapi.compute.scheduler.spec import Spec
from computeapi.compute.traits import present
from computeapi.db import host_providers
from computeapi.db.allocations import Held
from computeapi.db.host_providers import HostProvider


def suitable(connection: sa.Connection, spec: Spec, usual: frozenset[Capability]) -> dict[str, Held]:
    """By suitable host, what the server will hold of its provider. usual: the capabilities of hosts without agents."""
    groups = spec.groups
    several = len(groups.keys() - {''}) > 1
    if not are_valid(groups, spec.group_policy) or (several and spec.group_policy == ISOLATE):
        return {}
    providers = host_providers.select(connection, spec.host)
    fit = {host: each for host, each in providers.items() if has_traits(each, groups, usual)}
    wanted = special(total(groups))
    if not wanted:
        return {host: {} for host in fit}
    fit = {host: each for host, each in fit.items() if wanted.keys() <= each.resources.keys()}
    used = host_providers.used(connection, fit)
    return {
        host: {each.id: wanted}
        for host, each in fit.items()
        if all(used[each.id, name] + amount <= each.resources[name] for name, amount in wanted.items())
    }


def traits_of(provider: HostProvider, usual: frozenset[Capability]) -> Set[str]:
    """The operator's traits and the standard ones."""
    known = Capability.__members__
    reported = provider.capabilities
    can = usual if reported is None else frozenset(known[name] for name in reported if name in known)
    return present(can).union(provider.traits)


def has_traits(provider: HostProvider, groups: Groups, usual: frozenset[Capability]) -> bool:
    """Whether a host has the required traits, and none of the forbidden ones."""
    traits = traits_of(provider, usual)
    return all(group.required <= traits and not group.forbidden & traits for group in groups.values())
