"""The boot source of a server: an image, or a volume that was or will be created from one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oslo_utils import strutils

from computeapi.backends.image import Image, Images
from computeapi.backends.volume import Volume, Volumes
from computeapi.compute.servers.creation.request import Device, Rights, ServerRequest
from computeapi.compute.servers.disks import root_of
from computeapi.context import Context
from computeapi.db.flavors import Flavor
from computeapi.errors import Forbidden, ImageNotFound, Invalid, NotAuthenticated, NotFound

GIB = 2**30
# Properties about disks; the server's own disks are more precise.
ABOUT_DISKS = frozenset({'block_device_mapping', 'mappings', 'bdm_v2'})
CONFIG_DRIVE_NEEDS = ('optional', 'mandatory')
AUTO, MANUAL = 'AUTO', 'MANUAL'
DISK_CONFIG, MIN_DISK, MIN_RAM = 'auto_disk_config', 'min_disk', 'min_ram'
MIN_SIZES = frozenset({MIN_DISK, MIN_RAM})
"""They are kept with the properties of a server's image, but are none: GiB and MiB."""


@dataclass(frozen=True)
class Source:
    """The image, or what the volume records of it; sizes in bytes, memory in MiB."""

    image: Image | None = None
    size: int = 0
    min_disk: int = 0
    min_ram: int = 0
    properties: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kept_properties(self) -> dict[str, Any]:
        """The properties that the server keeps."""
        return {name: value for name, value in self.properties.items() if name not in ABOUT_DISKS}


class Sources:
    """Finds the boot source of a server."""

    def __init__(self, images: Images, volumes: Volumes):
        self.images, self.volumes = images, volumes

    def find(self, context: Context, request: ServerRequest, devices: Sequence[Device]) -> Source:
        """devices: those of the request, with the boot index that they have without the image."""
        if request.image_id:
            return of_image(self.image(context, request.image_id))
        if request.trusted_image_certificates:
            raise Invalid('Image certificate validation is not supported when booting from volume')
        root = root_of(devices)
        return self.of_device(context, root) if root else Source()

    def image(self, context: Context, image_id: str) -> Image:
        try:
            return self.images.get(context, image_id)
        except ImageNotFound:
            raise Invalid('Can not find requested image') from None
        except (Forbidden, NotAuthenticated):
            raise Invalid(f'Not authorized for image {image_id}.') from None

    def of_device(self, context: Context, device: Device) -> Source:
        if device.image_id:
            return self._image_of(context, device.image_id)
        if device.volume_id:
            return self._of_volume(context, device.volume_id)
        if device.snapshot_id:
            return self._of_snapshot(context, device.snapshot_id)
        return Source()

    def _image_of(self, context: Context, image_id: str) -> Source:
        try:
            return of_image(self.images.get(context, image_id))
        except NotFound:
            raise unusable('image', image_id) from None

    def _of_volume(self, context: Context, volume_id: str) -> Source:
        try:
            volume = self.volumes.get(context, volume_id)
        except NotFound:
            raise unusable('volume', volume_id) from None
        if not volume.bootable:
            raise Invalid(f'Block Device {volume_id} is not bootable.')
        return of_volume(volume)

    def _of_snapshot(self, context: Context, snapshot_id: str) -> Source:
        snapshot = self.volumes.get_snapshot(context, snapshot_id)
        try:
            return of_volume(self.volumes.get(context, snapshot.volume_id))
        except NotFound:
            raise unusable('snapshot', snapshot_id) from None


def of_image(image: Image) -> Source:
    return Source(
        image=image,
        size=image.size or 0,
        min_disk=image.min_disk * GIB,
        min_ram=image.min_ram,
        properties=image.properties,
    )


def of_volume(volume: Volume) -> Source:
    known = volume.image_metadata
    return Source(
        size=volume.size * GIB,
        min_disk=minimum(known, MIN_DISK) * GIB,
        min_ram=minimum(known, MIN_RAM),
        properties=volume.image_properties,
    )


