"""The volumes of an existing server: attached and detached."""

import builtins
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import sqlalchemy as sa

from computeapi import randomness
from computeapi.backends.volume import Volume
from computeapi.compute.platform import Platform
from computeapi.compute.servers import disks
from computeapi.compute.servers.changes import Changes, check, locked
from computeapi.compute.servers.disk_names import free_name
from computeapi.compute.servers.moves import check_reachable
from computeapi.compute.tasks.job import Job, abandon
from computeapi.compute.tasks.queue import thawed
from computeapi.compute.tasks.transition import Transition
from computeapi.context import Context
from computeapi.db import block_devices, servers
from computeapi.db.servers import BlockDevice, Server
from computeapi.db.tasks import Task
from computeapi.errors import DatabaseError, Error, Invalid, NeighbourAway, NotFound, VolumeNotAttached
from computeapi.states import VMState

LOG = logging.getLogger(__name__)
KEPT = frozenset({VMState.SHELVED, VMState.SHELVED_OFFLOADED})
ATTACHABLE = KEPT | {VMState.ACTIVE, VMState.PAUSED, VMState.STOPPED, VMState.RESIZED, VMState.SOFT_DELETED}


def release_volume(platform: Platform, task: Task, server: Server | None) -> None:
    """Release the volume of a server that is deleted."""
    if server is None:
        disks.release(platform, thawed(task.context).elevated(), task.server_id)


def take_back(job: Job, error: Exception) -> None:
    """Detach the volume from the server again."""
    device = device_of_task(job)
    if device is not None:
        if job.server.host is not None and device.attachment_id is not None:
            try:
                job.driver.detach(job.server, device)
            except Error:
                LOG.warning('Volume %s may still be connected to server %s', device.volume_id, job.server.uuid)
        disks.release(job.platform, job.elevated, job.server.uuid, device.volume_id)
        forget(job, device)
    abandon(job, error)


ATTACH = Transition('attach_volume', beside=True, allowed=ATTACHABLE, failed=take_back, undo=release_volume)


def keep_attached(job: Job, error: Exception) -> None:
    """The volume stays attached as before."""
    if (device := device_of_task(job)) is not None and device.volume_id is not None:
        job.platform.volumes.stop_detaching(job.elevated, device.volume_id)
    abandon(job, error)


DETACH = Transition('detach_volume', beside=True, allowed=ATTACHABLE, failed=keep_attached)
FIXED = ('id', 'serverId', 'device', 'tag')


