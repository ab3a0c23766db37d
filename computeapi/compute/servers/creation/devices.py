"""The disks of a new server: from the request, from the image, from the flavor."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import orjson
from oslo_utils import strutils

from computeapi.compute.servers.creation.request import BLANK, IMAGE, LOCAL, SNAPSHOT, SWAP, VOLUME, Device
from computeapi.compute.servers.disk_names import names_for
from computeapi.db.flavors import Flavor
from computeapi.errors import Invalid

ROOT = 'vda'
MAY_BE_ROOT = (VOLUME, SNAPSHOT, IMAGE)
SOURCES = (*MAY_BE_ROOT, BLANK)
FACTS = tuple(each.name for each in fields(Device))
OLD_FACTS = ('device_name', 'delete_on_termination', 'volume_size', 'snapshot_id', 'volume_id', 'no_device')
FLAGS = ('delete_on_termination', 'no_device')
NUMBERS = ('boot_index', 'volume_size')
MAX_LENGTHS = {'tag': 60, 'image_id': 64, 'snapshot_id': 64, 'volume_id': 64}
MAX_INTEGER = 2**31 - 1


def bad(details: str) -> Invalid:
    """The error for an invalid disk."""
    return Invalid(f'Block Device Mapping is Invalid: {details}')


def bare(device_name: str | None) -> str | None:
    """vda for /dev/vda"""
    return device_name.removeprefix('/dev/') if device_name else None


def path_of(device_name: str | None) -> str | None:
    """/dev/vda for vda"""
    return f'/dev/{bare(device_name)}' if device_name else None


def root_name_of(properties: Mapping[str, Any]) -> str:
    """The name of the boot disk, by the properties of the image: vda"""
    return bare(properties.get('root_device_name')) or ROOT


def planned(
    requested: Sequence[Device],
    *,
    image_id: str | None,
    properties: Mapping[str, Any],
    flavor: Flavor,
    root_by_name: bool,
) -> list[Device]:
    """All disks of a server: the requested ones, those that the image defines, and those of the flavor."""
    root_name = root_name_of(properties)
    if image_id and not root_by_name:
        check_names(requested, root_name)
    defined = of_properties(properties, root_name)
    root_is_defined = any(device.boot_index == 0 for device in defined)
    if root_by_name:
        requested = with_root(requested, root_name, None if root_is_defined else image_id, not root_is_defined)
    elif root_is_defined:
        # Clients list the image among the disks; here it only stands for the disks that it defines.
        requested = [device for device in requested if device.boot_index != 0 or device.source_type != IMAGE]
    devices = merged(requested, defined)
    devices += of_flavor(flavor, devices)
    return [sized(device, flavor) for device in devices if not device.no_device]


def check_names(requested: Sequence[Device], root_name: str) -> None:
    """A volume in addition to an image cannot have the name of the image's disk."""
    if any(device.is_volume and bare(device.device_name) == root_name for device in requested):
        raise Invalid(f'The volume cannot be assigned the same device name as the root device {root_name}')


def with_root(requested: Sequence[Device], root_name: str, image_id: str | None, wanted: bool = True) -> list[Device]:
    """The root is the disk with that name; if there is none, the image. The others are not boot disks."""
    named = [
        wanted and device.source_type in MAY_BE_ROOT and bare(device.device_name) == root_name for device in requested
    ]
    devices = [replace(device, boot_index=0 if root else -1) for device, root in zip(requested, named, strict=True)]
    return devices if any(named) or not image_id else [of_image(image_id), *devices]


def merged(first: Sequence[Device], second: Sequence[Device]) -> list[Device]:
    """Both lists; of two disks with the same device name, the first one counts."""
    taken = {device.device_name for device in first if device.device_name}
    return [*first, *(device for device in second if device.device_name not in taken)]


def of_image(image_id: str) -> Device:
    """The local copy of an image."""
    return Device(IMAGE, LOCAL, 0, image_id=image_id, device_type='disk', delete_on_termination=True)


