"""The resources and traits that extra specs and image properties require of hosts, in groups.

`resources:VGPU=1`, `trait:CUSTOM_FAST=required` and `trait:CUSTOM_SLOW=forbidden` are in the unnumbered group, which a
host meets as a whole; those of a group with a number or a name (`resources1:...`, `trait1:...`) must be met by one
provider of the host. VCPU, MEMORY_MB and DISK_GB override the sizes of the flavor.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from computeapi.resource_classes import KNOWN, SIZES

KEY = re.compile(r'(resources|trait)([a-zA-Z0-9_-]{0,64}):(.+)')
RESOURCE_CLASS = re.compile(KNOWN)
ISOLATE = 'isolate'
"""The group policy with which each numbered group needs a provider of its own."""
GROUP_POLICIES = (ISOLATE, 'none')
MAX_AMOUNT = 2**31 - 1
"""The largest amount in Placement; no host has more."""


class RequestGroup(NamedTuple):
    """Amounts by resource class, and traits."""

    resources: Mapping[str, int] = {}
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()

    @property
    def stripped(self) -> 'RequestGroup':
        """The same without amounts of zero."""
        return self._replace(resources={name: amount for name, amount in self.resources.items() if amount})

    @property
    def is_special(self) -> bool:
        """Whether it requires more than sizes, which every host has."""
        return bool(self.required or self.forbidden or self.resources.keys() - SIZES.keys())


Groups = Mapping[str, RequestGroup]
"""By number or name; '' is the unnumbered group."""


def groups_of(extra_specs: Mapping[str, str], image_properties: Mapping[str, Any]) -> dict[str, RequestGroup]:
    """The groups, with amounts of zero. Invalid entries are ignored, as in Nova; images can only require traits."""
    found: dict[str, RequestGroup] = {}
    for key, value in extra_specs.items():
        if match := KEY.fullmatch(key):
            kind, name, what = match.groups()
            found[name] = _with(found.get(name, RequestGroup()), kind, what, str(value))
    for key, value in image_properties.items():
        if key.startswith('trait:') and value == 'required':
            found[''] = _with(found.get('', RequestGroup()), 'trait', key.removeprefix('trait:'), value)
    return found


def _with(group: RequestGroup, kind: str, what: str, value: str) -> RequestGroup:
    amount = _amount(value) if kind == 'resources' and RESOURCE_CLASS.fullmatch(what) else None
    if amount is not None:
        return group._replace(resources={**group.resources, what: amount})
    if kind == 'trait' and value == 'required':
        return group._replace(required=group.required | {what})
    if kind == 'trait' and value == 'forbidden':
        return group._replace(forbidden=group.forbidden | {what})
    return group


def _amount(value: str) -> int | None:
    """The amount, if it is one; like the validation of extra specs, it accepts whatever Python reads as an integer."""
    try:
        amount = int(value)
    except ValueError:
        return None
    return min(amount, MAX_AMOUNT) if amount >= 0 else None


def are_valid(groups: Groups, policy: str | None) -> bool:
    """Whether Placement accepts the groups: it only searches providers for resources, and several numbered groups need
    a policy, which Nova takes from the flavor."""
    numbered = [group for name, group in groups.items() if name]
    return all(group.resources for group in numbered) and (len(numbered) < 2 or policy in GROUP_POLICIES)


def sizes_in(extra_specs: Mapping[str, str]) -> dict[str, int]:
    """The sizes that the extra specs override; memory in MiB, disk in GiB."""
    amounts = total(groups_of(extra_specs, {}))
    return {size: amounts[name] for name, size in SIZES.items() if name in amounts}


def total(groups: Groups) -> Counter[str]:
    """The sums of the amounts of all groups."""
    found: Counter[str] = Counter()
    for group in groups.values():
        found.update(group.resources)
    return found


def special(resources: Mapping[str, int]) -> dict[str, int]:
    """The amounts of resource classes other than those of sizes."""
    return {name: amount for name, amount in resources.items() if amount and name not in SIZES}
