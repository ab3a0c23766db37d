"""The names of resource classes and traits, in Placement's terms."""

KNOWN = (
    'VCPU|PCPU|MEMORY_MB|DISK_GB|PCI_DEVICE|SRIOV_NET_VF|NUMA_(SOCKET|CORE|THREAD|MEMORY_MB)|IPV4_ADDRESS|VGPU'
    '|VGPU_DISPLAY_HEAD|NET_BW_(EGR|IGR)_KILOBIT_PER_SEC|NET_PACKET_RATE_((EGR|IGR)_)?KILOPACKET_PER_SEC'
    '|MEM_ENCRYPTION_CONTEXT|FPGA|PGPU|CUSTOM_[A-Z0-9_]+'
)
"""A pattern of the resource classes that Nova knows."""
SIZES = {'VCPU': 'vcpus', 'MEMORY_MB': 'memory_mb', 'DISK_GB': 'disk_gb'}
"""The resource classes of a flavor's sizes, and these sizes."""
SPECIAL = rf'^(?!({"|".join(SIZES)})\Z)({KNOWN})\Z'
"""A pattern of the other ones."""
TRAIT = r'^[A-Z][A-Z0-9_]{0,254}\Z'
"""A pattern of traits."""
