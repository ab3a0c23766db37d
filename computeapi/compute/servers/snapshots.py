"""Images of servers: single ones, rotating backups, or snapshots of their volumes."""

import functools
import json
import logging
from collections.abc import Mapping
from typing import Any

from computeapi import randomness
from computeapi.backends.image import Image, Images
from computeapi.backends.volume import Volumes
from computeapi.compute.names import shortened
from computeapi.compute.platform import Platform
from computeapi.compute.quotas import Quotas, check_image_metadata
from computeapi.compute.servers.changes import Changes, check
from computeapi.compute.servers.creation.boot import MIN_SIZES
from computeapi.compute.servers.disks import is_root_on_volume
from computeapi.compute.tasks.job import Job, unchanged
from computeapi.compute.tasks.queue import thawed
from computeapi.compute.tasks.transition import Transition, beside
from computeapi.context import Context
from computeapi.db import block_devices
from computeapi.db.servers import BlockDevice, Server, is_volume_backed
from computeapi.db.tasks import Task
from computeapi.errors import (
    Conflict,
    Error,
    Forbidden,
    ImageNotFound,
    Invalid,
    NeighbourAway,
    OverQuota,
    SnapshotNotFound,
    TooLarge,
    Unavailable,
)
from computeapi.states import TaskState, VMState

LOG = logging.getLogger(__name__)
# Properties that describe one image and not the contents of its disk.
OWN = frozenset(
    {
        'description',
        'cache_in_nova',
        'bittorrent',
        'cinder_encryption_key_id',
        'cinder_encryption_key_deletion_policy',
        'img_signature',
        'img_signature_hash_method',
        'img_signature_key_type',
        'img_signature_certificate_uuid',
        *MIN_SIZES,
    }
)
# More than there are images; clients may send any number, but not all numbers can be stored.
MAX_BACKUPS = 2**31 - 1
# Reserved by the image service, which refuses them from others.
RESERVED = 'os_glance'
# The keys that an image of volumes must have for a disk, although they have no value.
UNSAID = frozenset({'encrypted', 'encryption_format', 'encryption_options', 'encryption_secret_uuid'})
UNSAID |= {'image_id', 'snapshot_id', 'volume_id', 'no_device'}


def discard(images: Images, context: Context, image_id: str) -> None:
    """Delete an image; one that does not exist is no error, and one that cannot be deleted stays."""
    try:
        images.delete(context, image_id)
    except ImageNotFound:
        return
    except (Conflict, Forbidden) as error:
        LOG.warning('Image %s could not be deleted: %s', image_id, error)


def discard_shelved(job: Job) -> None:
    """Delete the image that the server was shelved as, if any."""
    if job.server.shelved_image_id is not None:
        discard(job.platform.images, job.elevated, job.server.shelved_image_id)


def discard_image(platform: Platform, task: Task, server: Server | None) -> None:
    """Delete the image that was created for the task and will not be filled."""
    if 'image_id' in task.arguments:
        discard(platform.images, thawed(task.context).elevated(), task.arguments['image_id'])


def without_image(job: Job, error: Exception) -> None:
    """Delete the image; the server keeps its state."""
    discard_image(job.platform, job.task, job.server)
    unchanged(job, error)


# Locks prevent changes, and these operations leave the server unchanged.
WHOLE = frozenset({VMState.ACTIVE, VMState.STOPPED, VMState.PAUSED, VMState.SUSPENDED})
CREATE_IMAGE = Transition(
    'createImage',
    during=TaskState.IMAGE_SNAPSHOT,
    steps=(TaskState.IMAGE_UPLOADING,),
    allowed=WHOLE,
    lockable=False,
    failed=without_image,
    harmless=True,
    undo=discard_image,
)
CREATE_BACKUP = Transition(
    'createBackup',
    during=TaskState.IMAGE_BACKUP,
    allowed=WHOLE,
    lockable=False,
    failed=without_image,
    harmless=True,
    undo=discard_image,
)
IMAGE_OF_VOLUMES = beside('image_of_volumes')