def minimum(known: Mapping[str, Any], name: str) -> int:
    """A minimum size of the image; Invalid if it is not a number, because users can write anything to a volume."""
    try:
        return int(known.get(name) or 0)
    except ValueError:
        raise Invalid(f"Image's {name} '{known[name]:.64}' is not an integer.") from None


def unusable(kind: str, identifier: str) -> Invalid:
    """The source of a disk does not exist, or is not the caller's."""
    return Invalid(f'Block Device Mapping is Invalid: failed to get {kind} {identifier}.')


# ------------------------------------------------------------------ checks


def check(source: Source, flavor: Flavor, root: Device | None, rights: Rights) -> None:
    """Invalid unless the source can be booted with that flavor and from that disk."""
    if source.image is not None and source.image.status != 'active':
        raise Invalid(f'Image {source.image.id} is not active.')
    needed = source.properties.get('img_config_drive', 'optional')
    if needed not in CONFIG_DRIVE_NEEDS:
        raise Invalid(f"Image's config drive option '{needed}' is invalid")
    check_memory(source.min_ram, flavor)
    if root is not None and root.is_volume:
        check_volume(source, root)
    elif source.image is not None:
        check_disk(source, flavor, rights)


def check_new_flavor(known: Mapping[str, Any], flavor: Flavor, *, on_volume: bool) -> None:
    """Invalid unless a server for which this is *known* of its image can get another flavor."""
    check_memory(minimum(known, MIN_RAM), flavor)
    if not on_volume:
        check_min_disk(minimum(known, MIN_DISK) * GIB, flavor)


def check_memory(min_ram: int, flavor: Flavor) -> None:
    if flavor.memory_mb < min_ram:
        raise Invalid("Flavor's memory is too small for requested image.")


def check_volume(source: Source, root: Device) -> None:
    size = (root.volume_size or 0) * GIB
    if size and source.min_disk > size:
        raise Invalid(
            'Volume is smaller than the minimum size specified in image metadata. '
            f'Volume size is {size} bytes, minimum size is {source.min_disk} bytes.'
        )


def check_disk(source: Source, flavor: Flavor, rights: Rights) -> None:
    """A flavor with a disk of 0 means one as large as the image, which uses an unknown amount of the host's disk."""
    size = flavor.root_gb * GIB
    if size == 0:
        if not rights.flavors_without_disk:
            raise Forbidden('Only volume-backed servers are allowed for flavors with zero disk.')
        return
    if source.size > size:
        raise Invalid(
            "Flavor's disk is too small for requested image. "
            f'Flavor disk is {size} bytes, image is {source.size} bytes.'
        )
    check_min_disk(source.min_disk, flavor)


def check_min_disk(min_disk: int, flavor: Flavor) -> None:
    size = flavor.root_gb * GIB
    if size and min_disk > size:
        raise Invalid(
            "Flavor's disk is smaller than the minimum size specified in image metadata. "
            f'Flavor disk is {size} bytes, minimum size is {min_disk} bytes.'
        )


def check_disk_config(properties: Mapping[str, Any], image_id: str | None, requested: str | None) -> None:
    """Invalid if AUTO is requested and the image forbids it."""
    if requested == AUTO and str(properties.get(DISK_CONFIG, '')).strip().lower() == 'disabled':
        raise Invalid(f'Requested image {image_id or ""} has automatic disk resize disabled.')


# ------------------------------------------------------------------ derived values


def disk_config(source: Source, requested: str | None) -> str:
    """AUTO or MANUAL: by the request, or else by the image; Invalid if the image forbids AUTO."""
    check_disk_config(source.properties, source.image.id if source.image else None, requested)
    wish = str(source.properties.get(DISK_CONFIG, ''))
    return requested or (AUTO if strutils.bool_from_string(wish) else MANUAL)


def min_sizes(source: Source, root_gb: int) -> dict[str, int]:
    """The minimum sizes of any later flavor, by the names that images have for them. The local disk that a server gets
    with its image counts as its minimum, as in Nova: it never becomes smaller."""
    return {MIN_RAM: source.min_ram, MIN_DISK: max(source.min_disk // GIB, root_gb)}
