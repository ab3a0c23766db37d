"""`computeapi clone`: reads a real cloud into a document, through openstacksdk and with the permissions of a user."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from computeapi.kit.cloud_files.clone_compute import ClonedCompute
from computeapi.kit.cloud_files.clone_network import networks, ports
from computeapi.kit.cloud_files.clone_reader import Json, Reader, moved, named, project_of
from computeapi.kit.cloud_files.document import texts_at
from computeapi.kit.cloud_files.identity import DEFAULT_DOMAIN
from computeapi.kit.cloud_files.schema import VERSION
from computeapi.kit.cloud_files.sections import SECTIONS

if TYPE_CHECKING:
    from openstack.connection import Connection

IMAGE = (
    *('id', 'name', 'status', 'visibility', 'size', 'virtual_size', 'min_disk', 'min_ram', 'disk_format'),
    *('container_format', 'checksum', 'os_hash_value', 'protected', 'created_at', 'updated_at', 'tags'),
)
NO_PROPERTIES = {
    'self',
    'file',
    'schema',
    'owner',
    'os_hidden',
    'os_hash_algo',
    'locations',
    'direct_url',
    'stores',
    *IMAGE,
}
VOLUME = ('id', 'name', 'description', 'size', 'status', 'multiattach', 'availability_zone', 'metadata', 'created_at')
SNAPSHOT = ('id', 'name', 'description', 'size', 'status', 'metadata', 'created_at')
FOLLOWS = ('available', 'in-use', 'reserved', 'attaching', 'detaching')
"""Statuses of a volume that follow from its attachments."""


def clone(connection: 'Connection') -> tuple[dict[str, Any], list[str]]:
    """A document that creates a cloud like the connected one, and a list of what it leaves out.

    It never contains user data or passwords. The cloud is not changed.
    """
    reader = Reader(connection)
    document: dict[str, Any] = {'version': VERSION, 'replace': True, **_identity(reader)}
    compute = ClonedCompute(reader)
    document |= compute.all_but_servers()
    document['images'] = list(_images(reader))
    all_ports = ports(reader)
    document |= networks(reader, all_ports)
    document |= _volumes(reader)
    # Servers are listed newest first, and loading creates them in the order of the document.
    document['servers'] = list(compute.servers(all_ports))[::-1]
    _find_shelved(document)
    _complete(document, reader)
    reader.left_out.append('passwords, user data of servers, data of images')
    order = ['version', 'replace', *SECTIONS]
    return {name: document[name] for name in order if document.get(name)}, reader.left_out


def _identity(reader: Reader) -> dict[str, Any]:
    found: dict[str, Any] = {}
    domains = reader.all('identity', '/v3/domains', 'domains', pages=None)
    found['domains'] = [named(each, ('id', 'name', 'description', 'enabled', 'tags')) for each in domains]
    projects = reader.all('identity', '/v3/projects', 'projects', pages=None)
    projects = projects or reader.all('identity', '/v3/auth/projects', 'projects', pages=None)
    found['projects'] = [_project(each) for each in projects]
    roles: dict[str, list[Json]] = defaultdict(list)
    for each in reader.all('identity', '/v3/role_assignments?include_names=true', 'role_assignments', pages=None):
        if 'user' in each:
            roles[each['user']['id']].append(_role(each))
    users = reader.all('identity', '/v3/users', 'users', pages=None)
    facts = {'id': 'id', 'name': 'name', 'description': 'description', 'enabled': 'enabled'}
    facts |= {'domain_id': 'domain', 'default_project_id': 'default_project'}
    found['users'] = [moved(each, facts) | {'roles': roles.get(each['id'], [])} for each in users]
    return found


def _project(each: Json) -> Json:
    facts = {name: name for name in ('id', 'name', 'description', 'enabled', 'tags')} | {'domain_id': 'domain'}
    parent = each.get('parent_id')
    return moved(each, facts) | ({'parent': parent} if parent not in (None, each.get('domain_id')) else {})


def _role(each: Json) -> Json:
    scope = each.get('scope', {})
    inherited = {'inherited': True} if 'OS-INHERIT:inherited_to' in scope else {}
    target = {name: scope[name]['id'] for name in ('project', 'domain') if name in scope} or {'system': 'all'}
    return {'role': each['role']['name'], **target, **inherited}


def _images(reader: Reader) -> Iterator[Json]:
    for each in reader.all('image', '/v2/images', 'images'):
        properties = {name: value for name, value in each.items() if name not in NO_PROPERTIES and value is not None}
        entry = named(each, IMAGE) | {'project': each.get('owner'), 'hidden': each.get('os_hidden', False)}
        yield entry | {'properties': {name: str(value) for name, value in properties.items()}}


def _volumes(reader: Reader) -> dict[str, Any]:
    found: dict[str, Any] = {}
    types = reader.all('block_storage', '/types?is_public=None', 'volume_types')
    facts = ('id', 'name', 'description', 'is_public', 'extra_specs')
    found['volume_types'] = [named(each, facts) for each in types]
    by_name = {each['name']: each['id'] for each in types}
    found['volumes'] = [
        _volume(each, by_name) for each in reader.everyones('block_storage', '/volumes/detail', 'volumes')
    ]
    found['volume_snapshots'] = [
        named(each, SNAPSHOT) | project_of(each) | {'volume': each['volume_id']}
        for each in reader.everyones('block_storage', '/snapshots/detail', 'snapshots')
    ]
    return found


def _volume(each: Json, types: Mapping[str, str]) -> Json:
    entry = named(each, VOLUME) | project_of(each) | {'bootable': str(each.get('bootable')).lower() == 'true'}
    if entry.get('status') in FOLLOWS:
        del entry['status']
    more = {
        'type': types.get(each.get('volume_type') or ''),
        'user': each.get('user_id'),
        'updated_at': each.get('updated_at'),
    }
    more |= {'image_metadata': each.get('volume_image_metadata')}
    more |= {'snapshot': each.get('snapshot_id'), 'source_volume': each.get('source_volid')}
    return entry | {name: value for name, value in more.items() if value is not None}


def _find_shelved(document: dict[str, Any]) -> None:
    """No API returns the image of a shelved server, but such an image has a name derived from the server's."""
    images = {entry.get('name'): entry['id'] for entry in document['images']}
    for server in document['servers']:
        image = images.get(f'{server["name"]}-shelved')
        if image is not None and server.get('vm_state', '').startswith('shelved'):
            server['shelved_image'] = image


def _complete(document: dict[str, Any], reader: Reader) -> None:
    """Add entries, with only their IDs, for referenced projects, users and domains that the caller may not read."""
    for section, name in {'projects': 'project', 'users': 'user', 'domains': 'domain'}.items():
        known = {entry['id'] for entry in document.get(section, ())}
        named_ids = {value for value in texts_at(document, name) if value}
        wanted = named_ids - known - {DEFAULT_DOMAIN}
        document[section] = [*document.get(section, ()), *({'id': each, 'name': each} for each in sorted(wanted))]
        if wanted:
            reader.left_out.append(f'names of {len(wanted)} {section}')
