"""The known extra specs, and their valid values (checked from 2.86 on)."""

import re
from collections.abc import Callable, Mapping

from oslo_utils import strutils

from computeapi.api.standard_traits import STANDARD_TRAITS
from computeapi.compute.scheduler.requirements import GROUP_POLICIES
from computeapi.db.flavors import Flavor
from computeapi.errors import Invalid, NotFound
from computeapi.resource_classes import KNOWN as RESOURCE_CLASSES

Check = Callable[[str], str | None]
"""Returns what is wrong with a value, if anything."""


def integer(low: int | None = None, high: int | None = None) -> Check:
    def complaint(value: str) -> str | None:
        try:
            number = int(value)
        except ValueError:
            return 'is not a valid integer value'
        if high is not None and number > high:
            return f"is greater than the max value of '{high}'"
        return f"is less than the min value of '{low}'" if low is not None and number < low else None

    return complaint


def one_of(*choices: str) -> Check:
    return lambda value: None if value in choices else f'is not one of: {", ".join(choices)}'


def text(pattern: str) -> Check:
    compiled = re.compile(pattern)
    return lambda value: None if compiled.fullmatch(value) else f"is not of the format '{pattern}'"


def boolean(value: str) -> str | None:
    try:
        strutils.bool_from_string(value, strict=True)
    except ValueError:
        return 'is not a valid boolean-like value'
    return None


def anything(value: str) -> None:
    """Accepts any value, because only the operator knows its meaning."""


AT_LEAST_0, AT_LEAST_1 = integer(0), integer(1)
CPUS = text(r'\^?\d+(-\d+)?(,\^?\d+(-\d+)?)*')
GROUP = '[a-zA-Z0-9_-]{0,64}'
# The capabilities of hosts: single values, and trees of which a part may be named.
CAPABILITIES = (
    'aggregates|cell_uuid|(cpu|ram|disk)_allocation_ratio|current_workload|disk_available_least|disk_mb_used'
    '|failed_builds|free_disk_(gb|mb)|free_ram_mb|host|host_ip|hypervisor_(hostname|type|version)|id|(local_gb|memory_mb'
    '|vcpus)(_used)?|mapped|num_instances|num_io_ops|running_vms|service_id|total_usable_(disk_gb|ram_mb)|updated|uuid'
    '|vcpus_total'
)
TREES = (
    'cpu_info|instances|limits|metrics|nodename|numa_topology|pci_device_pools|pci_stats|stats|supported_hv_specs'
    '|supported_instances'
)

KNOWN: tuple[tuple[str, Check], ...] = (
    ('accel:device_profile|aggregate_instance_extra_specs:.+|vmware:(hw_version|storage_policy)', anything),
    (rf'capabilities:({CAPABILITIES}|({TREES})(:\w+)*)', anything),
    ('group_policy', one_of(*GROUP_POLICIES)),
    ('(hw:)?hide_hypervisor_id|hw_rng:allowed', boolean),
    ('hw:(boot_menu|cpu_realtime|ephemeral_encryption|locked_memory|mem_encryption|pmu)', boolean),
    ('hw:(vif_multiqueue_enabled|virtio_packed_ring)', boolean),
    (r'hw:(cpu_dedicated_mask|cpu_realtime_mask|numa_cpus\.\d+)', CPUS),
    (r'hw:(cpu_(max_)?(cores|sockets|threads)|numa_nodes|numa_mem\.\d+)', AT_LEAST_1),
    ('hw:cpu_policy', one_of('dedicated', 'shared', 'mixed')),
    ('hw:cpu_thread_policy', one_of('prefer', 'isolate', 'require')),
    ('hw:emulator_threads_policy', one_of('isolate', 'share')),
    ('hw:ephemeral_encryption_format', one_of('plain', 'luks', 'luksv2')),
    ('hw:mem_encryption_model', one_of('amd-sev', 'amd-sev-es', 'amd-sev-snp', 'intel-tdx')),
    ('hw:mem_page_size', text(r'(large|small|any|\d+([kKMGT]i?)?(b|bit|B)?)')),
    ('hw:pci_numa_affinity_policy', one_of('required', 'preferred', 'legacy', 'socket')),
    ('hw:pmem', text('[a-zA-Z0-9_]+(,[a-zA-Z0-9_]+)*,?')),
    ('hw:redirected_usb_ports', integer(0, 15)),
    ('hw:sound_model', one_of('sb16', 'es1370', 'pcspk', 'ac97', 'ich6', 'ich9', 'usb', 'virtio')),
    ('hw:tpm_model', one_of('tpm-tis', 'tpm-crb')),
    ('hw:tpm_secret_security', one_of('user', 'host', 'deployment')),
    ('hw:tpm_version', one_of('1.2', '2.0')),
    ('hw:usb_model', one_of('none', 'nec-xhci', 'qemu-xhci')),
    ('hw:viommu_model', one_of('intel', 'smmuv3', 'virtio', 'auto')),
    ('hw:watchdog_action', one_of('none', 'pause', 'poweroff', 'reset', 'disabled')),
    ('hw:serial_port_count|hw_rng:rate_(bytes|period)|hw_video:ram_max_mb', AT_LEAST_0),
    ('os:secure_boot', one_of('disabled', 'required')),
    ('pci_passthrough:alias', text(r'[^:]+:\d+(?:\s*,\s*[^:]+:\d+)*')),
    ('quota:cpu_(period|shares)|quota:disk_(read|write|total)_(bytes|iops)_sec', AT_LEAST_0),
    ('quota:vif_(inbound|outbound)_(average|burst|peak)', AT_LEAST_0),
    ('quota:(cpu|disk_io|memory|vif)_(limit|shares_share)', AT_LEAST_0),
    ('quota:(cpu|disk_io|memory|vif)_shares_level', one_of('custom', 'high', 'normal', 'low')),
    (f'quota:(cpu_quota|(cpu|disk_io|memory|vif)_reservation)|resources{GROUP}:({RESOURCE_CLASSES})', integer()),
    (f'trait{GROUP}:(CUSTOM_[A-Z0-9_]+|{"|".join(STANDARD_TRAITS)})', one_of('required', 'forbidden')),
)
"""Patterns of spec names, with checks of their values."""
PATTERNS = [(re.compile(name), check) for name, check in KNOWN]

# A key in one of these namespaces must be known; any other is the operator's own.
NAMESPACES = re.compile(
    f'(accel|aggregate_instance_extra_specs|capabilities|hw|hw_rng|hw_video|os|pci_passthrough|quota|vmware'
    f'|(resources|trait){GROUP}):'
)


def validate(specs: Mapping[str, object]) -> None:
    """Invalid for an unknown key in one of these namespaces, or an invalid value."""
    for key, value in specs.items():
        wrong = _check_of(key)(str(value))
        if wrong:
            raise Invalid(f"Validation failed; '{value}' {wrong}.")


def _check_of(key: str) -> Check:
    for name, check in PATTERNS:
        if name.fullmatch(key):
            return check
    if NAMESPACES.match(key):
        raise Invalid(f"Validation failed; extra spec '{key}' does not appear to be a valid extra spec.")
    return anything


def value_of(flavor: Flavor, key: str) -> str:
    """One extra spec; NotFound if the flavor does not have it."""
    if key not in flavor.extra_specs:
        raise NotFound(f'Flavor {flavor.flavorid} has no extra specs with key {key}.')
    return flavor.extra_specs[key]
