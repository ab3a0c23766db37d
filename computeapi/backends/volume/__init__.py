"""Volumes and their snapshots: disks that outlive a server."""

import builtins
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from computeapi.context import Context

# What block storage knows of the image that a volume was created from, besides the image's properties.
NOT_PROPERTIES = frozenset(
    {'image_id', 'image_name', 'checksum', 'container_format', 'disk_format', 'min_disk', 'min_ram', 'size'}
)

ALMOST_DONE = '90%'
"""The progress of a snapshot for which the hypervisor has done its part."""


@dataclass(frozen=True)
class Volume:
    """A volume as Cinder knows it; `size` in GiB.

    `attachments` are the active ones: dicts with attachment_id, server_id, host, device, attached_at; `image_metadata`
    describes the image that a bootable volume was created from; `migration_status` is set while block storage moves the
    volume. `readonly` is None until somebody sets it.
    """

    id: str
    name: str | None
    status: str
    size: int
    project_id: str
    user_id: str | None = None
    description: str | None = None
    bootable: bool = False
    multiattach: bool = False
    readonly: bool | None = None
    migration_status: str | None = None
    volume_type: str | None = None
    volume_type_id: str | None = None
    availability_zone: str = 'nova'
    snapshot_id: str | None = None
    source_volume_id: str | None = None
    group_id: str | None = None
    encrypted: bool = False
    metadata: Mapping[str, str] = field(default_factory=dict)
    image_metadata: Mapping[str, Any] = field(default_factory=dict)
    attachments: Sequence[Mapping[str, Any]] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def image_properties(self) -> dict[str, Any]:
        """The properties of the image that it was created from."""
        return {name: value for name, value in self.image_metadata.items() if name not in NOT_PROPERTIES}


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of a volume; `size` in GiB. `availability_zone` is that of the volume; `progress`, in percent, what a
    hypervisor that takes or deletes the snapshot has said of it."""

    id: str
    name: str | None
    status: str
    size: int
    volume_id: str
    project_id: str
    user_id: str | None = None
    description: str | None = None
    availability_zone: str | None = None
    progress: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True)
class Attachment:
    """An attachment of a volume to a server; `status` is reserved, attaching or attached, `mode` rw or ro.

    `connector` has the host's connector properties, `device` the name of the disk in the server; `connection` is how
    the host connects to the volume, which is secret.
    """

    id: str
    volume_id: str
    server_id: str | None
    status: str
    project_id: str = ''
    host: str | None = None
    device: str | None = None
    mode: str = 'rw'
    connector: Mapping[str, Any] = field(default_factory=dict)
    connection: Mapping[str, Any] = field(default_factory=dict, repr=False)
    created_at: datetime | None = None
    attached_at: datetime | None = None

    @property
    def is_used(self) -> bool:
        return self.status == 'attached'


@dataclass(frozen=True)
class VolumeType:
    """A volume type; the extra spec `multiattach` with the value `<is> True` allows several servers to share a volume.

    `encryption` has provider, cipher, key_size and control_location; None: volumes of the type are not encrypted.
    """

    id: str
    name: str
    description: str | None = None
    is_public: bool = True
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    qos_specs_id: str | None = None
    encryption: Mapping[str, Any] | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def multiattach(self) -> bool:
        return self.extra_specs.get('multiattach') == '<is> True'


VolumeListener = Callable[[Context, Volume], None]
"""Called after a change, with its context and the volume's new state."""


VolumeUsers = Callable[[str, str], bool]
"""Whether compute knows this volume as a disk of this server."""