class ServerSnapshots:
    """Images of servers."""

    def __init__(self, changes: Changes, quotas: Quotas):
        self.changes, self.quotas = changes, quotas
        self.images, self.volumes = changes.platform.images, changes.platform.volumes

    def check_metadata(self, context: Context, metadata: Mapping[str, str]) -> None:
        """OverQuota for more items than a server may have."""
        if metadata:
            check_image_metadata(self.quotas.limits(context.project_id or '', context.user_id), len(metadata))

    def create(self, context: Context, server: Server, name: str, metadata: Mapping[str, str]) -> str:
        """Begin an image of the server; returns its ID. For a server on volumes, volume snapshots are taken at once."""
        check(context, server, CREATE_IMAGE)
        devices = self.changes.store.query(block_devices.of_servers, [server.uuid])
        if is_volume_backed(server, devices):
            return self.of_volumes(context, server, name, inherited(server) | dict(metadata), devices)
        properties = described(context, server) | dict(metadata)
        return self.begin(context, server, CREATE_IMAGE, name, properties, {})

    def create_backup(
        self, context: Context, server: Server, name: str, kind: str, rotation: int, metadata: Mapping[str, str]
    ) -> str:
        """Begin a backup, an image of which *rotation* are kept; returns its ID, even if it is deleted at once (0)."""
        check(context, server, CREATE_BACKUP)
        if is_root_on_volume(self.changes.platform, server):
            raise Invalid('Backup is not supported for volume-backed instances.')
        properties = described(context, server) | dict(metadata) | {'image_type': 'backup', 'backup_type': kind}
        arguments = {'backup_type': kind, 'rotation': min(rotation, MAX_BACKUPS)}
        return self.begin(context, server, CREATE_BACKUP, name, properties, arguments)

    def begin(
        self,
        context: Context,
        server: Server,
        transition: Transition,
        name: str,
        properties: Mapping[str, Any],
        arguments: Mapping[str, Any],
    ) -> str:
        """Create an image that a worker will fill; returns its ID. If the work cannot begin, the image is deleted."""
        image_id = randomness.new_id()
        undo = functools.partial(discard, self.images, context, image_id)
        with self.changes.prepared(context, server, transition, {'image_id': image_id, **arguments}, undo):
            self.reserve(context, server, image_id, name, properties)
        return image_id

    def reserve(
        self, context: Context, server: Server, image_id: str, name: str, properties: Mapping[str, Any]
    ) -> None:
        """Create an image without data."""
        base = self.base_of(context, server)
        facts: dict[str, Any] = {
            'properties': properties,
            'min_disk': max(server.root_gb, base.min_disk if base else 0),
            'min_ram': base.min_ram if base else 0,
            'disk_format': (base.disk_format if base else None) or 'raw',
            'container_format': (base.container_format if base else None) or 'bare',
        }
        self.make(context, name, image_id, facts)

    def make(self, context: Context, name: str, image_id: str, facts: Mapping[str, Any]) -> None:
        """OverQuota if the image service accepts no more images."""
        try:
            self.images.create(context, name, image_id=image_id, **facts)
        except TooLarge as error:
            raise OverQuota(str(error)) from None

    def of_volumes(
        self, context: Context, server: Server, name: str, properties: dict[str, Any], devices: list[BlockDevice]
    ) -> str:
        tasks, image_id = self.changes.tasks, randomness.new_id()
        snapshots = [randomness.new_id() for _ in devices]
        made = {'image_id': image_id, 'snapshots': snapshots}
        undo = functools.partial(take_back, self.images, self.volumes, context, made)
        with tasks.leased(IMAGE_OF_VOLUMES, server.uuid, context, made, undo) as task:
            mapping = [
                self.snapshot_of(context, device, snapshot_id, name)
                for device, snapshot_id in zip(devices, snapshots, strict=True)
            ]
            self.write(context, server, image_id, name, properties, mapping)
            with self.changes.store.write() as connection:
                facts = {'event': 'api_snapshot_instance', 'host': self.changes.platform.conf.host}
                self.changes.record(connection, context, server, CREATE_IMAGE.name, **facts)
                if not tasks.done(connection, task):
                    raise Unavailable()
        return image_id

    def write(
        self,
        context: Context,
        server: Server,
        image_id: str,
        name: str,
        properties: Mapping[str, Any],
        mapping: list[dict[str, Any]],
    ) -> None:
        """Create an image without data of its own, which lists the disks of a new server."""
        disks = {
            'block_device_mapping': json.dumps(mapping),
            'root_device_name': server.root_device_name or '/dev/vda',
            'bdm_v2': 'True',
        }
        formats = {'disk_format': 'raw', 'container_format': 'bare'}
        self.make(context, name, image_id, {'properties': {**properties, **disks}, **formats})
        self.images.upload(context, image_id, iter((b'',)))

    def snapshot_of(self, context: Context, device: BlockDevice, snapshot_id: str, name: str) -> dict[str, Any]:
        """The mapping to create this disk for a new server: from the snapshot with that ID, if it is a volume."""
        facts: dict[str, Any] = {
            key: getattr(device, key)
            for key in ('boot_index', 'device_name', 'device_type', 'disk_bus', 'guest_format', 'volume_type')
        }
        facts |= {'delete_on_termination': device.delete_on_termination, 'tag': device.tag, **dict.fromkeys(UNSAID)}
        if device.destination_type != 'volume' or device.volume_id is None:
            local = {'source_type': device.source_type, 'destination_type': 'local', 'volume_size': device.volume_size}
            return facts | local | {'image_id': device.image_id}
        snapshot_name = shortened(name, before='snapshot for ')
        snapshot = self.volumes.create_snapshot(
            context, device.volume_id, name=snapshot_name, force=True, snapshot_id=snapshot_id
        )
        return facts | {
            'source_type': 'snapshot',
            'destination_type': 'volume',
            'snapshot_id': snapshot.id,
            'volume_size': snapshot.size,
        }

    def base_of(self, context: Context, server: Server) -> Image | None:
        try:
            return self.images.get(context, server.image_id) if server.image_id else None
        except ImageNotFound:
            return None


