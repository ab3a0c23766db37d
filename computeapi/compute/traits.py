"""The standard traits of compute hosts, which follow from their drivers' capabilities."""

import functools
from collections.abc import Collection

from computeapi.backends.hypervisor import Capability

ALWAYS = (
    'COMPUTE_NODE',
    'COMPUTE_DEVICE_TAGGING',
    'COMPUTE_VOLUME_ATTACH',
    'COMPUTE_VOLUME_ATTACH_WITH_TAG',
    'COMPUTE_VOLUME_MULTI_ATTACH',
    'OWNER_NOVA',
)
DISABLED = 'COMPUTE_STATUS_DISABLED'
OF_CAPABILITY = {
    'COMPUTE_NET_ATTACH_INTERFACE': Capability.ATTACH_INTERFACE,
    'COMPUTE_NET_ATTACH_INTERFACE_WITH_TAG': Capability.ATTACH_INTERFACE,
    'COMPUTE_VOLUME_EXTEND': Capability.EXTEND_VOLUME,
    'COMPUTE_RESCUE_BFV': Capability.RESCUE_ON_VOLUME,
    'COMPUTE_MEM_BACKING_FILE': Capability.SHARES,
    'COMPUTE_STORAGE_VIRTIO_FS': Capability.SHARES,
}


def standard(capabilities: Collection[Capability]) -> dict[str, bool]:
    """Those that depend only on the driver, and whether a host with these capabilities has them."""
    return dict.fromkeys(ALWAYS, True) | {name: needed in capabilities for name, needed in OF_CAPABILITY.items()}


@functools.cache
def present(capabilities: frozenset[Capability]) -> frozenset[str]:
    """Those that a host with these capabilities has."""
    return frozenset(name for name, has in standard(capabilities).items() if has)
