"""Which notifications about servers there are: about the steps of their actions, and others. The names and objects are
those of Nova 34."""

from typing import NamedTuple


class Notice(NamedTuple):
    """The notifications at the beginning and the end of a step: `instance.<action>.start`, `.end` or `.error`.

    unversioned: their name in `compute.instance.<name>.start`, if there are unversioned ones.
    payload: the object that versioned ones contain.
    with_action: whether the end of the step is that of the whole action, whose outcome it shows.
    source: the part of Nova that sends it.
    """

    action: str
    unversioned: str | None = None
    payload: str = 'InstanceActionPayload'
    with_action: bool = True
    source: str = 'compute'


def _plain(action: str) -> list[Notice]:
    return [Notice(action, action)]


CREATE = Notice('create', 'create', 'InstanceCreatePayload')
REBUILD = Notice('rebuild', 'rebuild', 'InstanceActionRebuildPayload')
SNAPSHOT = Notice('snapshot', 'snapshot', 'InstanceActionSnapshotPayload')
VOLUME_ATTACH = Notice('volume_attach', None, 'InstanceActionVolumePayload')
VOLUME_DETACH = Notice('volume_detach', None, 'InstanceActionVolumePayload')

NOTICES = {
    'compute__do_build_and_run_instance': [CREATE],
    # Nova distinguishes that the machine is shut down and that the server is deleted.
    'compute_terminate_instance': [Notice('delete', 'delete'), Notice('shutdown', 'shutdown', with_action=False)],
    'compute_soft_delete_instance': _plain('soft_delete'),
    'compute_restore_instance': _plain('restore'),
    'compute_start_instance': _plain('power_on'),
    'compute_stop_instance': _plain('power_off'),
    'compute_reboot_instance': _plain('reboot'),
    'compute_pause_instance': _plain('pause'),
    'compute_unpause_instance': _plain('unpause'),
    'compute_suspend_instance': _plain('suspend'),
    'compute_resume_instance': _plain('resume'),
    'compute_trigger_crash_dump': _plain('trigger_crash_dump'),
    'compute_rescue_instance': [Notice('rescue', 'rescue', 'InstanceActionRescuePayload')],
    'compute_unrescue_instance': _plain('unrescue'),
    'compute_rebuild_instance': [REBUILD],
    'compute_shelve_instance': _plain('shelve'),
    'compute_shelve_offload_instance': _plain('shelve_offload'),
    'compute_unshelve_instance': _plain('unshelve'),
    'compute_snapshot_instance': [SNAPSHOT],
    'compute_backup_instance': [SNAPSHOT],
    'compute_prep_resize': [Notice('resize_prep', 'resize.prep', 'InstanceActionResizePrepPayload', with_action=False)],
    'compute_resize_instance': [Notice('resize', 'resize', with_action=False)],
    'compute_finish_resize': [Notice('resize_finish', 'finish_resize')],
    'compute_confirm_resize': [Notice('resize_confirm', 'resize.confirm')],
    'compute_finish_revert_resize': [Notice('resize_revert', 'resize.revert')],
    'compute_pre_live_migration': [Notice('live_migration_pre', 'live_migration.pre', with_action=False)],
    'compute_post_live_migration_at_destination': [
        Notice('live_migration_post', 'live_migration._post'),
        Notice('live_migration_post_dest', 'live_migration.post.dest'),
    ],
    'compute_rollback_live_migration': [
        Notice('live_migration_rollback', 'live_migration._rollback', with_action=False),
        Notice('live_migration_rollback_dest', 'live_migration.rollback.dest', with_action=False),
    ],
    'compute_attach_volume': [VOLUME_ATTACH],
    'api_attach_volume': [VOLUME_ATTACH],
    'compute_detach_volume': [VOLUME_DETACH],
    'api_detach_volume': [VOLUME_DETACH],
    'compute_swap_volume': [Notice('volume_swap', None, 'InstanceActionVolumeSwapPayload')],
    'compute_attach_interface': [Notice('interface_attach')],
    'compute_detach_interface': [Notice('interface_detach')],
    'compute_allow_share': [Notice('share_attach', None, 'InstanceActionSharePayload')],
    'compute_deny_share': [Notice('share_detach', None, 'InstanceActionSharePayload')],
}
"""By the name of the step, in the order in which they begin; they end in the opposite order."""

WITHOUT_PHASE: tuple[str | None, ...] = (None,)
BOTH_PHASES: tuple[str | None, ...] = ('start', 'end')
OF_REQUESTS = {
    'api_lock': (Notice('lock', source='api'), WITHOUT_PHASE),
    'api_unlock': (Notice('unlock', source='api'), WITHOUT_PHASE),
    'api_evacuate': (Notice('evacuate', 'evacuate', source='api'), WITHOUT_PHASE),
    'compute_live_migration_abort': (Notice('live_migration_abort', 'live.migration.abort'), BOTH_PHASES),
    'compute_live_migration_force_complete': (
        Notice('live_migration_force_complete', 'live.migration.force.complete'),
        BOTH_PHASES,
    ),
}
"""What requests do themselves, by the name of the event, with the phases to notify of: `instance.<action>` without
one."""

UPDATE = Notice('update', 'update', 'InstanceUpdatePayload')
UPDATE_BY_REQUEST = UPDATE._replace(source='api')
EXISTS = Notice('exists', 'exists', 'InstanceExistsPayload')
"""The use of a server in a period: of audits, and whenever its flavor, image or host is about to change."""
CHANGES_OF_USE = frozenset(
    {
        *('compute_rebuild_instance', 'compute_rescue_instance', 'compute_shelve_instance'),
        *('compute_prep_resize', 'compute_revert_resize'),
    }
)
"""The steps before which others are notified of the use of a server until then."""
