"""Images and members as clients read and write them, and the schemas that say so."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from computeapi import errors
from computeapi.backends.image import Image
from computeapi.backends.image.local import VISIBILITIES
from computeapi.backends.image.members import STATUSES, Member
from computeapi.standalone.query import MAX_INTEGER
from computeapi.standalone.schema import Schema

UUID = r'^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$'

CONTAINER_FORMATS = (None, 'ami', 'ari', 'aki', 'bare', 'ovf', 'ova', 'docker', 'compressed')
DISK_FORMATS = (None, 'ami', 'ari', 'aki', 'vhd', 'vhdx', 'vmdk', 'raw', 'qcow2', 'vdi', 'iso', 'ploop')

COUNT = {'type': 'integer', 'minimum': 0, 'maximum': MAX_INTEGER}
TIME = {'type': 'string', 'format': 'date-time'}

WRITABLE: dict[str, dict[str, Any]] = {
    'id': {'type': 'string', 'pattern': UUID},
    'name': {'type': ['null', 'string'], 'maxLength': 255},
    'owner': {'type': ['null', 'string'], 'maxLength': 64},
    'visibility': {'type': 'string', 'enum': list(VISIBILITIES)},
    'protected': {'type': 'boolean'},
    'os_hidden': {'type': 'boolean'},
    'container_format': {'type': ['null', 'string'], 'enum': list(CONTAINER_FORMATS)},
    'disk_format': {'type': ['null', 'string'], 'enum': list(DISK_FORMATS)},
    'min_disk': COUNT,
    'min_ram': COUNT,
    'tags': {'type': 'array', 'items': {'type': 'string', 'minLength': 1, 'maxLength': 255}},
}

RENAMED = {'os_hidden': 'hidden'}
"""The attributes of Image that have other names."""

READ_ONLY: dict[str, dict[str, Any]] = {
    'status': {'type': 'string', 'enum': ['queued', 'saving', 'active', 'deactivated']},
    'size': {'type': ['null', 'integer']},
    'virtual_size': {'type': ['null', 'integer']},
    'checksum': {'type': ['null', 'string'], 'maxLength': 32},
    'os_hash_algo': {'type': ['null', 'string'], 'maxLength': 64},
    'os_hash_value': {'type': ['null', 'string'], 'maxLength': 128},
    'created_at': TIME,
    'updated_at': TIME,
    'self': {'type': 'string'},
    'file': {'type': 'string'},
    'schema': {'type': 'string'},
    'direct_url': {'type': 'string'},
    'locations': {'type': 'array'},
    'stores': {'type': 'string'},
}

RESERVED = 'os_glance'
"""What the names of properties begin with that are the image service's own."""

IMAGE = Schema(
    {
        'type': 'object',
        'properties': WRITABLE,
        'propertyNames': {'minLength': 1, 'maxLength': 255},
        'additionalProperties': {'type': ['null', 'string'], 'maxLength': 65535},
    }
)

MEMBER = {
    'member_id': {'type': 'string'},
    'image_id': {'type': 'string', 'pattern': UUID},
    'status': {'type': 'string', 'enum': list(STATUSES)},
    'created_at': TIME,
    'updated_at': TIME,
    'schema': {'type': 'string'},
}


def _list_of(name: str, item: dict[str, Any]) -> dict[str, Any]:
    link = {'type': 'string'}
    properties = {name: {'type': 'array', 'items': item}, 'first': link, 'next': link, 'schema': link}
    return {'name': name, 'properties': properties}


_IMAGE = {
    'name': 'image',
    'properties': WRITABLE | {name: {**schema, 'readOnly': True} for name, schema in READ_ONLY.items()},
    'additionalProperties': {'type': 'string'},
}
_MEMBER = {'name': 'member', 'properties': MEMBER}

_TEXT = {'type': 'string'}
_NAMESPACE = {
    'name': 'namespace',
    'properties': {
        **dict.fromkeys(('namespace', 'display_name', 'description', 'visibility', 'owner', 'self', 'schema'), _TEXT),
        'protected': {'type': 'boolean'},
        'created_at': TIME,
        'updated_at': TIME,
        'resource_type_associations': {'type': 'array', 'items': {'type': 'object'}},
    },
}
_RESOURCE_TYPE = {
    'name': 'resource_type_association',
    'properties': {
        **dict.fromkeys(('name', 'prefix', 'properties_target'), _TEXT),
        'created_at': TIME,
        'updated_at': TIME,
    },
}

DESCRIPTIONS = {
    'image': _IMAGE,
    'images': _list_of('images', _IMAGE),
    'member': _MEMBER,
    'members': _list_of('members', _MEMBER),
    'metadefs/namespace': _NAMESPACE,
    'metadefs/namespaces': _list_of('namespaces', _NAMESPACE),
    'metadefs/resource_type': _RESOURCE_TYPE,
}


def time(moment: datetime | None) -> str | None:
    return None if moment is None else f'{moment:%Y-%m-%dT%H:%M:%SZ}'


def writable(image: Image) -> dict[str, Any]:
    """What a client may change of the image; properties stand beside the attributes."""
    attributes = {name: getattr(image, RENAMED.get(name, name)) for name in WRITABLE}
    return {**image.properties, **attributes, 'tags': list(image.tags)}


def view(image: Image) -> dict[str, Any]:
    return {
        **writable(image),
        **{name: getattr(image, name) for name in ('status', 'size', 'virtual_size', 'checksum')},
        'os_hash_algo': 'sha512' if image.hash_value else None,
        'os_hash_value': image.hash_value,
        'created_at': time(image.created_at),
        'updated_at': time(image.updated_at),
        'self': f'/v2/images/{image.id}',
        'file': f'/v2/images/{image.id}/file',
        'schema': '/v2/schemas/image',
    }


def facts(document: dict[str, Any]) -> dict[str, Any]:
    """The document as attributes of Image; Invalid if it does not fit. What names clients can set is checked elsewhere:
    what compute makes images of may have given one others."""
    IMAGE.check(document)
    known = {name: value for name, value in document.items() if name in WRITABLE}
    for name in {'min_disk', 'min_ram'} & known.keys():
        known[name] = int(known[name])
    others = {name: value for name, value in document.items() if name not in WRITABLE}
    return {**{RENAMED.get(name, name): value for name, value in known.items()}, 'properties': others}


def check_names(names: Iterable[str]) -> None:
    """Forbidden if a client cannot set one of them."""
    for name in names:
        if name in READ_ONLY:
            raise errors.Forbidden(f"Attribute '{name}' is read-only.")
        if name.startswith(RESERVED):
            raise errors.Forbidden(f"Attribute '{name}' is reserved.")


def member_view(member: Member) -> dict[str, Any]:
    return {
        **{name: getattr(member, name) for name in ('member_id', 'image_id', 'status')},
        'created_at': time(member.created_at),
        'updated_at': time(member.updated_at),
        'schema': '/v2/schemas/member',
    }
