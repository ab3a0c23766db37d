"""Volume quotas of projects, and their usage."""

from collections.abc import Mapping

import sqlalchemy as sa

from computeapi import errors
from computeapi.context import Context
from computeapi.db import volume_groups, volumes
from computeapi.db.engine import Store
from computeapi.db.volumes import BACKUPS, SNAPSHOTS, VOLUMES

DEFAULTS = {
    'volumes': 10,
    'snapshots': 10,
    'gigabytes': 1000,
    'per_volume_gigabytes': -1,
    'backups': 10,
    'backup_gigabytes': 1000,
    'groups': 10,
}

DEFAULT_CLASS = 'default'
"""The class of all projects; its limits are the defaults of projects without limits of their own."""

EXCEEDED = {
    'volumes': "VolumeLimitExceeded: Maximum number of volumes allowed ({limit}) exceeded for quota 'volumes'.",
    'snapshots': "SnapshotLimitExceeded: Maximum number of snapshots allowed ({limit}) exceeded for quota 'snapshots'.",
    'gigabytes': (
        'VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. '
        'Requested {more}G, quota is {limit}G and {used}G has been consumed.'
    ),
    'backups': 'BackupLimitExceeded: Maximum number of backups allowed ({limit}) exceeded',
    'backup_gigabytes': (
        'VolumeBackupSizeExceedsAvailableQuota: Requested backup exceeds allowed Backup gigabytes quota. '
        'Requested {more}G, quota is {limit}G and {used}G has been consumed.'
    ),
    'groups': 'GroupLimitExceeded: Maximum number of groups allowed ({limit}) exceeded',
    'per_volume_gigabytes': (
        'VolumeSizeExceedsLimit: Requested volume size {more}G is larger than maximum allowed limit {limit}G.'
    ),
}


class VolumeQuotas:
    """Limits by project and name; -1 means unlimited."""

    def __init__(self, store: Store):
        self.store = store

    def limits(self, project_id: str) -> dict[str, int]:
        with self.store.read() as connection:
            return _limits(connection, project_id)

    def class_limits(self, name: str) -> dict[str, int]:
        with self.store.read() as connection:
            return DEFAULTS | volumes.class_limits(connection, name)

    def usage(self, project_id: str) -> dict[str, int]:
        with self.store.read() as connection:
            return _usage(connection, project_id)

    def set_limits(self, project_id: str, limits: Mapping[str, int]) -> dict[str, int]:
        """Set the given limits; the others stay unchanged."""
        check_names(limits)
        with self.store.write() as connection:
            volumes.lock_project(connection, project_id)
            volumes.set_limits(connection, project_id, limits)
        return self.limits(project_id)

    def set_class_limits(self, name: str, limits: Mapping[str, int]) -> dict[str, int]:
        """Like `set_limits`, for a quota class."""
        check_names(limits)
        with self.store.write() as connection:
            volumes.set_class_limits(connection, name, limits)
        return self.class_limits(name)

    def reset(self, project_id: str) -> None:
        """Restore the defaults of the project."""
        with self.store.write() as connection:
            volumes.reset_limits(connection, project_id)

    def take(self, connection: sa.Connection, project_id: str, **more: int) -> None:
        """Raises OverQuota if the project may not have this many more of something."""
        volumes.lock_project(connection, project_id)
        limits = _limits(connection, project_id)
        used = _usage(connection, project_id)
        for name, number in more.items():
            if 0 <= limits[name] < used[name] + number:
                text = EXCEEDED[name].format(more=number, limit=limits[name], used=used[name])
                raise errors.OverQuota(text)


def check_names(limits: Mapping[str, int]) -> None:
    for name in limits:
        if name not in DEFAULTS:
            raise errors.Invalid(f'quota_set: there is no quota {name}.')


def _limits(connection: sa.Connection, project_id: str) -> dict[str, int]:
    return DEFAULTS | volumes.class_limits(connection, DEFAULT_CLASS) | volumes.limits(connection, project_id)


def _usage(connection: sa.Connection, project_id: str) -> dict[str, int]:
    project = Context(project_id=project_id)
    volume_count, volume_size = VOLUMES.count(connection, *VOLUMES.listed(project, None, False))
    snapshot_count, snapshot_size = SNAPSHOTS.count(connection, *SNAPSHOTS.listed(project, None, False))
    backup_count, backup_size = BACKUPS.count(connection, *BACKUPS.listed(project, None, False))
    used = {'volumes': volume_count, 'snapshots': snapshot_count, 'gigabytes': volume_size + snapshot_size}
    used |= {'backups': backup_count, 'backup_gigabytes': backup_size}
    used['groups'] = volume_groups.count_groups(connection, project_id)
    return dict.fromkeys(DEFAULTS, 0) | used
