"""The disks in the body of a request to create a server, in both formats."""

from collections.abc import Mapping
from typing import Any

from computeapi.api.servers.schemas import TAG
from computeapi.api.types import LENIENT_BOOLEAN, MAX_INTEGER, NONEMPTY, NULLABLE_STRING, POSITIVE, STRING, TEXT, UUID
from computeapi.booleans import is_true
from computeapi.compute.servers.creation import Device
from computeapi.compute.servers.creation.devices import bad, of_facts, of_old_facts
from computeapi.errors import Invalid
from computeapi.versions import ABSENT, added, changed
from computeapi.web.schemas import array, closed, one_of

# ------------------------------------------------------------------ schemas

BUSES = frozenset(('', 'fdc', 'ide', 'sata', 'scsi', 'usb', 'virtio', 'xen', 'lxc', 'uml'))
COMMON = {
    'virtual_name': TEXT,
    'volume_id': UUID,
    'snapshot_id': UUID,
    'volume_size': POSITIVE,
    'device_name': NONEMPTY | {'pattern': '^[a-zA-Z0-9._/-]*$'},
    'delete_on_termination': LENIENT_BOOLEAN,
    'no_device': {},
    'connection_info': STRING,
}
OLD_DEVICE = closed(COMMON)
DEVICE = closed(
    COMMON
    | {
        'source_type': one_of('volume', 'image', 'snapshot', 'blank'),
        'uuid': NONEMPTY | {'pattern': '^[a-zA-Z0-9._-]*$'},
        'image_id': UUID,
        'destination_type': one_of('local', 'volume'),
        'guest_format': TEXT,
        'device_type': TEXT,
        'disk_bus': TEXT,
        'boot_index': {
            'type': ['integer', 'string', 'null'],
            'pattern': '^-?[0-9]+$',
            'minimum': -MAX_INTEGER,
            'maximum': MAX_INTEGER,
        },
        'tag': changed({'2.32': TAG, '2.33': ABSENT, '2.42': TAG}),
        'volume_type': added('2.67', NULLABLE_STRING | {'minLength': 0, 'maxLength': 255}),
    }
)
FIELDS = {
    'block_device_mapping': array(OLD_DEVICE),
    'block_device_mapping_v2': array(DEVICE),
}

# ------------------------------------------------------------------ parsing


def devices_of(server: Mapping[str, Any]) -> dict[str, Any]:
    """`devices` and `root_by_name` of the request; Invalid for inconsistent disks."""
    old, new = server.get('block_device_mapping'), server.get('block_device_mapping_v2')
    if old and new:
        raise Invalid('Using different block_device_mapping syntaxes is not allowed in the same request.')
    if old:
        return {'devices': [of_old_facts(plain(item)) for item in old]}
    if new:
        image_given = server.get('imageRef') is not None
        return {'devices': [device(plain(item), image_given) for item in new], 'root_by_name': False}
    return {}


def plain(item: Mapping[str, Any]) -> dict[str, Any]:
    """The item with its flags as booleans."""
    deleted, absent = item.get('delete_on_termination'), item.get('no_device')
    return {**item, 'delete_on_termination': is_true(deleted), 'no_device': bool(absent)}


def device(item: dict[str, Any], image_given: bool) -> Device:
    """A disk in the newer format, in which the source is given by its uuid."""
    if 'virtual_name' in item:
        raise bad('Some fields are invalid.')
    if item['no_device']:
        return of_facts({'device_name': item.get('device_name'), 'no_device': True})
    check(item, image_given)
    facts = {name: value for name, value in item.items() if not name.endswith('_id')}
    return of_facts({**facts, f'{item["source_type"]}_id': item.get('uuid')})


def check(item: Mapping[str, Any], image_given: bool) -> None:
    """Invalid for an impossible combination of source, destination and ID."""
    source, destination = item.get('source_type'), item.get('destination_type')
    if source == 'blank' and item.get('uuid'):
        raise bad('Invalid device UUID.')
    if source != 'blank' and not item.get('uuid'):
        raise bad('Missing device UUID.')
    if source is None:
        raise bad('Invalid source_type field.')
    if item.get('disk_bus', '') not in BUSES:
        raise Invalid('Block Device Mapping is Invalid.')
    boots = item.get('boot_index') is not None and int(item['boot_index']) == 0
    if (source, destination) == ('image', 'local') and not (image_given and boots):
        raise bad('Mapping image to local is not supported.')
    if item.get('volume_type') and destination == 'local':
        raise bad('Specifying a volume_type with destination_type=local is not supported.')
    if item.get('volume_type') and source == 'volume':
        raise bad('Specifying volume type to existing volume is not supported.')
