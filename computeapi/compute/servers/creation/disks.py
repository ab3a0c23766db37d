"""Checks the disks of a new server."""

from collections.abc import Sequence
from dataclasses import replace

from computeapi.backends.image import Images
from computeapi.backends.volume import Volume, Volumes
from computeapi.compute.servers.creation.boot import unusable
from computeapi.compute.servers.creation.devices import bad
from computeapi.compute.servers.creation.request import BLANK, IMAGE, LOCAL, VOLUME, Device, Rights
from computeapi.compute.servers.disks import check_zone
from computeapi.context import Context
from computeapi.db.flavors import Flavor
from computeapi.errors import Invalid, NotFound, VolumeNotFound


class RequestedDisks:
    """Checks disks against existing images, snapshots and volumes; most_local -1: any number of local disks.

    any_zone: whether volumes may be in any availability zone."""

    def __init__(self, images: Images, volumes: Volumes, most_local: int, any_zone: bool = True):
        self.images, self.volumes, self.most_local, self.any_zone = images, volumes, most_local, any_zone

    def check(
        self, context: Context, devices: Sequence[Device], flavor: Flavor, image_id: str | None, rights: Rights
    ) -> list[Device]:
        """The same disks, with the sizes of their volumes and snapshots; Invalid, VolumeTypeNotFound.

        image_id: the image of the request, which is known to exist."""
        check_boot_order(devices)
        devices = self.with_volumes(context, devices, rights)
        self.check_types(context, devices)
        self.check_images(context, devices, image_id)
        devices = [self.with_snapshot(context, device) for device in devices]
        check_sizes(devices)
        check_flavor(devices, flavor)
        self.check_local(devices)
        return devices

    def with_volumes(self, context: Context, devices: Sequence[Device], rights: Rights) -> list[Device]:
        named = [device.volume_id for device in devices if device.volume_id]
        ids = set(named)
        if len(ids) < len(named):
            raise bad('a volume can be only one disk of a server.')
        found = self.volumes.get_many(context, ids) if ids else {}
        for missing in sorted(ids - found.keys()):
            raise VolumeNotFound(id=missing)
        if not rights.multiattach_volumes and any(volume.multiattach for volume in found.values()):
            raise Invalid('Multiattach volumes are only supported starting with compute API version 2.60.')
        return [with_size(device, found.get(device.volume_id or '')) for device in devices]

    def zone(self, context: Context, devices: Sequence[Device], wanted: str | None) -> str | None:
        """The availability zone of the server, if it can only have volumes of its own zone; Invalid."""
        if self.any_zone:
            return wanted
        found = self.volumes.get_many(context, [device.volume_id for device in devices if device.volume_id])
        zones = {volume.availability_zone for volume in found.values()}
        zone = wanted if wanted is not None or len(zones) != 1 else zones.pop()
        for volume in found.values():
            check_zone(volume, zone)
        return zone

    def check_types(self, context: Context, devices: Sequence[Device]) -> None:
        for name in sorted({device.volume_type for device in devices if device.volume_type}):
            self.volumes.volume_type(context, name)

    def check_images(self, context: Context, devices: Sequence[Device], image_id: str | None) -> None:
        ids = {device.image_id for device in devices if device.image_id} - {image_id}
        found = self.images.get_many(context, ids) if ids else {}
        for missing in sorted(ids - found.keys()):
            raise unusable('image', missing)

    def with_snapshot(self, context: Context, device: Device) -> Device:
        if not device.snapshot_id:
            return device
        try:
            snapshot = self.volumes.get_snapshot(context, device.snapshot_id)
        except NotFound:
            raise unusable('snapshot', device.snapshot_id) from None
        return replace(device, volume_size=device.volume_size or snapshot.size)

    def check_local(self, devices: Sequence[Device]) -> None:
        local = sum(device.destination_type == LOCAL for device in devices)
        if 0 <= self.most_local < local:
            raise Invalid('You specified more local devices than the limit allows')


def with_size(device: Device, volume: Volume | None) -> Device:
    return device if volume is None else replace(device, volume_size=volume.size)


def check_boot_order(devices: Sequence[Device]) -> None:
    """Boot indexes count from 0 without gaps; at least one disk has one."""
    order = sorted(each.boot_index for each in devices if each.boot_index is not None and each.boot_index >= 0)
    if not order or order != list(range(len(order))):
        raise bad('Boot sequence for the instance and image/block device mapping combination is not valid.')


def check_sizes(devices: Sequence[Device]) -> None:
    """A volume that is to be created needs a size."""
    for device in devices:
        if device.destination_type == VOLUME and not device.volume_size:
            if device.source_type == IMAGE:
                raise Invalid("Images with destination_type 'volume' need to have a non-zero size specified")
            if device.source_type == BLANK:
                raise Invalid("Blank volumes (source: 'blank', dest: 'volume') need to have non-zero size")


def check_flavor(devices: Sequence[Device], flavor: Flavor) -> None:
    """Local empty disks must not be larger than the flavor allows."""
    if sum(device.volume_size or 0 for device in devices if device.is_ephemeral) > flavor.ephemeral_gb:
        raise Invalid(
            'Ephemeral disks requested are larger than the instance type allows. '
            'If no size is given in one block device mapping, flavor ephemeral size will be used.'
        )
    swaps = [device for device in devices if device.is_swap]
    if len(swaps) > 1:
        raise bad('More than one swap drive requested.')
    if swaps and (swaps[0].volume_size or 0) > flavor.swap:
        raise Invalid('Swap drive requested is larger than instance type allows.')
