"""Rebuilding a server: it keeps its identity, host and addresses, and gets a new root disk."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from computeapi.backends.hypervisor import Capability, PowerState, require
from computeapi.compute.keypairs import KeypairManager
from computeapi.compute.quotas import Quotas
from computeapi.compute.scheduler import NoValidHost, Spec
from computeapi.compute.scheduler.requirements import RequestGroup, groups_of
from computeapi.compute.servers import config_drive, disks, moves, placement, signatures
from computeapi.compute.servers.changes import Changes, check, not_ready
from computeapi.compute.servers.creation import boot
from computeapi.compute.servers.creation.boot import Source
from computeapi.compute.servers.creation.request import VOLUME, Device, Rights
from computeapi.compute.servers.creation.rows import remembered
from computeapi.compute.servers.metadata import check_items
from computeapi.compute.tasks.job import Job
from computeapi.compute.tasks.transition import Transition
from computeapi.context import Context
from computeapi.db import block_devices
from computeapi.db.flavors import Flavor
from computeapi.db.servers import BlockDevice, Server
from computeapi.errors import Error, ImageNotFound, Invalid, VolumeNotFound
from computeapi.states import REBUILD_STEPS, TaskState, VMState

# The status of a volume that an image is being written to, and the argument of a task that started the write.
WRITING, BEGUN_TO_WRITE = 'downloading', 'writing'
INSTEAD = 'Either specify a different image during rebuild or create a new server with the specified image'
FORBIDDEN_BY_FLAVOR = (
    'Image traits are part of forbidden traits in flavor associated with the server. '
    f'{INSTEAD} and a compatible flavor.'
)
NOT_ON_HOST = f'Image traits cannot be satisfied by the current resource providers. {INSTEAD}.'


def not_rebuilt(job: Job, error: Exception) -> None:
    """The server is in ERROR; as long as its machine was not touched, it keeps the image of that machine."""
    moves.yield_to_evacuation(job)
    former = job.arguments['former'] if job.server.task_state == TaskState.REBUILDING else {}
    job.fail(error, vm_state=VMState.ERROR, power_state=job.power(), **former)


REBUILD = Transition(
    'rebuild',
    during=TaskState.REBUILDING,
    steps=REBUILD_STEPS,
    allowed={VMState.ACTIVE, VMState.STOPPED, VMState.ERROR},
    shares=False,
    failed=not_rebuilt,
)


@dataclass(frozen=True)
class RebuildRequest:
    """What a client may request for a rebuild.

    changes: new values of columns of the server; a key_name of None removes the key.
    even_on_volume: whether a root disk that is a volume is overwritten, too; otherwise it keeps its image.
    """

    image_id: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    disk_config: str | None = None
    personality: Sequence[Mapping[str, str]] = ()
    preserve_ephemeral: bool = False
    even_on_volume: bool = True
    admin_pass: str | None = field(default=None, repr=False)


class Rebuilds:
    """Errors: those of Changes; OverQuota; Invalid for an image that the server cannot boot, or an unknown key pair."""

    def __init__(self, changes: Changes, quotas: Quotas, keypairs: KeypairManager):
        self.changes, self.quotas, self.keypairs = changes, quotas, keypairs
        self.images, self.volumes = changes.platform.images, changes.platform.volumes

    def rebuild(self, context: Context, server: Server, request: RebuildRequest) -> None:
        """Begin a rebuild; *server* shows the new values from now on."""
        check(context, server, REBUILD)
        if server.host is None:
            raise not_ready(server)
        metadata = request.changes.get('metadata', {})
        check_items(metadata)
        self.quotas.check_contents(context, metadata, request.personality)
        root = self.root_volume(server)
        source = self.source(context, request.image_id)
        self.check_source(context, server, source, root, request)
        disks.check_in_use(self.changes.platform, context, server, Invalid)
        values = self.values(context, server, source, root, request)
        arguments = {
            'image_id': request.image_id,
            'reimage': root is not None and request.even_on_volume,
            'preserve_ephemeral': request.preserve_ephemeral,
            'former': former(server, values),
        }
        arguments = config_drive.with_password(self.changes.platform, arguments, request.admin_pass)
        self.changes.begin(context, server, REBUILD, arguments, **values)
        for name, value in ({'task_state': REBUILD.during} | values).items():
            setattr(server, name, value)

    # ------------------------------------------------------------ checks

    def root_volume(self, server: Server) -> BlockDevice | None:
        """The server's root disk, if it is a volume."""
        root = disks.root_of(self.changes.store.query(block_devices.of_servers, [server.uuid]))
        return root if root is not None and disks.is_volume(root) else None

    def source(self, context: Context, image_id: str) -> Source:
        try:
            return boot.of_image(self.images.get(context, image_id))
        except ImageNotFound:
            raise Invalid('Cannot find image for rebuild') from None

    def check_source(
        self, context: Context, server: Server, source: Source, root: BlockDevice | None, request: RebuildRequest
    ) -> None:
        """Check that the image fits the server and its root disk, which may have to keep its current image."""
        if root is not None:
            self.check_volume(context, root, request)
        flavor = Flavor(**server.flavor, created_at=server.created_at, updated_at=None)
        disk = None if root is None else Device(VOLUME, VOLUME, 0, volume_size=root.volume_size)
        boot.check(source, flavor, disk, Rights())

    def check_volume(self, context: Context, root: BlockDevice, request: RebuildRequest) -> None:
        if request.changes.get('trusted_image_certificates'):
            raise Invalid('Image certificate validation is not supported when booting from volume')
        if not request.even_on_volume and self.image_of(context, root.volume_id or '') != request.image_id:
            raise Invalid(
                f'Image {request.image_id} is unacceptable: '
                'Unable to rebuild with a different image for a volume-backed server.'
            )

    def image_of(self, context: Context, volume_id: str) -> str | None:
        """The image that a volume was created from."""
        try:
            return self.volumes.get(context, volume_id).image_metadata.get('image_id')
        except VolumeNotFound:
            raise boot.unusable('volume', volume_id) from None

    # ------------------------------------------------------------ changes

    def values(
        self, context: Context, server: Server, source: Source, root: BlockDevice | None, request: RebuildRequest
    ) -> dict[str, Any]:
        """The columns with new values. A server on a volume has no image of its own, before or after."""
        return {
            **request.changes,
            **self.certificates(request),
            **self.key(context, request),
            **remembered(source, server.flavor['root_gb']),
            'image_id': request.image_id if root is None else server.image_id,
            'personality': [dict(file) for file in request.personality] or None,
            'disk_config': boot.disk_config(source, request.disk_config),
            'progress': 0,
            'updated_at': self.changes.clock(),
        }

    def certificates(self, request: RebuildRequest) -> dict[str, Any]:
        """The certificates that are trusted from now on, if the request sets them."""
        if 'trusted_image_certificates' not in request.changes:
            return {}
        trusted = request.changes['trusted_image_certificates'] or self.images.trusted_certificates
        return {'trusted_image_certificates': [*trusted] or None}

    def key(self, context: Context, request: RebuildRequest) -> dict[str, Any]:
        """The public key for a new key name: a key of the caller's, because keys belong to users, and servers to their
        project."""
        if 'key_name' not in request.changes:
            return {}
        return {'public_key': self.keypairs.public_key(context.user_id or '', request.changes['key_name'])}


