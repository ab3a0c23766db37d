"""What the queries of volume and snapshot lists ask for."""

from collections.abc import Callable
from typing import Any

import orjson

from computeapi import errors
from computeapi.standalone.query import comparison, truth
from computeapi.standalone.volume.versions import added
from computeapi.web.request import Request

MAX_MAPPING = 4096

Parser = Callable[[str, str], Any]


def text(name: str, value: str) -> str:
    return value


def mapping(name: str, value: str) -> dict[str, str]:
    """`{"key": "value"}`; clients write it with either kind of quotes."""
    try:
        found = orjson.loads(value[:MAX_MAPPING].replace("'", '"'))
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(item, str) for item in found.values()):
        raise errors.Invalid(f'{name} must be a mapping of names to values.')
    return found


VOLUME_FILTERS: dict[str, tuple[str, Parser]] = {
    'id': ('id', text),
    'name': ('name', text),
    'status': ('status', text),
    'user_id': ('user_id', text),
    'project_id': ('project_id', text),
    'availability_zone': ('availability_zone', text),
    'volume_type': ('volume_type', text),
    'snapshot_id': ('snapshot_id', text),
    'bootable': ('bootable', truth),
    'multiattach': ('multiattach', truth),
    'metadata': ('metadata', mapping),
    'glance_metadata': ('image_metadata', mapping),
    'created_at': ('created_at', comparison),
    'updated_at': ('updated_at', comparison),
}

SNAPSHOT_FILTERS: dict[str, tuple[str, Parser]] = {
    name: VOLUME_FILTERS[name]
    for name in ('id', 'name', 'status', 'user_id', 'project_id', 'metadata', 'created_at', 'updated_at')
} | {'volume_id': ('volume_id', text)}

ATTACHMENT_FILTERS: dict[str, tuple[str, Parser]] = {
    'status': ('status', text),
    'project_id': ('project_id', text),
    'volume_id': ('volume_id', text),
    'instance_id': ('server_id', text),
}


COUNT = {'with_count': added('3.45', True)}
"""Whether a list tells how many items there are in all pages, as `with_count` asks for."""


def filters(req: Request, known: dict[str, tuple[str, Parser]]) -> dict[str, Any]:
    """The filters in the words of the backend; what is not known is passed over."""
    return {known[name][0]: known[name][1](name, values[-1]) for name, values in req.query.items() if name in known}
