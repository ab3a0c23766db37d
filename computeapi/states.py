"""The states of a server and of its moves, as they are stored and as clients read them.

`vm_state` is the lasting state of a server, `task_state` the operation in progress. Clients see `status`, which is
derived from the two.
"""

from enum import StrEnum


class VMState(StrEnum):
    """The lasting state of a server."""

    ACTIVE = 'active'
    BUILDING = 'building'
    PAUSED = 'paused'
    SUSPENDED = 'suspended'
    STOPPED = 'stopped'
    RESCUED = 'rescued'
    RESIZED = 'resized'
    ERROR = 'error'
    SOFT_DELETED = 'soft-delete'
    DELETED = 'deleted'
    SHELVED = 'shelved'
    SHELVED_OFFLOADED = 'shelved_offloaded'


class TaskState(StrEnum):
    """The operation in progress on a server."""

    SCHEDULING = 'scheduling'
    NETWORKING = 'networking'
    BLOCK_DEVICE_MAPPING = 'block_device_mapping'
    SPAWNING = 'spawning'
    POWERING_ON = 'powering-on'
    POWERING_OFF = 'powering-off'
    REBOOTING = 'rebooting'
    REBOOT_PENDING = 'reboot_pending'
    REBOOT_STARTED = 'reboot_started'
    REBOOTING_HARD = 'rebooting_hard'
    REBOOT_PENDING_HARD = 'reboot_pending_hard'
    REBOOT_STARTED_HARD = 'reboot_started_hard'
    PAUSING = 'pausing'
    UNPAUSING = 'unpausing'
    SUSPENDING = 'suspending'
    RESUMING = 'resuming'
    RESCUING = 'rescuing'
    UNRESCUING = 'unrescuing'
    UPDATING_PASSWORD = 'updating_password'
    IMAGE_SNAPSHOT = 'image_snapshot'
    IMAGE_UPLOADING = 'image_uploading'
    IMAGE_BACKUP = 'image_backup'
    RESIZE_PREP = 'resize_prep'
    RESIZE_MIGRATING = 'resize_migrating'
    RESIZE_MIGRATED = 'resize_migrated'
    RESIZE_FINISH = 'resize_finish'
    RESIZE_REVERTING = 'resize_reverting'
    MIGRATING = 'migrating'
    REBUILDING = 'rebuilding'
    REBUILD_BLOCK_DEVICE_MAPPING = 'rebuild_block_device_mapping'
    REBUILD_SPAWNING = 'rebuild_spawning'
    SHELVING = 'shelving'
    SHELVING_IMAGE_UPLOADING = 'shelving_image_uploading'
    SHELVING_OFFLOADING = 'shelving_offloading'
    UNSHELVING = 'unshelving'
    SOFT_DELETING = 'soft-deleting'
    DELETING = 'deleting'
    RESTORING = 'restoring'


GOING = frozenset({TaskState.DELETING, TaskState.SOFT_DELETING})
"""The task states of a server that is being deleted."""
LABELLED = frozenset({VMState.ACTIVE, VMState.PAUSED, VMState.SUSPENDED, VMState.STOPPED})
"""The vm_states in which the metadata and the tags of a server can be changed."""


class MigrationType(StrEnum):
    """Why a server moves between hosts; migration means a cold one."""

    RESIZE = 'resize'
    MIGRATION = 'migration'
    LIVE = 'live-migration'
    EVACUATION = 'evacuation'


class MigrationStatus(StrEnum):
    """The progress of a migration of a server between hosts."""

    ACCEPTED = 'accepted'
    QUEUED = 'queued'
    PREPARING = 'preparing'
    RUNNING = 'running'
    FORCING = 'forcing'
    CANCELLING = 'cancelling'
    CANCELLED = 'cancelled'
    COMPLETED = 'completed'
    FAILED = 'failed'
    ERROR = 'error'
    DONE = 'done'
    PRE_MIGRATING = 'pre-migrating'
    MIGRATING = 'migrating'
    POST_MIGRATING = 'post-migrating'
    FINISHED = 'finished'
    CONFIRMING = 'confirming'
    CONFIRMED = 'confirmed'
    REVERTING = 'reverting'
    REVERTED = 'reverted'