def former(server: Server, values: Mapping[str, Any]) -> dict[str, Any]:
    """What the server was created from, if that changes; it is restored if the host cannot run the new image."""
    names = ('image_id', 'image_properties', 'kernel_id', 'ramdisk_id')
    facts = {name: getattr(server, name) for name in names}
    return {} if without_sizes(values) == without_sizes(facts) else facts


def without_sizes(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The part of these columns that does not depend on the flavor."""
    properties = {name: value for name, value in facts['image_properties'].items() if name not in boot.MIN_SIZES}
    return {**{name: facts[name] for name in ('image_id', 'kernel_id', 'ramdisk_id')}, 'image_properties': properties}


# ------------------------------------------------------------------ work


@REBUILD.work
def rebuild(job: Job) -> None:
    """Create another machine under the same name, with a new root disk. A stopped server ends up stopped."""
    moves.yield_to_evacuation(job)
    stopped = job.server.vm_state == VMState.STOPPED
    if job.server.task_state == TaskState.REBUILDING:
        with job.event('rebuild_server', job.platform.conf.host):
            check_possible(job)
    with job.event('compute_rebuild_instance'):
        remove(job)
        renew_disk(job)
        job.driver.spawn(job.server, job.devices(), config_drive.of(job, job.server))
        if stopped:
            with job.event('compute_stop_instance'):
                job.driver.power_off(job.server)
    vm_state, power_state = (VMState.STOPPED, PowerState.SHUTDOWN) if stopped else (VMState.ACTIVE, PowerState.RUNNING)
    job.finish(vm_state=vm_state, power_state=power_state, launched_at=job.clock())


def remove(job: Job) -> None:
    if job.server.task_state == TaskState.REBUILDING:
        placement.clear(job, job.server.host)
        job.save(task_state=TaskState.REBUILD_BLOCK_DEVICE_MAPPING)


def check_possible(job: Job) -> None:
    """Check that the rebuild is possible, before anything is lost."""
    server = job.server
    if job.arguments['preserve_ephemeral']:
        require(job.driver, Capability.PRESERVE_EPHEMERAL, server.host)
    if job.arguments['former']:
        spec = Spec.of(server, on_volume=job.on_volume, host=server.host, node=server.node)
        job.platform.scheduler.check(spec, 'ImagePropertiesFilter')
        check_traits(job, spec)
    signatures.check_own(job)


def check_traits(job: Job, spec: Spec) -> None:
    """NoValidHost unless the server's host has the traits that the image requires."""
    required = groups_of({}, spec.image_properties).get('', RequestGroup()).required
    # By any group: the image is not in one.
    if any(required & group.forbidden for group in groups_of(spec.extra_specs, {}).values()):
        raise NoValidHost(reason=FORBIDDEN_BY_FLAVOR)
    mirror = job.platform.mirror
    if required and not required <= (
        job.platform.scheduler.traits_on(spec.host) if mirror is None else mirror.traits_for(spec.server_id)
    ):
        raise NoValidHost(reason=NOT_ON_HOST)


def renew_disk(job: Job) -> None:
    """Overwrite the root disk with the image if it is a volume; a local root disk is created with the machine."""
    if job.server.task_state != TaskState.REBUILD_BLOCK_DEVICE_MAPPING:
        return
    image_id = job.arguments['image_id']
    root = disks.root_of(job.devices())
    if root is not None and not disks.is_volume(root):
        disks.note(job.platform, root, image_id=image_id)
    elif root is not None and job.arguments['reimage']:
        write_over(job, root, image_id)
    job.save(task_state=TaskState.REBUILD_SPAWNING)


def write_over(job: Job, root: BlockDevice, image_id: str) -> None:
    """Let block storage write the image to a volume that no host uses meanwhile; NotYet until that is done."""
    volumes, conf, volume_id = job.platform.volumes, job.platform.conf, root.volume_id or ''
    volume = volumes.get(job.elevated, volume_id)
    # A previous worker may have died just after it had started the write.
    if not job.arguments.get(BEGUN_TO_WRITE) and volume.status != WRITING:
        disks.release_host(job.platform, job.elevated, root)
        volumes.reimage(job.elevated, volume_id, image_id)
        job.platform.tasks.note(job.task, {BEGUN_TO_WRITE: True})
        volume = volumes.get(job.elevated, volume_id)
    if volume.status.startswith('error'):
        raise Error(f'Image {image_id} could not be written over volume {volume_id}: its status is {volume.status}.')
    if volume.status == WRITING:
        longest = conf.reimage_timeout_per_gb * volume.size
        disks.wait(job, f'volume {volume_id} is written', conf.block_device_allocate_retries_interval, longest)
    disks.complete(job.platform, job.elevated, root, job.server.host)
