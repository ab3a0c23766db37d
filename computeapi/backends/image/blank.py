"""The initial image of a cloud: a disk that boots, prints a message, and sleeps."""

import struct
import uuid
from typing import Any

# Common tools look for an image with this name.
NAME = 'cirros-0.6.3-x86_64-disk'
IMAGE_ID = str(uuid.uuid5(uuid.NAMESPACE_DNS, 'cirros.image.computeapi'))
FACTS: dict[str, Any] = {
    'visibility': 'public',
    'disk_format': 'qcow2',
    'container_format': 'bare',
    'properties': {'architecture': 'x86_64'},
}
GREETING = 'A virtual machine runs. Its disk is one sector, which says this and sleeps.'
# The boot code for a PC, at address 0x7c00.
CODE = """
31c0 8ed8 fc be287c     ax, ds = 0; si = the greeting
ac 84c0 7418            next: al = its next character; after the last one, sleep
50 b40e bb0700 cd10 58  write it on the screen
50 bafd03 ec a820 74fb 58 b2f8 ee    write it to the first serial port, when that is ready for it
ebe3                    next
f4 ebfd                 sleep, and again after each interrupt
"""
INSTRUCTIONS = bytes.fromhex(''.join(line.partition('  ')[0] for line in CODE.strip().splitlines()))
BOOT_SECTOR = (INSTRUCTIONS + f'\r\n{GREETING}\r\n\0'.encode()).ljust(510, b'\0') + b'\x55\xaa'
DISK_BYTES = 1024**2
SIMULATED_BYTES = 64 * 1024

CLUSTER_BITS = 12
CLUSTER = 2**CLUSTER_BITS
# The contents of the file's clusters, after its header.
REFCOUNTS, REFCOUNT_BLOCK, L1, L2, DATA = (number * CLUSTER for number in range(1, 6))
IN_USE_ONCE = 1 << 63


def simulated_disk(label: str) -> bytes:
    """The data of an image without real ones: a block that is identified by its label."""
    return f'simulated disk of {label}\n'.encode().ljust(SIMULATED_BYTES, b'\0')


def disk() -> bytes:
    """The image's data: a qcow2 file, version 2, that contains only the first cluster of the disk."""
    header = struct.pack(
        '>4sIQIIQIIQQIIQ',
        *(b'QFI\xfb', 2, 0, 0, CLUSTER_BITS, DISK_BYTES),  # no backing file
        *(0, 1, L1),  # not encrypted; one entry in the table L1
        *(REFCOUNTS, 1, 0, 0),  # one cluster of reference counts; no snapshots
    )
    clusters = (
        header,
        struct.pack('>Q', REFCOUNT_BLOCK),
        struct.pack('>6H', *[1] * 6),
        struct.pack('>Q', L2 | IN_USE_ONCE),
        struct.pack('>Q', DATA | IN_USE_ONCE),
        BOOT_SECTOR,
    )
    return b''.join(each.ljust(CLUSTER, b'\0') for each in clusters)
