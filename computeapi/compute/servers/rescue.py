"""Rescue: a server boots from another image, with its own disk beside it."""

from computeapi.backends.hypervisor import Capability, PowerState
from computeapi.backends.image import Images
from computeapi.compute.servers.changes import Changes, check
from computeapi.compute.tasks.job import Job
from computeapi.compute.tasks.transition import Transition
from computeapi.context import Context
from computeapi.db.servers import Server
from computeapi.errors import ImageNotFound, Invalid
from computeapi.states import TaskState, VMState

RESCUE = Transition(
    'rescue',
    during=TaskState.RESCUING,
    allowed={VMState.ACTIVE, VMState.STOPPED, VMState.ERROR},
    capability=Capability.RESCUE,
)
UNRESCUE = Transition('unrescue', during=TaskState.UNRESCUING, allowed={VMState.RESCUED}, capability=Capability.RESCUE)


class Rescues:
    """Errors: those of Changes; Invalid for an image that cannot be booted, or a server that cannot be rescued."""

    def __init__(self, changes: Changes):
        self.changes = changes
        self.images: Images = changes.platform.images

    def rescue(self, context: Context, server: Server, image_id: str | None, *, even_on_volume: bool) -> None:
        """Boot from *image_id*, by default the image that the server was made from."""
        check(context, server, RESCUE)
        if not server.image_id and not even_on_volume:
            reason = 'Cannot rescue a volume-backed instance'
            raise Invalid(f'Instance {server.uuid} cannot be rescued: {reason}')
        wanted = image_id or server.image_id
        if wanted is not None:
            self.check_image(context, wanted)
        self.changes.begin(context, server, RESCUE, {'image_id': wanted})

    def check_image(self, context: Context, image_id: str) -> None:
        try:
            usable = self.images.get(context, image_id).status == 'active'
        except ImageNotFound:
            usable = False
        if not usable:
            raise Invalid(f"Requested rescue image '{image_id}' is not supported")


@RESCUE.work
def rescue(job: Job) -> None:
    with job.event('compute_rescue_instance'):
        job.driver.rescue(job.server, job.arguments.get('image_id'))
    job.finish(vm_state=VMState.RESCUED, power_state=PowerState.RUNNING, launched_at=job.clock())


@UNRESCUE.work
def unrescue(job: Job) -> None:
    with job.event('compute_unrescue_instance'):
        job.driver.unrescue(job.server)
    job.finish(vm_state=VMState.ACTIVE, power_state=PowerState.RUNNING)
