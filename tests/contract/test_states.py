"""The states in which servers accept a request, compared with those in which Nova does, in states.csv.

vm_states, task_states: those accepted; * for any, - for no task state.
"""

import csv
from pathlib import Path

import pytest

from computeapi.compute.servers import (
    deletion,
    evacuation,
    interfaces,
    live_migration,
    machines,
    metadata,
    power,
    rebuild,
    rescue,
    resize,
    shelving,
    snapshots,
    tags,
    volume_snapshots,
    volume_swaps,
    volumes,
)
from computeapi.states import TaskState, VMState

OURS = {
    'addFixedIp': interfaces.ADD_FIXED_IP,
    'attach_interface': interfaces.ATTACH,
    'attach_volume': volumes.ATTACH,
    'changePassword': machines.CHANGE_PASSWORD,
    'confirmResize': resize.CONFIRM,
    'createBackup': snapshots.CREATE_BACKUP,
    'createImage': snapshots.CREATE_IMAGE,
    'create_volume_snapshot': volume_snapshots.CREATE,
    'delete': deletion.DELETE,
    'delete_metadata': metadata.DELETE,
    'delete_volume_snapshot': volume_snapshots.DELETE,
    'detach_interface': interfaces.DETACH,
    'detach_volume': volumes.DETACH,
    'evacuate': evacuation.EVACUATE,
    'live_migrate': live_migration.LIVE_MIGRATE,
    'live_migrate_abort': live_migration.CANCEL.requirement,
    'live_migrate_force_complete': live_migration.FORCE_COMPLETE.requirement,
    'migrate': resize.MIGRATE,
    'pause': power.PAUSE,
    'reboot_hard': power.HARD_REBOOT,
    'reboot_soft': power.SOFT_REBOOT,
    'rebuild': rebuild.REBUILD,
    'removeFixedIp': interfaces.REMOVE_FIXED_IP,
    'rescue': rescue.RESCUE,
    'resize': resize.RESIZE,
    'restore': deletion.RESTORE,
    'resume': power.RESUME,
    'revertResize': resize.REVERT,
    'shelve': shelving.SHELVE,
    'shelveOffload': shelving.OFFLOAD,
    'soft_delete': deletion.SOFT_DELETE,
    'start': power.START,
    'stop': power.STOP,
    'suspend': power.SUSPEND,
    'swap_volume': volume_swaps.SWAP,
    'trigger_crash_dump': power.CRASH_DUMP,
    'unpause': power.UNPAUSE,
    'unrescue': rescue.UNRESCUE,
    'unshelve': shelving.UNSHELVE,
    'update_metadata': metadata.UPDATE,
    'update_tags': tags.UPDATE_ALL,
}
# Task states in which a request is refused here, although Nova accepts it.
STRICTER = {
    # A deletion needs no host that is up, and must not be undone; a disk that has reached another host would be lost.
    'evacuate': {TaskState.DELETING, TaskState.SOFT_DELETING, TaskState.RESIZE_MIGRATED},
}

with (Path(__file__).parent / 'states.csv').open() as file:
    NOVA = {row['request']: row for row in csv.DictReader(file)}


def states(text, every):
    """The states of a column; None for no task state."""
    return {*every} if text == '*' else {None if each == '-' else each for each in text.split()}


def test_all_requests_are_compared():
    assert OURS.keys() == NOVA.keys()


@pytest.mark.parametrize('request_name', OURS)
def test_states(request_name):
    ours, nova = OURS[request_name], NOVA[request_name]
    vm_states = {*VMState} if ours.allowed is None else ours.allowed
    task_states = {None, *TaskState} if ours.while_doing is None else ours.while_doing
    assert vm_states == states(nova['vm_states'], VMState)
    assert task_states == states(nova['task_states'], [None, *TaskState]) - STRICTER.get(request_name, set())
    assert ours.launched == (nova['launched'] == 'yes')
    assert ours.lockable == (nova['lockable'] == 'yes')