def of_flavor(flavor: Flavor, devices: Sequence[Device]) -> list[Device]:
    """The ephemeral disk and the swap of the flavor, unless such disks are listed."""
    blank = Device(BLANK, LOCAL, -1, delete_on_termination=True)
    more = []
    if flavor.ephemeral_gb and not any(device.is_ephemeral for device in devices):
        more.append(replace(blank, volume_size=flavor.ephemeral_gb))
    if flavor.swap and not any(device.is_swap for device in devices):
        more.append(replace(blank, volume_size=flavor.swap, guest_format=SWAP))
    return more


def sized(device: Device, flavor: Flavor) -> Device:
    """A local empty disk without a size gets the flavor's."""
    if device.volume_size is not None or not device.is_blank:
        return device
    return replace(device, volume_size=flavor.swap if device.is_swap else flavor.ephemeral_gb)


def named(devices: Sequence[Device], root_name: str) -> Sequence[Device]:
    """If all disks are local, they get their names now; otherwise they get them when the volumes are attached."""
    if any(device.is_volume for device in devices):
        return devices
    names = names_for(devices, path_of(root_name))
    return [replace(device, device_name=name) for device, name in zip(devices, names, strict=True)]


# ------------------------------------------------------------------ disks as others describe them


def of_properties(properties: Mapping[str, Any], root_name: str) -> list[Device]:
    """The disks that the image of a server on volumes defines in its properties."""
    items = described(properties.get('block_device_mapping'))
    if strutils.bool_from_string(properties.get('bdm_v2')):
        return [of_facts(item) for item in items]
    return with_root([of_old_facts(item) for item in items], root_name, None)


def described(value: Any) -> list[dict[str, Any]]:
    try:
        items = orjson.loads(value) if isinstance(value, str) else value or []
    except ValueError:
        items = None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise bad('the image property block_device_mapping is not a list of objects.')
    return items


def of_facts(item: Mapping[str, Any]) -> Device:
    """A disk by the attribute names of Device, as in images."""
    facts = {name: checked(name, item[name]) for name in FACTS if item.get(name) is not None}
    source = facts.setdefault('source_type', BLANK)
    facts.setdefault('destination_type', VOLUME if source in (VOLUME, SNAPSHOT) else LOCAL)
    if source not in SOURCES or facts['destination_type'] not in (LOCAL, VOLUME):
        raise bad('Invalid source_type field.')
    if source in (VOLUME, SNAPSHOT) and not facts.get(f'{source}_id'):
        raise bad('Missing device UUID.')
    return Device(**facts)


def of_old_facts(item: Mapping[str, Any]) -> Device:
    """A disk in the legacy format of mappings: a volume, a snapshot, or the virtual name of an empty disk."""
    facts = {name: checked(name, item[name]) for name in OLD_FACTS if item.get(name) is not None}
    virtual = item.get('virtual_name') or ''
    if virtual == SWAP or str(virtual).startswith('ephemeral'):
        facts |= {'guest_format': SWAP} if virtual == SWAP else {}
        return Device(BLANK, LOCAL, **facts | {'delete_on_termination': True})
    for source in (SNAPSHOT, VOLUME):
        if f'{source}_id' in facts:
            return Device(source, VOLUME, **facts)
    if facts.get('no_device'):
        return Device(BLANK, LOCAL, **facts)
    raise bad('Unrecognized legacy format.')


def checked(name: str, value: Any) -> Any:
    """The value as Device has it; images may contain anything."""
    if name in FLAGS:
        return bool(strutils.bool_from_string(value))
    if name in NUMBERS:
        return whole(name, value)
    if not isinstance(value, str) or len(value) > MAX_LENGTHS.get(name, 255):
        raise bad(f'{name} is not a string, or is too long.')
    return path_of(value) if name == 'device_name' else value


def whole(name: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise bad(f'{name} is not an integer.') from None
    if abs(number) > MAX_INTEGER:
        raise bad(f'{name} is out of bounds.')
    return number
