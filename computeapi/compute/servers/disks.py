"""The volumes of a server: creation, attachment, release."""

import contextlib
import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from computeapi.backends.hypervisor import NotYet
from computeapi.backends.volume import Volume
from computeapi.compute.platform import Platform
from computeapi.compute.servers.disk_names import Named, names_for
from computeapi.compute.tasks.fence import OVERTAKEN, Superseded
from computeapi.compute.tasks.job import Job
from computeapi.context import Context
from computeapi.db import block_devices, servers
from computeapi.db.servers import BlockDevice, Server, is_volume_backed
from computeapi.errors import (
    AttachmentNotFound,
    Conflict,
    Error,
    Invalid,
    NeighbourAway,
    NotAuthenticated,
    VolumeNotFound,
)

LOG = logging.getLogger(__name__)
# As with ports: compute can find what it created by its ID.
VOLUMES = uuid.UUID('f3a2a3a0-6a36-4e0b-a2f0-0d6c6b1f8f55')
# The statuses in which a new volume can be attached, and the transitional statuses of a volume.
READY = frozenset({'available', 'reserved', 'in-use'})
PASSING = frozenset({'creating', 'downloading', 'attaching', 'detaching', 'uploading', 'extending', 'retyping'})
# The argument of a task: the attachments, by disk, that prepare another host for them.
READY_THERE = 'attachments'


class VolumeTimeout(Error):
    text = 'Gave up after {seconds} s of waiting until {what}.'


def attach_all(job: Job, devices: list[BlockDevice], **values: Any) -> None:
    """Create the volumes of the server's disks and attach all, with device names. values: changes of the server,
    written when that is done."""
    made = [make(job, device) for device in devices if is_volume(device)]
    for volume in filter(None, made):
        wait_until_made(job, volume)
    names = names_for(devices, job.server.root_device_name)
    for device, name in zip(devices, names, strict=True):
        if is_volume(device):
            attach(job, device, name)
    new = name_local(devices, names)
    if new or values:
        with job.store.write() as connection:
            block_devices.set_names(connection, new)
            if values:
                job.write(connection, **values)


def is_volume(device: BlockDevice) -> bool:
    return device.destination_type == 'volume'


def is_root_on_volume(platform: Platform, server: Server) -> bool:
    return is_volume_backed(server, platform.store.query(block_devices.of_servers, [server.uuid]))


def name_local(devices: Sequence[BlockDevice], names: Sequence[str]) -> dict[str, str]:
    """Assign names to local disks without one; returns the new names, by UUID, which are to be stored."""
    new = {}
    for device, name in zip(devices, names, strict=True):
        if not is_volume(device) and device.device_name is None:
            new[device.uuid] = device.device_name = name
    return new


def of_volume(job: Job, volume_id: str) -> BlockDevice:
    """The disk with this volume; Superseded if it was detached meanwhile."""
    for device in job.devices():
        if device.volume_id == volume_id:
            return device
    raise Superseded()


def volume_of(device: BlockDevice) -> str:
    """The volume of the disk, even if it was created but not recorded."""
    return device.volume_id or str(uuid.uuid5(VOLUMES, device.uuid))


def make(job: Job, device: BlockDevice) -> Volume | None:
    """Create the volume of a disk whose source is an image, a snapshot or blank; None if it was attached before.

    It belongs to the user who requested the server, and is created with that user's token."""
    if device.source_type == 'volume' or device.attachment_id is not None:
        return None
    if device.volume_id is not None:
        return job.platform.volumes.get(job.elevated, device.volume_id)
    try:
        volume = job.platform.volumes.create(
            job.context,
            device.volume_size or 1,
            name=f'{job.server.uuid}-blank-vol' if device.source_type == 'blank' else None,
            volume_id=volume_of(device),
            image_id=device.image_id if device.source_type == 'image' else None,
            snapshot_id=device.snapshot_id,
            volume_type=device.volume_type,
            availability_zone=None if job.platform.conf.cinder.cross_az_attach else job.server.availability_zone,
        )
    except NotAuthenticated as error:
        raise Error('The volume could not be created: the token of the request is no longer valid.') from error
    try:
        note(job.platform, device, volume_id=volume.id, volume_size=volume.size)
    except OVERTAKEN:
        leave_nothing(job, device)
        raise
    return volume


def leave_nothing(job: Job, device: BlockDevice) -> None:
    """Delete the new volume of a server that another worker deleted meanwhile, before there was this volume."""
    platform = job.fence.outside
    if not device.delete_on_termination or not platform.store.query(servers.is_gone, device.server_id):
        return
    try:
        platform.volumes.delete(owner_of(job), volume_of(device))
    except VolumeNotFound:
        return
    except Error as error:
        LOG.warning('Volume %s of server %s, which is deleted, remains: %s', volume_of(device), device.server_id, error)


