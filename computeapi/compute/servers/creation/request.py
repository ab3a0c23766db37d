"""What a client may request for new servers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

IMAGE, SNAPSHOT, VOLUME, BLANK = 'image', 'snapshot', 'volume', 'blank'
LOCAL = 'local'
SWAP = 'swap'


@dataclass(frozen=True)
class NetworkRequest:
    """An interface: on a network, optionally with a given address, or an existing port."""

    network_id: str | None = None
    port_id: str | None = None
    fixed_ip: str | None = None
    tag: str | None = None


@dataclass(frozen=True)
class Device:
    """A disk; its size in GiB, but swap in MiB. The ID of its source is in the attribute for its `source_type`.

    boot_index: 0 for the disk to boot from, None or below 0 for one that is not bootable.
    no_device: not a disk, but the request to omit the image's disk with this name.
    """

    source_type: str
    destination_type: str
    boot_index: int | None = None
    image_id: str | None = None
    snapshot_id: str | None = None
    volume_id: str | None = None
    volume_size: int | None = None
    volume_type: str | None = None
    device_name: str | None = None
    device_type: str | None = None
    disk_bus: str | None = None
    guest_format: str | None = None
    delete_on_termination: bool = False
    tag: str | None = None
    no_device: bool = False

    @property
    def is_volume(self) -> bool:
        return self.destination_type == VOLUME

    @property
    def is_blank(self) -> bool:
        """Whether it is an empty local disk: ephemeral or swap."""
        return self.source_type == BLANK and self.destination_type == LOCAL

    @property
    def is_swap(self) -> bool:
        return self.is_blank and self.guest_format == SWAP

    @property
    def is_ephemeral(self) -> bool:
        return self.is_blank and self.guest_format != SWAP


@dataclass(frozen=True)
class ServerRequest:
    """One server, or several that differ only in their names.

    networks: 'auto', 'none' or the interfaces in order; None if unspecified.
    host, node: where it should run, if the scheduler agrees; forced_host, forced_node: whatever the filters say.
    root_by_name: the disk to boot from is the one with the name of the root device, or else the image.
    """

    name: str
    flavor_id: str
    image_id: str | None = None
    min_count: int = 1
    max_count: int = 1
    description: str | None = None
    hostname: str | None = None
    networks: str | Sequence[NetworkRequest] | None = None
    security_groups: Sequence[str] = ()
    devices: Sequence[Device] = ()
    root_by_name: bool = True
    key_name: str | None = None
    user_data: str | None = None
    config_drive: bool = False
    disk_config: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    personality: Sequence[Mapping[str, str]] = ()
    tags: Sequence[str] = ()
    trusted_image_certificates: Sequence[str] | None = None
    access_ip_v4: str | None = None
    access_ip_v6: str | None = None
    availability_zone: str | None = None
    forced_host: str | None = None
    forced_node: str | None = None
    host: str | None = None
    node: str | None = None
    scheduler_hints: Mapping[str, Any] = field(default_factory=dict)
    admin_pass: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Rights:
    """What the client may request: some of it was added in later versions, some is not for everybody."""

    multiattach_volumes: bool = True
    ports_with_resources: bool = True
    flavors_without_disk: bool = True
    external_networks: bool = True