class ShareStatus(StrEnum):
    """The state of a share attachment; active means mounted."""

    ATTACHING = 'attaching'
    INACTIVE = 'inactive'
    ACTIVE = 'active'
    DETACHING = 'detaching'
    ERROR = 'error'


REBUILD_STEPS = (TaskState.REBUILDING, TaskState.REBUILD_BLOCK_DEVICE_MAPPING, TaskState.REBUILD_SPAWNING)
"""The task states of a rebuild or an evacuation, in order."""

RESIZE_STEPS = (
    TaskState.RESIZE_PREP,
    TaskState.RESIZE_MIGRATING,
    TaskState.RESIZE_MIGRATED,
    TaskState.RESIZE_FINISH,
)
"""The task states of a resize or a cold migration, in order."""

SOFT_REBOOT_STEPS = (TaskState.REBOOTING, TaskState.REBOOT_PENDING, TaskState.REBOOT_STARTED)
HARD_REBOOT_STEPS = (TaskState.REBOOTING_HARD, TaskState.REBOOT_PENDING_HARD, TaskState.REBOOT_STARTED_HARD)

STATUS: dict[str, str] = {
    VMState.ACTIVE: 'ACTIVE',
    VMState.BUILDING: 'BUILD',
    VMState.STOPPED: 'SHUTOFF',
    VMState.RESIZED: 'VERIFY_RESIZE',
    VMState.PAUSED: 'PAUSED',
    VMState.SUSPENDED: 'SUSPENDED',
    VMState.RESCUED: 'RESCUE',
    VMState.ERROR: 'ERROR',
    VMState.DELETED: 'DELETED',
    VMState.SOFT_DELETED: 'SOFT_DELETED',
    VMState.SHELVED: 'SHELVED',
    VMState.SHELVED_OFFLOADED: 'SHELVED_OFFLOADED',
}

_REBUILD: dict[str, str] = dict.fromkeys(REBUILD_STEPS, 'REBUILD')
_RESIZE: dict[str, str] = dict.fromkeys(RESIZE_STEPS, 'RESIZE')
STATUS_BY_TASK: dict[str, dict[str, str]] = {
    VMState.ACTIVE: {
        **dict.fromkeys(SOFT_REBOOT_STEPS, 'REBOOT'),
        **dict.fromkeys(HARD_REBOOT_STEPS, 'HARD_REBOOT'),
        TaskState.UPDATING_PASSWORD: 'PASSWORD',
        **_REBUILD,
        TaskState.MIGRATING: 'MIGRATING',
        **_RESIZE,
    },
    VMState.STOPPED: {**_RESIZE, **_REBUILD},
    VMState.RESIZED: {TaskState.RESIZE_REVERTING: 'REVERT_RESIZE'},
    VMState.PAUSED: {TaskState.MIGRATING: 'MIGRATING'},
    VMState.ERROR: _REBUILD,
}


def status_of(vm_state: str, task_state: str | None) -> str:
    """The status that clients see, e.g. ACTIVE, REBOOT, VERIFY_RESIZE."""
    if task_state is not None:
        special = STATUS_BY_TASK.get(vm_state, {}).get(task_state)
        if special is not None:
            return special
    return STATUS.get(vm_state, 'UNKNOWN')


def states_of(status: str) -> list[tuple[str, frozenset[str] | None]]:
    """The states behind a status, as (vm_state, task_states); task_states None: any that has no status of its own."""
    status = status.upper()
    found: list[tuple[str, frozenset[str] | None]] = [
        (vm_state, None) for vm_state, name in STATUS.items() if name == status
    ]
    for vm_state, names in STATUS_BY_TASK.items():
        tasks = frozenset(task for task, name in names.items() if name == status)
        if tasks:
            found.append((vm_state, tasks))
    return found
