"""Converts Cinder's answers to compute's records."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from openstack.block_storage.v3 import attachment as attachments
from openstack.block_storage.v3 import snapshot as snapshots
from openstack.block_storage.v3 import type as types
from openstack.block_storage.v3 import volume as volumes
from oslo_utils import strutils, timeutils

from computeapi.backends.volume import Attachment, Snapshot, Volume, VolumeType
from computeapi.context import Context

WANTED_ID = 'computeapi_id'
"""The metadata key for the ID that compute wanted for a volume or snapshot."""

ABOUT_USE = ('readonly', 'attached_mode')
"""Entries that Cinder itself adds to the metadata in its answers."""


def volume_of(found: volumes.Volume, context: Context) -> Volume:
    metadata = found.metadata or {}
    return Volume(
        id=found.id,
        name=found.name,
        status=found.status,
        size=found.size,
        project_id=found.project_id or context.project_id or '',
        user_id=found.user_id,
        description=found.description,
        bootable=bool(found.is_bootable),
        multiattach=bool(found.is_multiattach),
        readonly=strutils.bool_from_string(metadata.get('readonly')),
        migration_status=found.migration_status,
        volume_type=found.volume_type,
        volume_type_id=found.volume_type_id,
        availability_zone=found.availability_zone or 'nova',
        snapshot_id=found.snapshot_id,
        source_volume_id=found.source_volume_id,
        group_id=found.group_id,
        encrypted=bool(found.is_encrypted),
        metadata={name: value for name, value in metadata.items() if name not in ABOUT_USE},
        image_metadata=found.volume_image_metadata or {},
        attachments=tuple(map(use_of, found.attachments or ())),
        created_at=moment(found.created_at),
        updated_at=moment(found.updated_at),
    )


def use_of(found: Mapping[str, Any]) -> dict[str, Any]:
    facts = {name: found.get(name) for name in ('attachment_id', 'server_id', 'device')}
    return facts | {'host': found.get('host_name'), 'attached_at': moment(found.get('attached_at'))}


def snapshot_of(found: snapshots.Snapshot, context: Context) -> Snapshot:
    return Snapshot(
        id=found.id,
        name=found.name,
        status=found.status,
        size=found.size,
        volume_id=found.volume_id,
        project_id=found.project_id or context.project_id or '',
        user_id=found.user_id,
        description=found.description,
        metadata=dict(found.metadata or {}),
        created_at=moment(found.created_at),
        updated_at=moment(found.updated_at),
    )


def attachment_of(found: attachments.Attachment) -> Attachment:
    return Attachment(id=found.id, volume_id=found.volume_id, server_id=found.instance, status=found.status)


def type_of(found: types.Type) -> VolumeType:
    return VolumeType(
        id=found.id,
        name=found.name,
        description=found.description,
        is_public=found.is_public is not False,
        extra_specs=dict(found.extra_specs or {}),
    )


def moment(text: str | None) -> datetime | None:
    return timeutils.normalize_time(timeutils.parse_isotime(text)) if text else None
