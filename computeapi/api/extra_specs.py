"""The extra specs that are known, and what values they take (checked from 2.86 on)."""

import re
from collections.abc import Callable, Mapping

from computeapi.booleans import FALSE, TRUE
from computeapi.db.flavors import Flavor
from computeapi.errors import Invalid, NotFound

Check = Callable[[str], bool]


def _integer(low: int = 0) -> tuple[Check, str]:
    return lambda value: bool(re.fullmatch(r'-?\d{1,18}', value)) and int(value) >= low, 'integer'


def _one_of(*choices: str) -> tuple[Check, str]:
    return lambda value: value in choices, 'string'


def _text(pattern: str = r'.*') -> tuple[Check, str]:
    compiled = re.compile(pattern)
    return lambda value: bool(compiled.fullmatch(value)), 'string'


BOOLEAN = (lambda value: value in TRUE or value in FALSE, 'boolean')

KNOWN: Mapping[str, tuple[Check, str]] = {
    'hw:boot_menu': BOOLEAN,
    'hw:cpu_cores': _integer(1),
    'hw:cpu_dedicated_mask': _text(r'[\^\d,-]+'),
    'hw:cpu_max_cores': _integer(1),
    'hw:cpu_max_sockets': _integer(1),
    'hw:cpu_max_threads': _integer(1),
    'hw:cpu_policy': _one_of('dedicated', 'shared', 'mixed'),
    'hw:cpu_realtime': BOOLEAN,
    'hw:cpu_realtime_mask': _text(r'[\^\d,-]+'),
    'hw:cpu_sockets': _integer(1),
    'hw:cpu_thread_policy': _one_of('prefer', 'isolate', 'require'),
    'hw:cpu_threads': _integer(1),
    'hw:emulator_threads_policy': _one_of('isolate', 'share'),
    'hw:ephemeral_encryption': BOOLEAN,
    'hw:ephemeral_encryption_format': _one_of('luks'),
    'hw:hide_hypervisor_id': BOOLEAN,
    'hw:locked_memory': BOOLEAN,
    'hw:maxphysaddr_bits': _integer(),
    'hw:maxphysaddr_mode': _one_of('passthrough', 'emulate'),
    'hw:mem_encryption': BOOLEAN,
    'hw:mem_encryption_model': _one_of('amd-sev', 'amd-sev-es'),
    'hw:mem_page_size': _text(r'(large|small|any|\d+([kKMGT]i?)?(b|bit|B)?)'),
    'hw:numa_nodes': _integer(1),
    'hw:pci_numa_affinity_policy': _one_of('required', 'preferred', 'legacy', 'socket'),
    'hw:pmem': _text(),
    'hw:serial_port_count': _integer(),
    'hw:tpm_model': _one_of('tpm-tis', 'tpm-crb'),
    'hw:tpm_secret_security': _one_of('user', 'host', 'deployment'),
    'hw:tpm_version': _one_of('1.2', '2.0'),
    'hw:vif_multiqueue_enabled': BOOLEAN,
    'hw:viommu_model': _one_of('intel', 'smmuv3', 'virtio', 'auto'),
    'hw:virtio_packed_ring': BOOLEAN,
    'hw:watchdog_action': _one_of('none', 'pause', 'poweroff', 'reset', 'disabled'),
    'hw_rng:allowed': BOOLEAN,
    'hw_rng:rate_bytes': _integer(),
    'hw_rng:rate_period': _integer(),
    'hw_video:ram_max_mb': _integer(),
    'os:secure_boot': _one_of('required', 'disabled', 'optional'),
    'pci_passthrough:alias': _text(r'([^:]+:\d+)(,\s*[^:]+:\d+)*'),
    'accel:device_profile': _text(),
    'powervm:uncapped': BOOLEAN,
    'vmware:hw_version': _text(),
    'vmware:storage_policy': _text(),
    'vmware:boot_efi_secure_boot': BOOLEAN,
    'quota:cpu_period': _integer(),
    'quota:cpu_quota': _integer(-1),
    'quota:cpu_shares': _integer(),
    'quota:cpu_limit': _integer(),
    'quota:cpu_reservation': _integer(),
    'quota:cpu_shares_level': _one_of('low', 'normal', 'high', 'custom'),
    'quota:cpu_shares_share': _integer(),
    'quota:disk_read_bytes_sec': _integer(),
    'quota:disk_read_iops_sec': _integer(),
    'quota:disk_write_bytes_sec': _integer(),
    'quota:disk_write_iops_sec': _integer(),
    'quota:disk_total_bytes_sec': _integer(),
    'quota:disk_total_iops_sec': _integer(),
    'quota:disk_io_limit': _integer(),
    'quota:disk_io_reservation': _integer(),
    'quota:disk_io_shares_level': _one_of('low', 'normal', 'high', 'custom'),
    'quota:disk_io_shares_share': _integer(),
    'quota:memory_limit': _integer(),
    'quota:memory_reservation': _integer(),
    'quota:memory_shares_level': _one_of('low', 'normal', 'high', 'custom'),
    'quota:memory_shares_share': _integer(),
    'quota:vif_inbound_average': _integer(),
    'quota:vif_inbound_burst': _integer(),
    'quota:vif_inbound_peak': _integer(),
    'quota:vif_outbound_average': _integer(),
    'quota:vif_outbound_burst': _integer(),
    'quota:vif_outbound_peak': _integer(),
    'quota:vif_limit': _integer(),
    'quota:vif_reservation': _integer(),
    'quota:vif_shares_level': _one_of('low', 'normal', 'high', 'custom'),
    'quota:vif_shares_share': _integer(),
}