class Volumes(Protocol):
    """Queries are restricted to the caller's project (an administrator sees all): VolumeNotFound, SnapshotNotFound.

    A caller may pass the ID that it wants for a new resource. It identifies the call: a repeated call, as after a
    crash, returns the existing resource. Only the ID in the result counts. Block storage that chooses IDs itself, as
    Cinder does, keeps the wanted one in the metadata of a volume or snapshot, and `delete` and `delete_snapshot` also
    find by it, for callers that do not know the result of a call. An attachment has no metadata: there, the same volume
    and server mean the same call.

    Long operations are only started, and `status` shows their progress: a new volume is `creating` or `downloading`,
    then `available`; a new snapshot is `creating`. After a failure the status begins with `error`.
    """

    def get(self, context: Context, volume_id: str) -> Volume: ...

    def get_many(self, context: Context, volume_ids: Iterable[str]) -> dict[str, Volume]: ...

    def list(self, context: Context) -> builtins.list[Volume]:
        """The volumes of the caller's project, newest first, at most 1000."""

    def create(
        self,
        context: Context,
        size: int,
        *,
        name: str | None = None,
        description: str | None = None,
        image_id: str | None = None,
        snapshot_id: str | None = None,
        source_volume_id: str | None = None,
        volume_type: str | None = None,
        availability_zone: str | None = None,
        metadata: Mapping[str, str] | None = None,
        volume_id: str | None = None,
    ) -> Volume:
        """Create a volume that becomes available (bootable if it is created from an image), with the wanted `volume_id`
        or another one; it belongs to the project of *context*.

        OverQuota; Invalid, also for an image that cannot be used; VolumeTypeNotFound, SnapshotNotFound,
        VolumeNotFound."""

    def delete(self, context: Context, volume_id: str) -> None:
        """Invalid unless the volume is available or in error, and has no attachments or snapshots."""

    def reserve(
        self,
        context: Context,
        volume_id: str,
        server_id: str,
        *,
        beside: str | None = None,
        connector: Mapping[str, Any] | None = None,
    ) -> str:
        """The ID of the server's existing attachment of the volume, or of a new one in state `reserved` (the volume
        becomes `reserved`, or stays as it was if it is multiattach and in use); Invalid if the volume is not available,
        or is in use and not multiattach.

        beside: another attachment of the volume that the server has; it gets a second one for a while.
        AttachmentNotFound if it does not have that one.  connector: the connector properties of a host, for which the
        volume is then prepared at once."""

    def attachments(
        self, context: Context, *, server_ids: Collection[str] = (), volume_id: str | None = None
    ) -> builtins.list[Attachment]:
        """The attachments of these servers (none: all), or of a volume, in every state; an administrator sees those of
        all projects."""

    def connect(self, context: Context, attachment_id: str, connector: Mapping[str, Any]) -> object:
        """Prepare the volume for the host with these connector properties, before it uses the volume, which is
        `attaching` until `complete`. AttachmentNotFound; Invalid for a volume that is in use."""

    def complete(self, context: Context, attachment_id: str, connector: Mapping[str, Any] | None = None) -> None:
        """Mark the attachment as in use by the host with these connector properties, at `mountpoint`: the volume is
        `in-use`. Without a connector, by no host, or by the one that it was reserved with. AttachmentNotFound."""

    def begin_detaching(self, context: Context, volume_id: str) -> None:
        """The volume is `detaching` until one of its attachments is released; Invalid unless it is `in-use`."""

    def stop_detaching(self, context: Context, volume_id: str) -> None:
        """The volume is `in-use` again, if it was `detaching`."""

    def release(self, context: Context, attachment_id: str) -> None:
        """Delete the attachment in any state; after the last one the volume is `available`. No error if it is gone."""

    def reimage(self, context: Context, volume_id: str, image_id: str) -> None:
        """Start to write an image over the volume, which must be available, reserved or in error; it is `downloading`
        meanwhile, and then has its previous status again."""

    def swap(self, context: Context, old_volume_id: str, new_volume_id: str, *, failed: bool = False) -> str:
        """Complete a swap in which the new volume took over the old one's data; returns the ID that the new volume has
        from now on. failed: it did not, and the old volume stays in use."""

    def get_snapshot(self, context: Context, snapshot_id: str) -> Snapshot: ...

    def list_snapshots(self, context: Context) -> builtins.list[Snapshot]:
        """The snapshots of the caller's project, newest first, at most 1000."""

    def create_snapshot(
        self,
        context: Context,
        volume_id: str,
        *,
        name: str | None = None,
        description: str | None = None,
        force: bool = False,
        metadata: Mapping[str, str] | None = None,
        snapshot_id: str | None = None,
    ) -> Snapshot:
        """Create a snapshot of an available volume, or with force of one in use; the ID may be another one. OverQuota,
        Invalid."""

    def delete_snapshot(self, context: Context, snapshot_id: str) -> None: ...

    def report_snapshot(self, context: Context, snapshot_id: str, status: str) -> None:
        """Report what a hypervisor has done for a snapshot that is `creating` or `deleting`: its part, if this is still
        the status; else it failed, and the status is `error` or `error_deleting`. Invalid for any other status."""

    def availability_zones(self, context: Context) -> builtins.list[str]: ...

    def volume_type(self, context: Context, name_or_id: str) -> VolumeType:
        """VolumeTypeNotFound if it does not exist, or the caller may not use it."""
