"""Converts Cinder's answers to compute's records."""

from datetime import datetime
from typing import Any

from oslo_utils import strutils, timeutils

from computeapi.backends.volume import Attachment, Snapshot, Volume, VolumeType
from computeapi.backends.volume.cinder.base import Document
from computeapi.context import Context

WANTED_ID = 'computeapi_id'
"""The metadata key for the ID that compute wanted for a volume or snapshot."""

ABOUT_USE = ('readonly', 'attached_mode')
"""Entries that Cinder itself adds to the metadata in its answers."""


def volume_of(found: Document, context: Context) -> Volume:
    metadata = found.get('metadata') or {}
    return Volume(
        id=found['id'],
        name=found.get('name'),
        status=found['status'],
        size=found['size'],
        project_id=found.get('os-vol-tenant-attr:tenant_id') or context.project_id or '',
        user_id=found.get('user_id'),
        description=found.get('description'),
        bootable=strutils.bool_from_string(found.get('bootable')),
        multiattach=bool(found.get('multiattach')),
        readonly=strutils.bool_from_string(metadata.get('readonly')),
        migration_status=found.get('os-vol-mig-status-attr:migstat'),
        volume_type=found.get('volume_type'),
        volume_type_id=found.get('volume_type_id'),
        availability_zone=found.get('availability_zone') or 'nova',
        snapshot_id=found.get('snapshot_id'),
        source_volume_id=found.get('source_volid'),
        group_id=found.get('group_id'),
        encrypted=bool(found.get('encrypted')),
        metadata={name: value for name, value in metadata.items() if name not in ABOUT_USE},
        image_metadata=found.get('volume_image_metadata') or {},
        attachments=tuple(map(use_of, found.get('attachments') or ())),
        created_at=moment(found.get('created_at')),
        updated_at=moment(found.get('updated_at')),
    )


def use_of(found: Document) -> dict[str, Any]:
    facts = {name: found.get(name) for name in ('attachment_id', 'server_id', 'device')}
    return facts | {'host': found.get('host_name'), 'attached_at': moment(found.get('attached_at'))}


def snapshot_of(found: Document, context: Context) -> Snapshot:
    return Snapshot(
        id=found['id'],
        name=found.get('name'),
        status=found['status'],
        size=found['size'],
        volume_id=found['volume_id'],
        project_id=found.get('os-extended-snapshot-attributes:project_id') or context.project_id or '',
        user_id=found.get('user_id'),
        description=found.get('description'),
        metadata=found.get('metadata') or {},
        created_at=moment(found.get('created_at')),
        updated_at=moment(found.get('updated_at')),
    )


def attachment_of(found: Document) -> Attachment:
    names = {'id': 'id', 'volume_id': 'volume_id', 'server_id': 'instance', 'status': 'status'}
    return Attachment(**{ours: found[theirs] for ours, theirs in names.items()})


def type_of(found: Document) -> VolumeType:
    return VolumeType(
        id=found['id'],
        name=found['name'],
        description=found.get('description'),
        is_public=found.get('os-volume-type-access:is_public') is not False,
        extra_specs=found.get('extra_specs') or {},
    )


def moment(text: str | None) -> datetime | None:
    return timeutils.normalize_time(timeutils.parse_isotime(text)) if text else None
