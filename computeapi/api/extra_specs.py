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

LEVEL = _one_of('low', 'normal', 'high', 'custom')
CPUS = _text(r'[\^\d,-]+')

KNOWN: tuple[tuple[str, tuple[Check, str]], ...] = (
    ('accel:device_profile', _text()),
    ('group_policy', _one_of('none', 'isolate')),
    ('hw:(boot_menu|cpu_realtime|ephemeral_encryption|hide_hypervisor_id|locked_memory|mem_encryption)', BOOLEAN),
    ('hw:(vif_multiqueue_enabled|virtio_packed_ring)', BOOLEAN),
    ('hw:(cpu_dedicated_mask|cpu_realtime_mask)', CPUS),
    ('hw:cpu_(max_)?(cores|sockets|threads)', _integer(1)),
    ('hw:cpu_policy', _one_of('dedicated', 'shared', 'mixed')),
    ('hw:cpu_thread_policy', _one_of('prefer', 'isolate', 'require')),
    ('hw:emulator_threads_policy', _one_of('isolate', 'share')),
    ('hw:ephemeral_encryption_format', _one_of('luks')),
    ('hw:maxphysaddr_bits', _integer()),
    ('hw:maxphysaddr_mode', _one_of('passthrough', 'emulate')),
    ('hw:mem_encryption_model', _one_of('amd-sev', 'amd-sev-es')),
    ('hw:mem_page_size', _text(r'(large|small|any|\d+([kKMGT]i?)?(b|bit|B)?)')),
    (r'hw:numa_cpus\.\d+', CPUS),
    (r'hw:numa_(nodes|mem\.\d+)', _integer(1)),
    ('hw:pci_numa_affinity_policy', _one_of('required', 'preferred', 'legacy', 'socket')),
    ('hw:pmem', _text()),
    ('hw:serial_port_count', _integer()),
    ('hw:tpm_model', _one_of('tpm-tis', 'tpm-crb')),
    ('hw:tpm_secret_security', _one_of('user', 'host', 'deployment')),
    ('hw:tpm_version', _one_of('1.2', '2.0')),
    ('hw:viommu_model', _one_of('intel', 'smmuv3', 'virtio', 'auto')),
    ('hw:watchdog_action', _one_of('none', 'pause', 'poweroff', 'reset', 'disabled')),
    ('hw_rng:allowed', BOOLEAN),
    ('hw_rng:rate_(bytes|period)', _integer()),
    ('hw_video:ram_max_mb', _integer()),
    ('os:secure_boot', _one_of('required', 'disabled', 'optional')),
    ('pci_passthrough:alias', _text(r'([^:]+:\d+)(,\s*[^:]+:\d+)*')),
    ('powervm:uncapped', BOOLEAN),
    ('quota:cpu_(period|shares)', _integer()),
    ('quota:cpu_quota', _integer(-1)),
    ('quota:disk_(read|write|total)_(bytes|iops)_sec', _integer()),
    ('quota:vif_(inbound|outbound)_(average|burst|peak)', _integer()),
    ('quota:(cpu|disk_io|memory|vif)_(limit|reservation|shares_share)', _integer()),
    ('quota:(cpu|disk_io|memory|vif)_shares_level', LEVEL),
    ('resources(_?[a-zA-Z0-9_-]{0,64})?:[A-Z0-9_]+', _integer()),
    ('trait(_?[a-zA-Z0-9_-]{0,64})?:[A-Z0-9_]+', _one_of('required', 'forbidden')),
    ('(traits|aggregate_instance_extra_specs|capabilities):.+', _text()),
    ('vmware:(hw_version|storage_policy)', _text()),
    ('vmware:boot_efi_secure_boot', BOOLEAN),
)
"""The names of specs, some with a part that the operator chooses, and what values they take."""
PATTERNS = [(re.compile(name), check) for name, check in KNOWN]

# A key in one of these namespaces must be known; one in another, or in none, is the operator's own.
NAMESPACES = re.compile(
    '(accel|aggregate_instance_extra_specs|capabilities|hw|hw_rng|hw_video|os|pci_passthrough|powervm|quota|resources'
    r'|trait|traits|vmware)\d*:'
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
    for name, check in PATTERNS:
        if name.fullmatch(key):
            return check
    if NAMESPACES.match(key):
        raise Invalid(f"Validation failed; extra spec '{key}' does not appear to be a valid extra spec.")
    return None


def value_of(flavor: Flavor, key: str) -> str:
    """One extra spec; NotFound when the flavor does not have it."""
    if key not in flavor.extra_specs:
        raise NotFound(f'Flavor {flavor.flavorid} has no extra specs with key {key}.')
    return flavor.extra_specs[key]
