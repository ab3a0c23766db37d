"""The states of a server, and what each change of it needs and does.

`vm_state` says what the server is, `task_state` what is under way. Clients see `status`, which
follows from the two.
"""

from __future__ import annotations

from dataclasses import dataclass

# vm_state
ACTIVE, BUILDING, PAUSED, SUSPENDED = 'active', 'building', 'paused', 'suspended'
STOPPED, RESCUED, RESIZED, ERROR = 'stopped', 'rescued', 'resized', 'error'
SOFT_DELETED, DELETED, SHELVED, SHELVED_OFFLOADED = 'soft-delete', 'deleted', 'shelved', 'shelved_offloaded'

# power_state
NOSTATE, RUNNING, POWER_PAUSED, SHUTDOWN, CRASHED, POWER_SUSPENDED = 0, 1, 3, 4, 6, 7

ALIVE = frozenset({ACTIVE, PAUSED, SUSPENDED, STOPPED, RESCUED, RESIZED, SHELVED, SHELVED_OFFLOADED, ERROR})

STATUS_BY_TASK = {
    ACTIVE: {
        'rebooting': 'REBOOT',
        'reboot_pending': 'REBOOT',
        'reboot_started': 'REBOOT',
        'rebooting_hard': 'HARD_REBOOT',
        'reboot_pending_hard': 'HARD_REBOOT',
        'reboot_started_hard': 'HARD_REBOOT',
        'updating_password': 'PASSWORD',
        'rebuilding': 'REBUILD',
        'rebuild_block_device_mapping': 'REBUILD',
        'rebuild_spawning': 'REBUILD',
        'migrating': 'MIGRATING',
        'resize_prep': 'RESIZE',
        'resize_migrating': 'RESIZE',
        'resize_migrated': 'RESIZE',
        'resize_finish': 'RESIZE',
    },
    STOPPED: {
        'resize_prep': 'RESIZE',
        'resize_migrating': 'RESIZE',
        'resize_migrated': 'RESIZE',
        'resize_finish': 'RESIZE',
        'rebuilding': 'REBUILD',
        'rebuild_block_device_mapping': 'REBUILD',
        'rebuild_spawning': 'REBUILD',
    },
    RESIZED: {'resize_reverting': 'REVERT_RESIZE'},
    PAUSED: {'migrating': 'MIGRATING'},
    ERROR: {
        'rebuilding': 'REBUILD',
        'rebuild_block_device_mapping': 'REBUILD',
        'rebuild_spawning': 'REBUILD',
    },
}
STATUS = {
    ACTIVE: 'ACTIVE',
    BUILDING: 'BUILD',
    STOPPED: 'SHUTOFF',
    RESIZED: 'VERIFY_RESIZE',
    PAUSED: 'PAUSED',
    SUSPENDED: 'SUSPENDED',
    RESCUED: 'RESCUE',
    ERROR: 'ERROR',
    DELETED: 'DELETED',
    SOFT_DELETED: 'SOFT_DELETED',
    SHELVED: 'SHELVED',
    SHELVED_OFFLOADED: 'SHELVED_OFFLOADED',
}


def status_of(vm_state: str, task_state: str | None) -> str:
    """The status that clients see, e.g. ACTIVE, REBOOT, VERIFY_RESIZE."""
    if task_state is not None:
        special = STATUS_BY_TASK.get(vm_state, {}).get(task_state)
        if special is not None:
            return special
    return STATUS.get(vm_state, 'UNKNOWN')


def states_of(status: str) -> list[tuple[str, frozenset[str] | None]]:
    """What a status means, as (vm_state, task_states); task_states None: any without a status of its own."""
    status = status.upper()
    found: list[tuple[str, frozenset[str] | None]] = [
        (vm_state, None) for vm_state, name in STATUS.items() if name == status
    ]
    for vm_state, names in STATUS_BY_TASK.items():
        tasks = frozenset(task for task, name in names.items() if name == status)
        if tasks:
            found.append((vm_state, tasks))
    return found


@dataclass(frozen=True)
class Change:
    """A change that a server can be asked for.

    name: as its action is recorded, and as a refusal calls it.  task_state: what the server shows meanwhile.
    vm_states: those in which it is possible (None: any).  task_states: likewise (None: any).
    work: the kind of task that does it.  locked: whether a locked server refuses it.
    hosted: whether the server must have a host.
    """

    name: str
    work: str
    task_state: str | None
    vm_states: frozenset[str] | None
    task_states: frozenset[str | None] | None = frozenset({None})
    locked: bool = True
    hosted: bool = False