def wait_until_made(job: Job, volume: Volume) -> None:
    """NotYet until the volume can be attached; an error if it failed, or takes too long."""
    if volume.status.startswith('error'):
        raise Error(f'Volume {volume.id} did not finish being created: its status is {volume.status}.')
    if volume.status not in READY:
        wait_for_volume(job, f'volume {volume.id} is created')


def wait_for_volume(job: Job, what: str) -> None:
    """NotYet, for as long as block storage may take for a volume."""
    conf = job.platform.conf
    seconds = conf.block_device_allocate_retries_interval
    wait(job, what, seconds, seconds * conf.block_device_allocate_retries)


def wait(job: Job, what: str, seconds: float, longest: float) -> None:
    """NotYet, until *longest* seconds have passed, and then VolumeTimeout. The interval is short at first, and at most
    *seconds*."""
    passed = job.fence.passed(what)
    if passed >= longest:
        raise VolumeTimeout(seconds=longest, what=what)
    raise NotYet(min(seconds, max(1, passed)))


def attach(job: Job, device: BlockDevice, name: str) -> None:
    """Reserve the volume if the request did not, and connect it to the server's host."""
    assert device.volume_id is not None
    if device.attachment_id is None:
        reserved = job.platform.volumes.reserve(job.elevated, device.volume_id, job.server.uuid)
        note(job.platform, device, attachment_id=reserved)
    if device.device_name is None:
        note(job.platform, device, device_name=name)
    complete(job.platform, job.elevated, device, job.server.host)


def note(platform: Platform, device: BlockDevice, **values: Any) -> None:
    """Store changes of a disk."""
    platform.store.change(block_devices.update, device.uuid, values)
    for name, value in values.items():
        setattr(device, name, value)


def check_zone(volume: Volume, zone: str | None, refusal: type[Error] = Invalid) -> None:
    """Refuse a volume in another availability zone than the server."""
    if volume.availability_zone != zone:
        raise refusal(
            f'Volume {volume.id} is in availability zone {volume.availability_zone}, but the server is in {zone}: '
            'they must be in the same one.'
        )


def check_zones(platform: Platform, context: Context, server: Server, zone: str) -> None:
    """Conflict if the server cannot have its volumes in that availability zone."""
    if not platform.conf.cinder.cross_az_attach:
        held = [volume_of(device) for device in attached(platform, server)]
        for volume in platform.volumes.get_many(context, held).values():
            check_zone(volume, zone, Conflict)


def check_in_use(platform: Platform, context: Context, server: Server, refusal: type[Error]) -> None:
    """Refuse what needs the server's volumes while block storage does something else with one of them."""
    for device in platform.store.query(block_devices.of_servers, [server.uuid]):
        if device.volume_id is None:
            continue
        status = platform.volumes.get(context, device.volume_id).status
        if status != 'in-use':
            needed = "status must be 'in-use'. Currently in"
            raise refusal(f"Invalid volume: volume '{device.volume_id}' {needed} '{status}' status")


# ------------------------------------------------------------------ which host uses them


def attached(platform: Platform, server: Server) -> list[BlockDevice]:
    """The disks of the server that are attached volumes."""
    devices = platform.store.query(block_devices.of_servers, [server.uuid])
    return [device for device in devices if device.attachment_id is not None and device.volume_id is not None]


def connect(platform: Platform, context: Context, server: Server, host: str | None) -> None:
    """Let that host use the server's volumes, which no other host uses."""
    for device in attached(platform, server):
        complete(platform, context, device, host)


def reach(platform: Platform, context: Context, device: BlockDevice, host: str) -> None:
    """Prepare the host for the volume, before its driver is told to use it."""
    # It is already in use if an earlier run came this far.
    with contextlib.suppress(Invalid):
        connector = connector_of(platform, device, host) or {}
        platform.volumes.connect(context, device.attachment_id or '', connector)


def complete(platform: Platform, context: Context, device: BlockDevice, host: str | None) -> None:
    """Let the host use the volume; a disk without a name is still to be attached, by a task that names it first."""
    if host is not None and device.device_name is None:
        return
    platform.volumes.complete(context, device.attachment_id or '', connector_of(platform, device, host))


def connector_of(platform: Platform, device: BlockDevice, host: str | None) -> dict[str, Any] | None:
    """The host's connector for block storage; None if there is no host."""
    if host is None:
        return None
    place = {'mountpoint': device.device_name} if device.device_name else {}
    return {**platform.hypervisor.connector(host), **place}


def disconnect(platform: Platform, context: Context, server: Server) -> None:
    """Disconnect the server's volumes from any host; the server keeps them, by new attachments that replace the old."""
    for device in attached(platform, server):
        release_host(platform, context, device)


