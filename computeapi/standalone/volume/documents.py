"""What the volume service has, as clients read it, and the leaves of the schemas of what they write."""

from datetime import datetime
from typing import Any

from computeapi.backends.volume import Attachment, Snapshot, Volume, VolumeType
from computeapi.backends.volume.local.base import MAX_METADATA
from computeapi.backends.volume.local.making import MAX_SIZE
from computeapi.standalone.face import FaceRequest
from computeapi.standalone.volume.service import links, minor

NAME = {'type': ['string', 'null'], 'maxLength': 255}
ID = {'type': ['string', 'null'], 'maxLength': 255}
UUID = {
    'type': 'string',
    'pattern': r'^[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}$',
}
PROJECT_ID = {'type': 'string', 'minLength': 1, 'maxLength': 64}
SIZE = {
    'anyOf': [
        {'type': 'integer', 'minimum': 1, 'maximum': MAX_SIZE},
        {'type': 'string', 'pattern': r'^[1-9][0-9]{0,8}$'},
    ]
}
BOOLEAN = {'enum': [True, False, *('True', 'TRUE', 'true', '1', 'False', 'FALSE', 'false', '0')]}
PAIRS = {
    'type': 'object',
    'propertyNames': {'minLength': 1, 'maxLength': 255},
    'additionalProperties': {'type': 'string', 'maxLength': 255},
    'maxProperties': MAX_METADATA,
}
NOTHING = {'type': 'null'}


def is_true(value: Any) -> bool:
    return str(value).lower() in ('true', '1')


def time(moment: datetime | None) -> str | None:
    return None if moment is None else f'{moment:%Y-%m-%dT%H:%M:%S.%f}'


def summary(req: FaceRequest, volume: Volume) -> dict[str, Any]:
    """What a list without details says."""
    return {'id': volume.id, 'name': volume.name, 'links': links(req, f'/volumes/{volume.id}')}


def written_view(req: FaceRequest, volume: Volume) -> dict[str, Any]:
    """What whoever makes or changes a volume gets back."""
    view: dict[str, Any] = {
        'id': volume.id,
        'name': volume.name,
        'description': volume.description,
        'status': volume.status,
        'size': volume.size,
        'volume_type': volume.volume_type,
        'availability_zone': volume.availability_zone,
        'bootable': str(volume.bootable).lower(),
        'encrypted': False,
        'multiattach': volume.multiattach,
        'snapshot_id': volume.snapshot_id,
        'source_volid': volume.source_volume_id,
        'consistencygroup_id': None,
        'replication_status': None,
        'migration_status': volume.migration_status,
        'user_id': volume.user_id,
        'metadata': {**volume.metadata, **({'readonly': 'True'} if volume.readonly else {})},
        'attachments': [_use(volume, attachment) for attachment in volume.attachments],
        'created_at': time(volume.created_at),
        'updated_at': time(volume.updated_at),
        'links': links(req, f'/volumes/{volume.id}'),
    }
    return view | _later(req, volume)


def volume_view(req: FaceRequest, volume: Volume) -> dict[str, Any]:
    view = {**written_view(req, volume), 'os-vol-tenant-attr:tenant_id': volume.project_id}
    if volume.image_metadata:
        view['volume_image_metadata'] = volume.image_metadata
    return view | (_for_administrators(req, volume) if req.context.is_admin else {})


def _use(volume: Volume, attachment: Any) -> dict[str, Any]:
    return {
        'id': volume.id,
        'volume_id': volume.id,
        'attachment_id': attachment['attachment_id'],
        'server_id': attachment['server_id'],
        'host_name': attachment['host'],
        'device': attachment['device'],
        'attached_at': time(attachment['attached_at']),
    }


def _later(req: FaceRequest, volume: Volume) -> dict[str, Any]:
    fields: tuple[tuple[int, str, Any], ...] = (
        (13, 'group_id', None),
        (48, 'service_uuid', None),
        (48, 'shared_targets', False),
        (63, 'volume_type_id', volume.volume_type_id),
        (65, 'consumes_quota', True),
    )
    return {name: value for first, name, value in fields if minor(req) >= first}


def _for_administrators(req: FaceRequest, volume: Volume) -> dict[str, Any]:
    fields = (
        (0, 'os-vol-host-attr:host', None),
        (0, 'os-vol-mig-status-attr:migstat', volume.migration_status),
        (0, 'os-vol-mig-status-attr:name_id', None),
        (21, 'provider_id', None),
        (61, 'cluster_name', None),
    )
    return {name: value for first, name, value in fields if minor(req) >= first}


def snapshot_summary(req: FaceRequest, snapshot: Snapshot) -> dict[str, Any]:
    view = {
        'id': snapshot.id,
        'name': snapshot.name,
        'description': snapshot.description,
        'status': snapshot.status,
        'size': snapshot.size,
        'volume_id': snapshot.volume_id,
        'metadata': snapshot.metadata,
        'created_at': time(snapshot.created_at),
        'updated_at': time(snapshot.updated_at),
    }
    later = ((41, 'user_id', snapshot.user_id), (65, 'consumes_quota', True))
    return view | {name: value for first, name, value in later if minor(req) >= first}


def snapshot_view(req: FaceRequest, snapshot: Snapshot) -> dict[str, Any]:
    view = snapshot_summary(req, snapshot)
    view['os-extended-snapshot-attributes:progress'] = '100%' if snapshot.status == 'available' else '0%'
    view['os-extended-snapshot-attributes:project_id'] = snapshot.project_id
    return view | ({'group_snapshot_id': None} if minor(req) >= 14 else {})


def attachment_summary(attachment: Attachment) -> dict[str, Any]:
    return {
        'id': attachment.id,
        'status': attachment.status,
        'instance': attachment.server_id,
        'volume_id': attachment.volume_id,
    }


def attachment_view(attachment: Attachment) -> dict[str, Any]:
    return {
        **attachment_summary(attachment),
        'attached_at': time(attachment.attached_at) or '',
        'detached_at': '',
        'attach_mode': attachment.mode,
        'connection_info': connection_info(attachment) if attachment.connector else {},
    }


def connection_info(attachment: Attachment) -> dict[str, Any]:
    """How a host would reach the volume: there is nothing to reach, as volumes here hold no data."""
    return {
        'driver_volume_type': 'local',
        'attachment_id': attachment.id,
        'volume_id': attachment.volume_id,
        'access_mode': attachment.mode,
    }


def type_view(kind: VolumeType) -> dict[str, Any]:
    return {**written_type_view(kind), 'qos_specs_id': None}


def written_type_view(kind: VolumeType) -> dict[str, Any]:
    """What whoever makes or changes a type gets back."""
    return {
        'id': kind.id,
        'name': kind.name,
        'description': kind.description,
        'is_public': kind.is_public,
        'os-volume-type-access:is_public': kind.is_public,
        'extra_specs': kind.extra_specs,
    }
