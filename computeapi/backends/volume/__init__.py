"""Volumes and their snapshots: disks that outlive a server."""

import builtins
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from computeapi.context import Context

# What block storage knows of the image that a volume was made from, beside the image's properties.
NOT_PROPERTIES = frozenset(
    {'image_id', 'image_name', 'checksum', 'container_format', 'disk_format', 'min_disk', 'min_ram', 'size'}
)


@dataclass(frozen=True)
class Volume:
    """A volume as Cinder knows it; `size` in GiB.

    `attachments` are those in use: dicts with attachment_id, server_id, host, device, attached_at;
    `image_metadata` is what the volume was made from, when it is bootable; `migration_status` is set while block
    storage moves the volume.
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
    readonly: bool = False
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
        """The properties of the image that it was made from."""
        return {name: value for name, value in self.image_metadata.items() if name not in NOT_PROPERTIES}


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of a volume; `size` in GiB."""

    id: str
    name: str | None
    status: str
    size: int
    volume_id: str
    project_id: str
    user_id: str | None = None
    description: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True)
class Attachment:
    """A server's hold on a volume; `status` is reserved, attaching or attached, `mode` rw or ro.

    `connector` is what the host said about itself, `device` the name of the disk in the server; `connection` is how
    the host reaches the volume, which is a secret.
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
    """A kind of volume; the extra spec `multiattach` with the value `<is> True` lets several servers share one.

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
"""Is told, after the fact, whose change it was and how the volume is now."""


VolumeUsers = Callable[[str, str], bool]
"""Whether compute says that this volume is a disk of this server."""


class Volumes(Protocol):
    """Look-ups are bound to the caller's project (an administrator sees all): VolumeNotFound, SnapshotNotFound.

    The id that a caller wants for what it makes tells one call from another: a call that is made again, as after a
    crash, returns what there is. The id that is returned counts. Block storage that gives ids of its own, as Cinder
    does, keeps the wanted one in the metadata of a volume or snapshot, and `delete` and `delete_snapshot` find by it
    too, for who does not know what came of it. An attachment has no room for it: there the same volume for the same
    server is the same call.

    What takes its time is begun, and `status` tells how far it is: a new volume is `creating` or `downloading`, then
    `available`; a new snapshot is `creating`. What failed is in a status that begins with `error`.
    """

    def get(self, context: Context, volume_id: str) -> Volume: ...

    def get_many(self, context: Context, volume_ids: Iterable[str]) -> dict[str, Volume]: ...

    def list(self, context: Context) -> builtins.list[Volume]:
        """The caller's project's volumes, newest first, at most 1000."""

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
        """A volume that becomes available (bootable when made from an image), with the wanted `volume_id` or another;
        it is the project's whose caller *context* is.

        OverQuota; Invalid, also for an image that cannot be used; VolumeTypeNotFound, SnapshotNotFound,
        VolumeNotFound."""

    def delete(self, context: Context, volume_id: str) -> None:
        """Invalid unless available or in error and without attachments or snapshots."""

    def reserve(
        self,
        context: Context,
        volume_id: str,
        server_id: str,
        *,
        beside: str | None = None,
        connector: Mapping[str, Any] | None = None,
    ) -> str:
        """The id of the attachment that the server has of the volume, or else of a new one in state `reserved` (the
        volume: `reserved`, or as it was when multiattach and in use); Invalid if the volume is not available, or in
        use and not multiattach.

        beside: another attachment that the server has of it, which is to have two for a while; AttachmentNotFound if
        it has none.  connector: what a host
        says about itself, which gets it ready for the volume at once."""

    def attachments(
        self, context: Context, *, server_ids: Collection[str] = (), volume_id: str | None = None
    ) -> builtins.list[Attachment]:
        """Those of these servers (none: of all), or of a volume, in every state; administrators see all projects'."""

    def connect(self, context: Context, attachment_id: str, connector: Mapping[str, Any]) -> object:
        """Get the host ready for the volume that says this about itself, before it uses it: the volume is `attaching`
        until `complete`. AttachmentNotFound; Invalid for one that is in use."""

    def complete(self, context: Context, attachment_id: str, connector: Mapping[str, Any] | None = None) -> None:
        """The attachment is in use, by the host that says this about itself, as `mountpoint`: the volume is `in-use`.
        Without a connector by none, or by that which it was reserved with. AttachmentNotFound."""

    def begin_detaching(self, context: Context, volume_id: str) -> None:
        """The volume is `detaching` until one of its attachments is released; Invalid unless it is `in-use`."""

    def stop_detaching(self, context: Context, volume_id: str) -> None:
        """The volume is `in-use` again, if it was `detaching`."""

    def release(self, context: Context, attachment_id: str) -> None:
        """Delete the attachment, whatever its state; without another the volume is `available`. No error if gone."""

    def reimage(self, context: Context, volume_id: str, image_id: str) -> None:
        """Begin to write an image over the volume, whose status must be available or reserved; it is so again when
        that is done, and `downloading` meanwhile."""

    def swap(self, context: Context, old_volume_id: str, new_volume_id: str, *, failed: bool = False) -> str:
        """The new volume took over the old one's data (live swap), and with it the move is done; the id that the new
        one has from now on. failed: it did not, and the old one stays what it was."""

    def get_snapshot(self, context: Context, snapshot_id: str) -> Snapshot: ...

    def list_snapshots(self, context: Context) -> builtins.list[Snapshot]:
        """The caller's project's snapshots, newest first, at most 1000."""

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
        """Of an available volume, or with force of one in use, with the wanted id or another; OverQuota, Invalid."""

    def delete_snapshot(self, context: Context, snapshot_id: str) -> None: ...

    def availability_zones(self, context: Context) -> builtins.list[str]: ...

    def volume_type(self, context: Context, name_or_id: str) -> VolumeType:
        """VolumeTypeNotFound if there is none, or none that the caller may use."""