class AttachedVolumes:
    """Errors: VolumeNotFound, VolumeNotAttached, Invalid, and those of Changes.

    shelved: whether the caller knows that shelved servers can have volumes; otherwise their state allows no change.
    """

    def __init__(self, changes: Changes):
        self.changes, self.volumes = changes, changes.platform.volumes
        self.store, self.tasks = changes.store, changes.tasks

    # ------------------------------------------------------------ look-ups

    def list(self, server: Server, limit: int, offset: int, *, only_reserved: bool) -> builtins.list[BlockDevice]:
        """The volumes on one page of the server's disks. Local disks count, but are not shown, as in Nova.

        only_reserved: only those that block storage has reserved for the server by now."""
        devices = self.store.query(block_devices.of_servers, [server.uuid])[offset : offset + limit]
        return [device for device in devices if is_attached(device) and (device.attachment_id or not only_reserved)]

    def get(self, server: Server, volume_id: str, *, only_reserved: bool = False) -> BlockDevice:
        device = self.store.query(find, server, volume_id)
        if only_reserved and device.attachment_id is None:
            raise VolumeNotAttached(server_id=server.uuid, id=volume_id)
        return device

    # ------------------------------------------------------------ attaching

    def attach(
        self,
        context: Context,
        server: Server,
        volume_id: str,
        *,
        name: str | None = None,
        tag: str | None = None,
        delete_on_termination: bool = False,
        multiattach: bool = True,
        shelved: bool = True,
        at_once: bool = False,
    ) -> BlockDevice:
        """Reserve the volume; a worker connects it.

        name: the device name in the server, by default the next free one; without effect while it is offloaded.
        at_once: choose the name here, with DeviceInUse if it is taken; else the worker does.  multiattach: whether the
        caller knows volumes of several servers.
        """
        transition = ATTACH if shelved else unless_kept(ATTACH)
        check(context, server, transition)
        volume = self.volumes.get(context, volume_id)
        check_volume(server, volume, tag, multiattach)
        if not self.changes.platform.conf.cinder.cross_az_attach:
            disks.check_zone(volume, server.availability_zone or server.pinned_availability_zone)
        device = self._new(server, volume, tag, delete_on_termination)
        task = self._plan(context, server, transition, volume, device, name, at_once)
        with self.changes.accepting(context, server, ATTACH, task):
            self._reserve(context, device)
        return device

    def _new(self, server: Server, volume: Volume, tag: str | None, delete_on_termination: bool) -> BlockDevice:
        return BlockDevice(
            id=0,
            uuid=randomness.new_id(),
            server_id=server.uuid,
            source_type='volume',
            destination_type='volume',
            boot_index=None,
            device_name=None,
            device_type='disk',
            disk_bus=None,
            guest_format=None,
            volume_size=volume.size,
            volume_type=None,
            image_id=None,
            snapshot_id=None,
            volume_id=volume.id,
            attachment_id=None,
            delete_on_termination=delete_on_termination,
            tag=tag,
            created_at=self.changes.clock(),
        )

    def _plan(
        self,
        context: Context,
        server: Server,
        transition: Transition,
        volume: Volume,
        device: BlockDevice,
        name: str | None,
        at_once: bool,
    ) -> Task:
        """Record the attachment before anything is attached."""
        with self.store.write() as connection:
            current = locked(connection, context, server, transition)
            check_holders(volume, server, block_devices.on_volume(connection, volume.id))
            devices = block_devices.of_servers(connection, [server.uuid])
            # An offloaded server has no devices whose names could be taken: it gets one when it is unshelved.
            if at_once and current.vm_state != VMState.SHELVED_OFFLOADED:
                device.device_name = free_name(self.changes.platform, current, devices, name)
            block_devices.insert(connection, values_of(device))
            arguments = {'device_id': device.uuid, 'volume_id': device.volume_id, 'name': name}
            return self.tasks.add(connection, transition, server.uuid, context, arguments, leased=True)

    def _reserve(self, context: Context, device: BlockDevice) -> None:
        assert device.volume_id is not None
        try:
            held = self.volumes.reserve(context, device.volume_id, device.server_id)
        except (NeighbourAway, DatabaseError):
            # It may be reserved all the same; the worker that takes it back needs the disk's row.
            raise
        except Exception:
            self.store.change(block_devices.delete, device.uuid)
            raise
        self.store.change(block_devices.update, device.uuid, {'attachment_id': held})

    # ------------------------------------------------------------ other changes

    def detach(self, context: Context, server: Server, volume_id: str, *, shelved: bool = True) -> None:
        transition = DETACH if shelved else unless_kept(DETACH)
        if not shelved and server.vm_state in KEPT:
            check(context, server, transition)
        device = self._attached(context, server, volume_id)
        if device.boot_index == 0:
            raise Invalid('Cannot detach a root device volume')
        if server.host is not None:
            check(context, server, transition)
            check_reachable(self.changes.platform, server, server.host)
        with self.store.write() as connection:
            current = locked(connection, context, server, transition)
            wanted = {'device_id': device.uuid, 'volume_id': device.volume_id}
            task = self.tasks.add(connection, transition, server.uuid, context, wanted, leased=True)
        with self.changes.accepting(context, server, transition, task):
            # A server without a host has its volumes only reserved.
            if current.host is not None:
                self.volumes.begin_detaching(context, volume_id)

    def update(self, server: Server, volume_id: str, facts: Mapping[str, Any]) -> None:
        """Change delete_on_termination; Invalid for a new value of a fixed property.

        facts: the attachment as clients see it."""
        with self.store.write() as connection:
            try:
                device = find(connection, server, volume_id)
            except VolumeNotAttached:
                raise NotFound(f'No volume Block Device Mapping with id {volume_id}.') from None
            check_fixed(server, device, facts)
            if 'delete_on_termination' in facts:
                kept = {'delete_on_termination': facts['delete_on_termination']}
                block_devices.update(connection, device.uuid, kept)

    def _attached(self, context: Context, server: Server, volume_id: str) -> BlockDevice:
        """VolumeNotFound rather than VolumeNotAttached for a volume that does not exist."""
        try:
            return self.get(server, volume_id)
        except VolumeNotAttached:
            self.volumes.get(context, volume_id)
            raise


def is_attached(device: BlockDevice) -> bool:
    return disks.is_volume(device) and device.volume_id is not None


