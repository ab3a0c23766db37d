"""The OpenStack documents: openstack/{version}/meta_data.json and others."""

import base64
from collections.abc import Iterator, Sequence
from typing import Any

from computeapi.compute.guest.devices import tagged_devices
from computeapi.compute.guest.facts import LATEST, Guest, Part, parts, version_of
from computeapi.compute.guest.network_data import network_data
from computeapi.errors import NotFound

FIRST = '2012-08-10'
VERSIONS = (
    FIRST,
    '2013-04-04',
    '2013-10-17',
    '2015-10-15',
    '2016-06-30',
    '2016-10-06',
    '2017-02-22',
    '2018-08-27',
    '2020-10-14',
    '2025-04-04',
)
CONTENT, PASSWORD = 'content', 'password'

# ------------------------------------------------------------------ meta_data.json


def public_keys(guest: Guest, version: str) -> dict[str, Any] | None:
    return {guest.server.key_name: guest.server.public_key} if guest.server.key_name else None


def keys(guest: Guest, version: str) -> list[dict[str, Any]] | None:
    server = guest.server
    return [{'name': server.key_name, 'type': guest.key_kind, 'data': server.public_key}] if server.key_name else None


def files(guest: Guest, version: str) -> list[dict[str, str]] | None:
    """The injected files; their contents are at content_path."""
    listed = enumerate(guest.server.personality or ())
    return [{'path': file['path'], 'content_path': f'/{CONTENT}/{at:04}'} for at, file in listed] or None


META_DATA = {
    'uuid': Part(FIRST, lambda guest, _: guest.server.uuid),
    'name': Part(FIRST, lambda guest, _: guest.server.name),
    'hostname': Part(FIRST, lambda guest, _: guest.hostname),
    'launch_index': Part(FIRST, lambda guest, _: guest.server.launch_index),
    'availability_zone': Part(FIRST, lambda guest, _: guest.server.availability_zone),
    'meta': Part(FIRST, lambda guest, _: guest.server.metadata or None),
    'public_keys': Part(FIRST, public_keys),
    'keys': Part(FIRST, keys),
    'files': Part(FIRST, files),
    'admin_pass': Part(FIRST, lambda guest, _: guest.admin_pass),
    'random_seed': Part('2013-04-04', lambda guest, _: base64.b64encode(guest.seed).decode()),
    'project_id': Part('2015-10-15', lambda guest, _: guest.server.project_id),
    'devices': Part('2016-06-30', tagged_devices),
    # No host pins CPUs; see computeapi.compute.servers.topology.
    'dedicated_cpus': Part('2020-10-14', lambda guest, _: []),
}

# ------------------------------------------------------------------ the documents


def user_data(guest: Guest, version: str) -> bytes | None:
    text = guest.server.user_data
    return None if text is None else decoded(text)


def decoded(text: str) -> bytes:
    """The content in base64; text that is not, which an older release or a cloud file may have stored, as it is."""
    try:
        return base64.b64decode(text)
    except ValueError:
        return text.encode()


DOCUMENTS = {
    'meta_data.json': Part(FIRST, lambda guest, version: parts(META_DATA, guest, version)),
    'user_data': Part(FIRST, user_data),
    PASSWORD: Part('2013-04-04', lambda guest, _: guest.server.password or ''),
    'vendor_data.json': Part('2013-10-17', lambda guest, _: guest.vendor_data),
    'network_data.json': Part('2015-10-15', lambda guest, _: network_data(guest)),
    'vendor_data2.json': Part('2016-10-06', lambda guest, _: {'static': guest.vendor_data}),
}


def find(guest: Guest, path: Sequence[str]) -> Any:
    """A document, or the list of names below the path; NotFound."""
    match path:
        case []:
            return [*VERSIONS, LATEST]
        case [folder, number] if folder == CONTENT:
            return content(guest, number)
        case [version]:
            return list(parts(DOCUMENTS, guest, version_of(version, VERSIONS)))
        case [version, name]:
            table = {name: DOCUMENTS[name]} if name in DOCUMENTS else {}
            found = parts(table, guest, version_of(version, VERSIONS))
            if name in found:
                return found[name]
    raise NotFound()


def everything(guest: Guest) -> Iterator[tuple[str, Any]]:
    """All documents with their paths, except the password, which the guest can write."""
    for version in (*VERSIONS, LATEST):
        for name, found in parts(DOCUMENTS, guest, version_of(version, VERSIONS)).items():
            if name != PASSWORD:
                yield f'openstack/{version}/{name}', found
    for number in range(len(guest.server.personality or ())):
        yield f'openstack/{CONTENT}/{number:04}', content(guest, f'{number:04}')


def content(guest: Guest, number: str) -> bytes:
    """The contents of an injected file."""
    stored = {f'{at:04}': file['contents'] for at, file in enumerate(guest.server.personality or ())}
    if number not in stored:
        raise NotFound()
    return decoded(stored[number])
