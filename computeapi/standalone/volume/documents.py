"""The resources of the volume service as clients read them, and basic schemas for request bodies."""

from collections.abc import Callable, Mapping
from typing import Any

from computeapi.backends.volume import Attachment, Volume, VolumeType
from computeapi.backends.volume.local.base import BACKEND, pool_of
from computeapi.backends.volume.local.creation import MAX_SIZE
from computeapi.backends.volume.local.records import MAX_METADATA
from computeapi.booleans import FALSE, TRUE
from computeapi.standalone.access import ADMIN
from computeapi.standalone.fields import constant, each, read, time
from computeapi.standalone.volume.service import added
from computeapi.versions import ABSENT
from computeapi.web.contract import Field, View, attr
from computeapi.web.request import Request

NAME = {'type': ['string', 'null'], 'maxLength': 255}
ID = {'type': ['string', 'null'], 'maxLength': 255}
UUID = {
    'type': 'string',
    'pattern': r'^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$',
}
TEXT = {'type': 'string', 'minLength': 1, 'maxLength': 255}
FILLED = {**TEXT, 'pattern': r'\S'}
"""The name of what is found by its name: not blank."""
PROJECT_ID = {'type': 'string', 'minLength': 1, 'maxLength': 64}
SIZE = {
    'anyOf': [
        {'type': 'integer', 'minimum': 1, 'maximum': MAX_SIZE},
        {'type': 'string', 'pattern': r'^[1-9][0-9]{0,8}$'},
    ]
}
BOOLEAN = {'enum': [True, False, *TRUE, *FALSE]}
PAIRS = {
    'type': 'object',
    'propertyNames': {'minLength': 1, 'maxLength': 255},
    'additionalProperties': {'type': 'string', 'maxLength': 255},
    'maxProperties': MAX_METADATA,
}
ONE_PAIR = {**PAIRS, 'minProperties': 1, 'maxProperties': 1}
NOTHING = {'type': 'null'}


def _uses(volume: Volume) -> list[dict[str, Any]]:
    return [
        {
            'id': volume.id,
            'volume_id': volume.id,
            'attachment_id': attachment['attachment_id'],
            'server_id': attachment['server_id'],
            'host_name': attachment['host'],
            'device': attachment['device'],
            'attached_at': time(attachment['attached_at']),
        }
        for attachment in volume.attachments
    ]


def _metadata(volume: Volume) -> dict[str, str]:
    return {**volume.metadata, **({} if volume.readonly is None else {'readonly': str(volume.readonly)})}


TIMES = {'created_at': read(lambda row: time(row.created_at)), 'updated_at': read(lambda row: time(row.updated_at))}


def links_to(collection: str) -> Field:
    return read(lambda req: lambda row: req.links(collection, row.id), request=True)


LINKS = links_to('volumes')

VOLUME_SUMMARY = View({**each('id', 'name'), 'links': LINKS})

# The volume as shown in the response to its creation or update.
_WRITTEN = {
    **each('id', 'name', 'description', 'status', 'size', 'volume_type', 'availability_zone', 'multiattach'),
    **each('snapshot_id', 'migration_status', 'user_id'),
    'source_volid': read(attr('source_volume_id')),
    'bootable': read(lambda volume: str(volume.bootable).lower()),
    'encrypted': read(attr('encrypted')),
    'consistencygroup_id': constant(None),
    'replication_status': constant(None),
    'metadata': read(_metadata),
    'attachments': read(_uses),
    **TIMES,
    'links': LINKS,
    'group_id': added('3.13', read(attr('group_id'))),
    'service_uuid': added('3.48', constant(None)),
    'shared_targets': added('3.48', constant(False)),
    'volume_type_id': added('3.63', read(attr('volume_type_id'))),
    'consumes_quota': added('3.65', constant(True)),
}
WRITTEN_VOLUME = View(_WRITTEN)
VOLUME = View(
    {
        **_WRITTEN,
        'os-vol-tenant-attr:tenant_id': read(attr('project_id')),
        'volume_image_metadata': read(lambda volume: volume.image_metadata or ABSENT, optional=True),
        'os-vol-host-attr:host': read(lambda volume: pool_of(volume.availability_zone), policy=ADMIN),
        'os-vol-mig-status-attr:migstat': read(attr('migration_status'), policy=ADMIN),
        'os-vol-mig-status-attr:name_id': constant(None, policy=ADMIN),
        'provider_id': added('3.21', constant(None, policy=ADMIN)),
        'cluster_name': added('3.61', constant(None, policy=ADMIN)),
    }
)

_SNAPSHOT_SUMMARY = {
    **each('id', 'name', 'description', 'status', 'size', 'volume_id', 'metadata'),
    **TIMES,
    'user_id': added('3.41', read(attr('user_id'))),
    'consumes_quota': added('3.65', constant(True)),
}
SNAPSHOT_SUMMARY = View(_SNAPSHOT_SUMMARY)
SNAPSHOT = View(
    {
        **_SNAPSHOT_SUMMARY,
        'os-extended-snapshot-attributes:progress': read(
            lambda snapshot: snapshot.progress or ('100%' if snapshot.status == 'available' else '0%')
        ),
        'os-extended-snapshot-attributes:project_id': read(attr('project_id')),
        'group_snapshot_id': added('3.14', constant(None)),
    }
)

_ATTACHMENT_SUMMARY = {**each('id', 'status', 'volume_id'), 'instance': read(attr('server_id'))}
ATTACHMENT_SUMMARY = View(_ATTACHMENT_SUMMARY)


def _connection_info(attachment: Attachment) -> dict[str, Any]:
    """How a host reaches the volume; a placeholder if the volume holds no data, as most do here."""
    if not attachment.connector:
        return {}
    return dict(attachment.connection) or {
        'driver_volume_type': BACKEND,
        'attachment_id': attachment.id,
        'volume_id': attachment.volume_id,
        'access_mode': attachment.mode,
    }


ATTACHMENT = View(
    {
        **_ATTACHMENT_SUMMARY,
        'attached_at': read(lambda attachment: time(attachment.attached_at) or ''),
        'detached_at': constant(''),
        'attach_mode': read(attr('mode')),
        'connection_info': read(_connection_info),
    }
)

VISIBLE_SPECS = ('RESKEY:availability_zones', 'multiattach', 'replication_enabled')
"""The extra specs of a type that everybody sees; the others describe the storage."""


def shown_specs(req: Request) -> Callable[[VolumeType], Mapping[str, str]]:
    """The extra specs of a type that the caller may see."""
    if req.context.is_admin:
        return lambda kind: kind.extra_specs
    return lambda kind: {name: kind.extra_specs[name] for name in VISIBLE_SPECS if name in kind.extra_specs}


# The type as shown in the response to an update, and to its creation.
_CHANGED_TYPE = {
    **each('id', 'name', 'description', 'is_public'),
    'extra_specs': read(shown_specs, request=True),
}
CHANGED_TYPE = View(_CHANGED_TYPE)
_CREATED_TYPE = {**_CHANGED_TYPE, 'os-volume-type-access:is_public': read(attr('is_public'))}
CREATED_TYPE = View(_CREATED_TYPE)
TYPE = View({**_CREATED_TYPE, 'qos_specs_id': read(attr('qos_specs_id'), policy=ADMIN)})