def inherited(server: Server) -> dict[str, Any]:
    """The properties of the server's image, and of the creator of the server."""
    properties = server.image_properties.items()
    kept = {key: value for key, value in properties if key not in OWN and not key.startswith(RESERVED)}
    creator = server.creator or {}
    return kept | {
        'base_image_ref': server.image_id or '',
        'owner_user_name': creator.get('user_name'),
        'owner_project_name': creator.get('project_name'),
        'boot_roles': ','.join(creator.get('roles', ())),
    }


def described(context: Context, server: Server) -> dict[str, Any]:
    """The same, with the properties that mark an image as one of the server."""
    return inherited(server) | {
        'image_type': 'snapshot',
        'image_location': 'snapshot',
        'image_state': 'available',
        'instance_uuid': server.uuid,
        'user_id': context.user_id,
        'owner_id': server.project_id,
    }


# ------------------------------------------------------------------ work


@CREATE_IMAGE.work
def snapshot(job: Job) -> None:
    """Fill the image that the request created."""
    with job.event('compute_snapshot_instance'):
        fill(job, job.arguments['image_id'], TaskState.IMAGE_UPLOADING)
    job.finish()


@CREATE_BACKUP.work
def backup(job: Job) -> None:
    """The same; then delete the oldest backups of the type beyond the number to keep."""
    with job.event('compute_backup_instance'):
        # An image that does not stay need not be filled, and may be gone when the rotation runs again.
        if job.arguments['rotation']:
            fill(job, job.arguments['image_id'], TaskState.IMAGE_BACKUP)
        rotate(job)
    job.finish()


def fill(job: Job, image_id: str, uploading: TaskState) -> None:
    """Upload the server's disk, unless that is done."""
    image = job.platform.images.get(job.elevated, image_id)
    if image.status != 'active':
        job.save(task_state=uploading)
        data = job.driver.snapshot(job.server, image.disk_format or 'raw')
        job.platform.images.upload(job.elevated, image_id, data)


def rotate(job: Job) -> None:
    """Delete old backups. If one cannot be deleted, that does not affect the new one."""
    # Anybody can set these properties on an image: only the project's own images are its backups.
    wanted = {
        'owner': job.context.project_id,
        'instance_uuid': job.server.uuid,
        'backup_type': job.arguments['backup_type'],
        'image_type': 'backup',
    }
    # The new image comes first, because others may be of the same second.
    found = sorted(
        job.platform.images.list(job.elevated, filters=wanted), key=lambda image: image.id != job.arguments['image_id']
    )
    for image in found[job.arguments['rotation'] :]:
        try:
            discard(job.platform.images, job.elevated, image.id)
        except NeighbourAway:
            raise
        except Error as error:
            LOG.warning('Backup %s of server %s could not be deleted: %s', image.id, job.server.uuid, error)


@IMAGE_OF_VOLUMES.work
def image_of_volumes(job: Job) -> None:
    """Delete an image of volumes that the request did not complete, with the snapshots of the volumes."""
    take_back(job.platform.images, job.platform.volumes, job.elevated, job.arguments)
    job.end('Error')


def take_back(images: Images, volumes: Volumes, context: Context, made: Mapping[str, Any]) -> None:
    """Delete the image and the snapshots, as far as they were created."""
    discard(images, context, made['image_id'])
    for snapshot_id in made['snapshots']:
        try:
            volumes.delete_snapshot(context, snapshot_id)
        except SnapshotNotFound:
            continue