# Names with a part that the operator chooses.
PATTERNS: tuple[tuple[re.Pattern[str], tuple[Check, str]], ...] = (
    (re.compile(r'hw:numa_cpus\.\d+'), _text(r'[\^\d,-]+')),
    (re.compile(r'hw:numa_mem\.\d+'), _integer(1)),
    (re.compile(r'resources(_?[a-zA-Z0-9_-]{0,64})?:[A-Z0-9_]+'), _integer()),
    (re.compile(r'trait(_?[a-zA-Z0-9_-]{0,64})?:[A-Z0-9_]+'), _one_of('required', 'forbidden')),
    (re.compile(r'group_policy'), _one_of('none', 'isolate')),
    (re.compile(r'(traits|aggregate_instance_extra_specs|capabilities):.+'), _text()),
)

# A key in one of these namespaces must be known; one in another, or in none, is the operator's own.
NAMESPACES = frozenset(
    [
        'accel',
        'aggregate_instance_extra_specs',
        'capabilities',
        'hw',
        'hw_rng',
        'hw_video',
        'os',
        'pci_passthrough',
        'powervm',
        'quota',
        'resources',
        'trait',
        'traits',
        'vmware',
    ]
)


def validate(specs: Mapping[str, object]) -> None:
    """Invalid for a key that does not exist in a known namespace, or a value that its key does not take."""
    for key, value in specs.items():
        check = _check_of(key)
        if check is None:
            continue
        passes, kind = check
        if passes(str(value)):
            continue
        if kind == 'integer' and not re.fullmatch(r'-?\d+', str(value)):
            raise Invalid(f"Validation failed; '{value}' is not a valid integer value.")
        if kind == 'boolean':
            raise Invalid(f"Validation failed; '{value}' is not a valid boolean value.")
        raise Invalid(f"Validation failed; '{value}' is not a valid value for extra spec '{key}'.")


def _check_of(key: str) -> tuple[Check, str] | None:
    if key in KNOWN:
        return KNOWN[key]
    for pattern, check in PATTERNS:
        if pattern.fullmatch(key):
            return check
    namespace, colon, _ = key.partition(':')
    if colon and re.sub(r'\d+$', '', namespace) in NAMESPACES:
        raise Invalid(f"Validation failed; extra spec '{key}' does not appear to be a valid extra spec.")
    return None


def value_of(flavor: Flavor, key: str) -> str:
    """One extra spec; NotFound when the flavor does not have it."""
    if key not in flavor.extra_specs:
        raise NotFound(f'Flavor {flavor.flavorid} has no extra specs with key {key}.')
    return flavor.extra_specs[key]