def find(connection: sa.Connection, server: Server, volume_id: str) -> BlockDevice:
    for device in block_devices.of_servers(connection, [server.uuid]):
        if is_attached(device) and device.volume_id == volume_id:
            return device
    raise VolumeNotAttached(server_id=server.uuid, id=volume_id)


def values_of(device: BlockDevice) -> dict[str, Any]:
    """The device as a new row."""
    return {name: value for name, value in asdict(device).items() if name != 'id'}


def unless_kept(transition: Transition) -> Transition:
    """The transition as it was before it was allowed for shelved servers."""
    return replace(transition, allowed=(transition.allowed or ATTACHABLE) - KEPT)


# ------------------------------------------------------------------ checks


def check_volume(server: Server, volume: Volume, tag: str | None, multiattach: bool) -> None:
    if volume.multiattach and not multiattach:
        raise Invalid('Multiattach volumes are only supported starting with compute API version 2.60.')
    if server.vm_state == VMState.SHELVED_OFFLOADED and volume.multiattach:
        raise Invalid('Attaching multiattach volumes is not supported for shelved-offloaded instances.')
    if server.vm_state == VMState.SHELVED_OFFLOADED and tag:
        raise Invalid('Tagged volume attachment is not supported for shelved-offloaded instances.')


def check_holders(volume: Volume, server: Server, disks_on_it: Sequence[BlockDevice]) -> None:
    """A server has a volume only once, and a volume without multiattach has only one server."""
    holders = [device.server_id for device in disks_on_it]
    if holders and not volume.multiattach:
        raise Invalid(f'Invalid volume: volume {volume.id} is already attached to instances: {", ".join(holders)}')
    if server.uuid in holders:
        raise Invalid(f'Invalid volume: volume {volume.id} already attached')


def check_fixed(server: Server, device: BlockDevice, facts: Mapping[str, Any]) -> None:
    current = {'id': device.volume_id, 'serverId': server.uuid, 'device': device.device_name, 'tag': device.tag}
    for name in FIXED:
        if name in facts and facts[name] != current[name]:
            raise Invalid(f'The {name} property is not mutable')


# ------------------------------------------------------------------ work


@ATTACH.work
def attach(job: Job) -> None:
    """Connect the volume that the request reserved."""
    device = device_of_task(job)
    if device is None:
        return job.end()
    reserve(job, device)
    with job.event('compute_attach_volume' if job.server.host else 'api_attach_volume'):
        connect(job, device)
    job.end()


def reserve(job: Job, device: BlockDevice) -> None:
    """Reserve the volume if the request did not; as the caller, who may not have access to it."""
    assert device.volume_id is not None
    if device.attachment_id is None:
        held = job.platform.volumes.reserve(job.context, device.volume_id, device.server_id)
        disks.note(job.platform, device, attachment_id=held)


def connect(job: Job, device: BlockDevice) -> None:
    """Connect the volume to the server's host. Without a host, the volume is only in use, and is connected later."""
    if job.server.host is not None:
        name_it(job, device)
        disks.reach(job.platform, job.elevated, device, job.server.host)
        job.driver.attach(job.server, device)
    job.platform.volumes.complete(job.elevated, device.attachment_id or '')


def name_it(job: Job, device: BlockDevice) -> None:
    if device.device_name is None:
        with job.store.write() as connection:
            servers.get(connection, job.server.uuid, lock=True)
            devices = block_devices.of_servers(connection, [job.server.uuid])
            device.device_name = free_name(job.platform, job.server, devices, job.arguments.get('name'))
            block_devices.update(connection, device.uuid, {'device_name': device.device_name})


@DETACH.work
def detach(job: Job) -> None:
    """Disconnect the volume; the server keeps it if that fails."""
    device = device_of_task(job)
    if device is None:
        return job.end()
    with job.event('compute_detach_volume' if job.server.host else 'api_detach_volume'):
        if job.server.host is not None:
            job.driver.detach(job.server, device)
        job.platform.volumes.release(job.elevated, device.attachment_id or '')
        if job.server.host is None and device.delete_on_termination:
            # As in Nova, where an offloaded server loses a volume as if it were deleted.
            disks.remove(job, disks.volume_of(device))
    forget(job, device)
    job.end()


def device_of_task(job: Job) -> BlockDevice | None:
    """The disk of the task; None if it is gone."""
    return next((device for device in job.devices() if device.uuid == job.arguments['device_id']), None)


def forget(job: Job, device: BlockDevice) -> None:
    job.store.change(block_devices.delete, device.uuid)