def release_host(platform: Platform, context: Context, device: BlockDevice) -> None:
    former = device.attachment_id or ''
    # Others may have taken the volume from the server meanwhile.
    with contextlib.suppress(AttachmentNotFound):
        held = platform.volumes.reserve(context, device.volume_id or '', device.server_id, beside=former)
        platform.volumes.release(context, former)
        note(platform, device, attachment_id=held)


def reconnect(platform: Platform, context: Context, server: Server, host: str | None) -> None:
    """Let that host use the server's volumes, instead of any other."""
    disconnect(platform, context, server)
    if host is not None:
        connect(platform, context, server, host)


def restore_connections(platform: Platform, context: Context, server: Server) -> None:
    """Let the server's host use its volumes again, after it was to be another host or none; as far as possible."""
    devices = attached(platform, server)
    held = platform.volumes.attachments(context, server_ids=[server.uuid]) if devices else []
    unused = {each.id for each in held if not each.is_used}
    for device in devices:
        if device.attachment_id in unused:
            try:
                complete(platform, context, device, server.host)
            except NeighbourAway:
                raise
            except Error as error:
                LOG.warning('Volume %s of server %s could not be connected: %s', device.volume_id, server.uuid, error)


# ------------------------------------------------------------------ while the server runs on


def prepare(job: Job, host: str) -> None:
    """Let another host reach the server's volumes, too; the attachments are recorded with the task."""
    platform, ready = job.platform, job.arguments.get(READY_THERE, {})
    for device in attached(platform, job.server):
        if device.uuid not in ready:
            own, there = device.attachment_id, connector_of(platform, device, host)
            held = platform.volumes.reserve(
                job.elevated, device.volume_id or '', job.server.uuid, beside=own, connector=there
            )
            ready = ready | {device.uuid: held}
            platform.tasks.note(job.task, {READY_THERE: ready})
        platform.volumes.complete(job.elevated, ready[device.uuid])


def follow(platform: Platform, context: Context, server: Server, ready: Mapping[str, str]) -> None:
    """Let the prepared host use the volumes, and no longer the former one."""
    for device in attached(platform, server):
        held = ready.get(device.uuid, device.attachment_id)
        if held != device.attachment_id:
            platform.volumes.release(context, device.attachment_id or '')
            note(platform, device, attachment_id=held)


def stay(platform: Platform, context: Context, server: Server) -> None:
    """Release the attachments that were prepared for another host."""
    devices = attached(platform, server)
    held = platform.volumes.attachments(context, server_ids=[server.uuid]) if devices else []
    for device in devices:
        hold_once(platform, context, device, [each.id for each in held if each.volume_id == device.volume_id])


def hold_once(platform: Platform, context: Context, device: BlockDevice, attachments: Sequence[str]) -> None:
    """Of the server's attachments of the volume, keep the known one, or else any; *attachments* may be empty."""
    kept = device.attachment_id if device.attachment_id in attachments else next(iter(attachments), None)
    if kept not in (None, device.attachment_id):
        note(platform, device, attachment_id=kept)
    for other in attachments:
        if other != kept:
            platform.volumes.release(context, other)


# ------------------------------------------------------------------ release


def release_all(job: Job) -> None:
    """Detach every volume, and delete those with delete_on_termination."""
    devices = [device for device in job.devices() if is_volume(device)]
    if devices:
        release(job.platform, job.elevated, job.server.uuid)
    for device in devices:
        if device.delete_on_termination:
            remove(job, volume_of(device))


def release(platform: Platform, context: Context, server_id: str, volume_id: str | None = None) -> None:
    """Release what the server holds, or one volume, whether that was recorded or not."""
    for held in platform.volumes.attachments(context, server_ids=[server_id], volume_id=volume_id):
        platform.volumes.release(context, held.id)


def remove(job: Job, volume_id: str) -> None:
    """Delete a volume. One that is used elsewhere, or has snapshots, stays."""
    owner = owner_of(job)
    try:
        job.platform.volumes.delete(owner, volume_id)
    except VolumeNotFound:
        return
    except NeighbourAway:
        raise
    except Error as error:
        wait_until_removable(job, owner, volume_id)
        LOG.warning('Volume %s of server %s could not be deleted: %s', volume_id, job.server.uuid, error)


def owner_of(job: Job) -> Context:
    """Compute, on behalf of the server's project, whose volumes it deletes."""
    return replace(job.elevated, project_id=job.server.project_id)


def wait_until_removable(job: Job, owner: Context, volume_id: str) -> None:
    """NotYet while block storage is busy with the volume, up to a limit: then it stays."""
    with contextlib.suppress(VolumeNotFound, VolumeTimeout):
        if job.platform.volumes.get(owner, volume_id).status in PASSING:
            wait_for_volume(job, f'volume {volume_id} can be deleted')


D = TypeVar('D', bound=Named)


def root_of(devices: Iterable[D]) -> D | None:
    """The disk that the server boots from; None if it is not among them."""
    return next((device for device in devices if device.boot_index == 0), None)
