"""Rescue: a server boots from another image, with its own disk attached."""

import contextlib
from collections.abc import Mapping
from typing import Any

from computeapi.backends.hypervisor import Capability, PowerState
from computeapi.backends.image import Images
from computeapi.compute.servers import disks, signatures
from computeapi.compute.servers.changes import Changes, check
from computeapi.compute.tasks.job import Job
from computeapi.compute.tasks.transition import Transition
from computeapi.context import Context
from computeapi.db.servers import Server
from computeapi.errors import Conflict, ImageNotFound, Invalid
from computeapi.states import TaskState, VMState

RESCUE = Transition(
    'rescue',
    during=TaskState.RESCUING,
    allowed={VMState.ACTIVE, VMState.STOPPED, VMState.ERROR},
    capability=Capability.RESCUE,
)
UNRESCUE = Transition('unrescue', during=TaskState.UNRESCUING, allowed={VMState.RESCUED}, capability=Capability.RESCUE)

# The properties that place the disk of the image, which must differ from the server's own disk.
NEEDED_ON_VOLUME = {'hw_rescue_bus', 'hw_rescue_device'}


class Rescues:
    """Errors: those of Changes; Invalid for an image that cannot be booted, or a server that cannot be rescued."""

    def __init__(self, changes: Changes):
        self.changes = changes
        self.images: Images = changes.platform.images

    def rescue(self, context: Context, server: Server, image_id: str | None, *, even_on_volume: bool) -> None:
        """Boot from *image_id*, by default the image that the server was created from."""
        check(context, server, RESCUE)
        wanted = image_id or server.image_id
        properties = self.properties(context, wanted) if wanted else server.image_properties
        disks.check_in_use(self.changes.platform, context, server, Conflict)
        can = self.changes.platform.hypervisor.capabilities_of(server.host)
        possible = even_on_volume and Capability.RESCUE_ON_VOLUME in can and properties.keys() >= NEEDED_ON_VOLUME
        if not possible and disks.is_root_on_volume(self.changes.platform, server):
            reason = 'Cannot rescue a volume-backed instance'
            raise Invalid(f'Instance {server.uuid} cannot be rescued: {reason}')
        self.changes.begin(context, server, RESCUE, {'image_id': wanted})

    def properties(self, context: Context, image_id: str) -> Mapping[str, Any]:
        """The properties of the image to boot from; Invalid if it is not active, or consists of volumes."""
        with contextlib.suppress(ImageNotFound):
            image = self.images.get(context, image_id)
            if image.status == 'active' and 'block_device_mapping' not in image.properties:
                return image.properties
        raise Invalid(f"Requested rescue image '{image_id}' is not supported")


@RESCUE.work
def rescue(job: Job) -> None:
    with job.event('compute_rescue_instance'):
        signatures.check(job, job.arguments.get('image_id'))
        job.driver.rescue(job.server, job.arguments.get('image_id'))
    job.finish(vm_state=VMState.RESCUED, power_state=PowerState.RUNNING, launched_at=job.clock())


@UNRESCUE.work
def unrescue(job: Job) -> None:
    with job.event('compute_unrescue_instance'):
        job.driver.unrescue(job.server)
    job.finish(vm_state=VMState.ACTIVE, power_state=PowerState.RUNNING)
