"""The disks of servers, including their volumes."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from computeapi.backends.hypervisor.simulated_hosts import connector
from computeapi.clock import parsed
from computeapi.compute.servers.disk_names import letters
from computeapi.kit.cloud_files.content import CloudContent, Entry, Values
from computeapi.kit.cloud_files.document import CloudFileError, Place
from computeapi.kit.cloud_files.server_schema import DISK

VOLUME = 'volume'

UNSAID = (
    *('uuid', 'volume_id', 'attachment_id', 'device_type', 'disk_bus', 'guest_format', 'volume_size', 'volume_type'),
    *('snapshot_id', 'tag', 'created_at'),
)
ROOT = {
    **dict.fromkeys(UNSAID),
    **{'source_type': 'image', 'destination_type': 'local', 'boot_index': 0, 'delete_on_termination': True},
}
"""The defaults of a disk that is created from the image."""


def load(content: CloudContent, server: Values, entry: Entry, place: Place, volumes: Mapping[str, Values]) -> bool:
    """Give a server its disks, including one from its image; returns whether its root disk is a volume.

    volumes: those of the document, by ID.
    """
    found = [
        (at, each, content.values(DISK, each, at, server['project_id']))
        for number, each in enumerate(entry.get('disks', ()))
        for at in [(*place, 'disks', number)]
    ]
    root = next((row for _, _, row in found if row['boot_index'] == 0), None)
    if server['image_id'] is not None and root is None:
        found.insert(0, ((), {}, _of_image(server)))
    names = _free_names(server, [row['device_name'] for _, _, row in found])
    for number, (at, disk, row) in enumerate(found):
        row['uuid'] = row['uuid'] or content.made_id('disks', server['uuid'], str(number))
        is_root = row['boot_index'] == 0
        row['device_name'] = row['device_name'] or (server['root_device_name'] if is_root else next(names))
        row['device_type'] = row['device_type'] or 'disk'
        row['created_at'] = row['created_at'] or server['created_at']
        row['server_id'] = server['uuid']
        if row['destination_type'] == VOLUME:
            _attach(content, server, row, disk, at, volumes)
        content.rows['block_devices'].append(row)
    return server['image_id'] is None or (root is not None and root['destination_type'] == VOLUME)


def _of_image(server: Values) -> Values:
    return {**ROOT, 'image_id': server['image_id'], 'device_name': server['root_device_name']}


def _free_names(server: Values, taken: list[str | None]) -> Iterator[str]:
    """/dev/vdb and so on, without names that are in use."""
    root = server['root_device_name'] or '/dev/vda'
    used = {root, *taken}
    yield from (name for letter in letters() if (name := root[:-1] + letter) not in used)


def _attach(
    content: CloudContent, server: Values, row: Values, entry: Entry, place: Place, volumes: Mapping[str, Values]
) -> None:
    """Attach the volume to the server, or reserve it while the server is on no host."""
    volume, host = volumes.get(row['volume_id'] or ''), server['host']
    if volume is None:
        raise CloudFileError((*place, 'volume'), 'the volume is not in this file')
    if volume['status'] in ('in-use', 'reserved') and not volume['multiattach']:
        raise CloudFileError((*place, 'volume'), 'the volume is attached to another server')
    row['attachment_id'] = row['attachment_id'] or content.made_id('attachments', server['uuid'], volume['id'])
    row['volume_size'] = row['volume_size'] or volume['size']
    if volume['status'] in ('available', 'reserved'):
        volume['status'] = 'in-use' if host else 'reserved'
    moment = parsed(entry['attached_at']) if entry.get('attached_at') else row['created_at']
    attachment: dict[str, Any] = {
        'id': row['attachment_id'],
        'volume_id': volume['id'],
        'server_id': server['uuid'],
        'mode': 'rw',
        'created_at': row['created_at'],
        'status': 'attached' if host else 'reserved',
        'host': host,
        'device': row['device_name'] if host else None,
        'connector': None,
        'attached_at': moment if host else None,
    }
    if host:
        known = connector(host, content.row('hosts', host)['host_ip']) | {'mountpoint': row['device_name']}
        attachment['connector'] = orjson.dumps(known).decode()
    content.rows['volume_attachments'].append(attachment)
