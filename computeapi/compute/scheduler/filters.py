"""The filters of the scheduler, by the names in the configuration: (host, spec) -> whether it can take the server."""

from collections.abc import Callable, Mapping
from typing import Any

from computeapi.compute.scheduler.hosts import HostState, listed
from computeapi.compute.scheduler.operators import matches
from computeapi.compute.scheduler.spec import Spec
from computeapi.compute.server_groups import AFFINITY, ANTI_AFFINITY

Filter = Callable[[HostState, Spec], bool]
AGGREGATE_SCOPE = 'aggregate_instance_extra_specs:'


def all_hosts(host: HostState, spec: Spec) -> bool:
    """Any host will do."""
    return True


def compute(host: HostState, spec: Spec) -> bool:
    """The service of the host is enabled and up."""
    return host.enabled and host.up


def availability_zone(host: HostState, spec: Spec) -> bool:
    """The host is in the requested availability zone."""
    return spec.availability_zone in (None, host.zone)


def compute_capabilities(host: HostState, spec: Spec) -> bool:
    """The host has the capabilities that extra specs `capabilities:NAME` require."""
    facts = {'hypervisor_type': host.hypervisor_type, **_flat(host.cpu_info, 'cpu_info')}
    prefix = 'capabilities:'
    wanted = {key[len(prefix) :]: value for key, value in spec.extra_specs.items() if key.startswith(prefix)}
    return all(key in facts and matches(facts[key], value) for key, value in wanted.items())


def image_properties(host: HostState, spec: Spec) -> bool:
    """The host has the architecture and hypervisor type that the image requires."""
    architecture = spec.image_properties.get('hw_architecture') or spec.image_properties.get('architecture')
    hypervisor = spec.image_properties.get('img_hv_type') or spec.image_properties.get('hypervisor_type')
    if architecture and architecture != host.cpu_info.get('arch'):
        return False
    return not hypervisor or hypervisor.lower() in (host.hypervisor_type.lower(), 'qemu', 'kvm')


def same_host(host: HostState, spec: Spec) -> bool:
    """The hint same_host: the host has one of these servers."""
    wanted = listed(spec.hints.get('same_host'))
    return not wanted or any(server_id in host.servers for server_id in wanted)


def different_host(host: HostState, spec: Spec) -> bool:
    """The hint different_host: the host has none of these servers."""
    return not any(server_id in host.servers for server_id in listed(spec.hints.get('different_host')))


def group_affinity(host: HostState, spec: Spec) -> bool:
    """The servers of the group are on the same host (affinity)."""
    if host.group is None or host.group.policy != AFFINITY:
        return True
    return not host.group.hosts or host.name in host.group.hosts


def group_anti_affinity(host: HostState, spec: Spec) -> bool:
    """The servers of the group are on different hosts (anti-affinity), or as many on one host as its rule allows."""
    if host.group is None or host.group.policy != ANTI_AFFINITY:
        return True
    return host.group.members < host.group.most


def aggregate_extra_specs(host: HostState, spec: Spec) -> bool:
    """An aggregate of the host has the extra specs that are in the aggregate scope (or in none)."""
    wanted = {
        key.removeprefix(AGGREGATE_SCOPE): value
        for key, value in spec.extra_specs.items()
        if key.startswith(AGGREGATE_SCOPE) or ':' not in key
    }
    return all(any(matches(own, value) for own in _own(host, key)) for key, value in wanted.items())


def aggregate_isolation(host: HostState, spec: Spec) -> bool:
    """An aggregate with filter_tenant_id (or with a suffix to it) accepts only servers of those projects."""
    keys = {key for values in host.aggregates for key in values if key.startswith('filter_tenant_id')}
    allowed = {project for key in keys for project in _own(host, key)}
    return not allowed or spec.project_id in allowed


def aggregate_image_isolation(host: HostState, spec: Spec) -> bool:
    """Properties that the image and the aggregates of the host both have must agree."""
    keys = {key for values in host.aggregates for key in values if key in spec.image_properties}
    return all(str(spec.image_properties[key]) in _own(host, key) for key in keys)


def aggregate_type_affinity(host: HostState, spec: Spec) -> bool:
    """An aggregate with instance_type accepts only flavors of those names."""
    wanted = _own(host, 'instance_type')
    return not wanted or spec.flavor_name in wanted


def suitable(host: HostState, spec: Spec) -> bool:
    """The host has the resources and traits that the flavor and the image require."""
    return spec.among is None or host.name in spec.among


ALWAYS: dict[str, Filter] = {'Required resources and traits': suitable}
"""The filters that cannot be disabled, in Nova because Placement applies them."""
FILTERS: dict[str, Filter] = {
    'AllHostsFilter': all_hosts,
    'ComputeFilter': compute,
    'AvailabilityZoneFilter': availability_zone,
    'ComputeCapabilitiesFilter': compute_capabilities,
    'ImagePropertiesFilter': image_properties,
    'SameHostFilter': same_host,
    'DifferentHostFilter': different_host,
    'ServerGroupAffinityFilter': group_affinity,
    'ServerGroupAntiAffinityFilter': group_anti_affinity,
    'AggregateInstanceExtraSpecsFilter': aggregate_extra_specs,
    'AggregateMultiTenancyIsolation': aggregate_isolation,
    'AggregateImagePropertiesIsolation': aggregate_image_isolation,
    'AggregateTypeAffinityFilter': aggregate_type_affinity,
}


def _own(host: HostState, key: str) -> list[str]:
    """The values of a key in the host's aggregates; one aggregate can have several, separated by commas."""
    texts = (values[key] for values in host.aggregates if key in values)
    return [value.strip() for text in texts for value in text.split(',')]


def _flat(facts: Any, name: str) -> dict[str, str]:
    """{'cpu_info:topology:cores': '4', ...}"""
    if not isinstance(facts, Mapping):
        return {name: str(facts)}
    return {key: value for part, inner in facts.items() for key, value in _flat(inner, f'{name}:{part}').items()}
