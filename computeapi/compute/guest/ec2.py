"""The same facts in the format of EC2: {version}/meta-data/... and user-data, with one path for each fact."""

from collections.abc import Iterator, Sequence
from typing import Any

from computeapi.compute.guest.facts import LATEST, Guest, Part, parts, version_of
from computeapi.compute.guest.openstack import user_data
from computeapi.db.servers import BlockDevice
from computeapi.errors import NotFound

FIRST = '1.0'
VERSIONS = (
    FIRST,
    '2007-01-19',
    '2007-03-01',
    '2007-08-29',
    '2007-10-10',
    '2007-12-15',
    '2008-02-01',
    '2008-09-01',
    '2009-04-04',
)


def ec2_id(kind: str, identifier: str | None) -> str | None:
    """An EC2 ID, which has room only for the beginning of a UUID."""
    return f'{kind}-{identifier[:8]}' if identifier else None


def fixed_address(guest: Guest, version: str) -> str:
    found = (
        each['address'] for entry in guest.server.network_info for each in entry['addresses'] if each['version'] == 4
    )
    return next(found, '')


def floating_address(guest: Guest, version: str) -> str:
    info = guest.server.network_info
    return next((floating for entry in info for each in entry['addresses'] for floating in each['floating']), '')


def security_groups(guest: Guest, version: str) -> list[str]:
    return sorted({name for entry in guest.server.network_info for name in entry['security_groups']})


def public_keys(guest: Guest, version: str) -> dict[str, Any] | None:
    """A folder that is listed with the name of the key, but found without it."""
    server = guest.server
    return {f'0={server.key_name}': {'openssh-key': server.public_key}} if server.key_name else None


def disks(guest: Guest, version: str) -> dict[str, str]:
    """The device names of the disks, by purpose."""
    root = guest.server.root_device_name or ''
    named = {'root': root, 'ami': root.removeprefix('/dev/')}
    volumes, swaps, ephemerals = (
        [disk.device_name for disk in guest.disks if disk.device_name and kind_of(disk) == kind]
        for kind in ('ebs', 'swap', 'ephemeral')
    )
    named |= {f'ebs{at}': name for at, name in enumerate(sorted(volumes))}
    named |= {f'ephemeral{at}': name for at, name in enumerate(ephemerals)}
    return named | dict(zip(['swap'], swaps, strict=False))


def kind_of(disk: BlockDevice) -> str:
    if disk.destination_type == 'volume':
        return 'ebs'
    if disk.source_type != 'blank':
        return 'root'
    return 'swap' if disk.guest_format == 'swap' else 'ephemeral'


META_DATA = {
    'ami-id': Part(FIRST, lambda guest, _: ec2_id('ami', guest.server.image_id or '0' * 8)),
    'ami-launch-index': Part(FIRST, lambda guest, _: guest.server.launch_index),
    # EC2 clients expect a value, but there is none.
    'ami-manifest-path': Part(FIRST, lambda *_: 'FIXME'),
    'instance-id': Part(FIRST, lambda guest, _: f'i-{guest.server.id:08x}'),
    'hostname': Part(FIRST, lambda guest, _: guest.hostname),
    'local-ipv4': Part(FIRST, fixed_address),
    'reservation-id': Part(FIRST, lambda guest, _: guest.server.reservation_id),
    'security-groups': Part(FIRST, security_groups),
    'public-keys': Part(FIRST, public_keys),
    'local-hostname': Part('2007-01-19', lambda guest, _: guest.hostname),
    'public-hostname': Part('2007-01-19', lambda guest, _: guest.hostname),
    'public-ipv4': Part('2007-01-19', floating_address),
    'instance-type': Part('2007-08-29', lambda guest, _: guest.server.flavor['name']),
    'block-device-mapping': Part('2007-12-15', disks),
    'kernel-id': Part('2007-12-15', lambda guest, _: ec2_id('aki', guest.server.kernel_id)),
    'ramdisk-id': Part('2007-12-15', lambda guest, _: ec2_id('ari', guest.server.ramdisk_id)),
    'placement': Part('2008-02-01', lambda guest, _: {'availability-zone': guest.server.availability_zone or ''}),
    'instance-action': Part('2008-09-01', lambda *_: 'none'),
}
DOCUMENTS = {
    'meta-data': Part(FIRST, lambda guest, version: parts(META_DATA, guest, version)),
    'user-data': Part(FIRST, user_data),
}


def find(guest: Guest, path: Sequence[str]) -> Any:
    """A fact, or the list of names below the path; NotFound."""
    if not path:
        return [*VERSIONS, LATEST]
    found: Any = parts(DOCUMENTS, guest, version_of(path[0], VERSIONS))
    for segment in path[1:]:
        named = {name.partition('=')[0]: value for name, value in found.items()} if isinstance(found, dict) else {}
        if segment not in named:
            raise NotFound()
        found = named[segment]
    return listed(found) if isinstance(found, dict) else found


def everything(guest: Guest) -> Iterator[tuple[str, Any]]:
    """The documents of a config drive with their paths: like Nova, only of the newest version. In JSON, the folder of
    the key has its number as its name."""
    documents = parts(DOCUMENTS, guest, VERSIONS[-1])
    facts = documents.pop('meta-data')
    if keys := facts.get('public-keys'):
        facts['public-keys'] = {name.partition('=')[0]: {'_name': name, **key} for name, key in keys.items()}
    for version in (VERSIONS[-1], LATEST):
        for name, found in {'meta-data.json': facts, **documents}.items():
            yield f'ec2/{version}/{name}', found


def listed(folder: dict[str, Any]) -> list[str]:
    """The contents of a folder; subfolders end with a slash, except those that have two names."""
    return [
        name + '/' if isinstance(value, dict) and '=' not in name else name for name, value in sorted(folder.items())
    ]
