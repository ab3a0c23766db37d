"""Volume quotas of projects, and their usage."""

from collections.abc import Mapping

import sqlalchemy as sa

from computeapi import errors
from computeapi.context import Context
from computeapi.db import volume_groups, volume_types, volumes
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

OF_TYPES = ('volumes', 'snapshots', 'gigabytes')
"""What may also be limited for each volume type. The limits of the type `fast` are volumes_fast and so on; they are
stored with the ID in place of the name, so that they survive renaming."""

DEFAULT_CLASS = 'default'
"""The class of all projects; its limits are the defaults of projects without limits of their own."""

MAX_SHOWN = 300

EXCEEDED = {
    'volumes': "VolumeLimitExceeded: Maximum number of volumes allowed ({limit}) exceeded for quota '{name}'.",
    'snapshots': "SnapshotLimitExceeded: Maximum number of snapshots allowed ({limit}) exceeded for quota '{name}'.",
    'gigabytes': (
        'VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed {name} quota. '
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
            return _named(connection, _limits(connection, project_id), -1)

    def class_limits(self, name: str) -> dict[str, int]:
        with self.store.read() as connection:
            return _named(connection, DEFAULTS | volumes.class_limits(connection, name), -1)

    def usage(self, project_id: str) -> dict[str, int]:
        with self.store.read() as connection:
            used = _usage(connection, project_id)
            for type_id, numbers in volumes.usage_of_types(connection, project_id).items():
                used |= {f'{name}_{type_id}': number for name, number in numbers.items()}
            return _named(connection, used, 0)

    def set_limits(self, project_id: str, limits: Mapping[str, int]) -> dict[str, int]:
        """Set the given limits; the others stay unchanged."""
        with self.store.write() as connection:
            volumes.lock_project(connection, project_id)
            volumes.set_limits(connection, project_id, _stored(connection, limits))
        return self.limits(project_id)

    def set_class_limits(self, name: str, limits: Mapping[str, int]) -> dict[str, int]:
        """Like `set_limits`, for a quota class."""
        with self.store.write() as connection:
            volumes.set_class_limits(connection, name, _stored(connection, limits))
        return self.class_limits(name)

    def reset(self, project_id: str) -> None:
        """Restore the defaults of the project."""
        with self.store.write() as connection:
            volumes.reset_limits(connection, project_id)

    def take(self, connection: sa.Connection, project_id: str, type_id: str | None = None, **more: int) -> None:
        """Raises OverQuota if the project may not have this many more of something, in all and of the volume type."""
        volumes.lock_project(connection, project_id)
        limits = _limits(connection, project_id)
        used = _usage(connection, project_id)
        for name, number in more.items():
            _check(name, name, number, limits[name], used[name])
        if type_id is not None:
            self.take_of_type(connection, project_id, type_id, **more)

    def take_of_type(self, connection: sa.Connection, project_id: str, type_id: str, **more: int) -> None:
        """Like `take`, for the limits of the volume type alone."""
        volumes.lock_project(connection, project_id)
        limits = _limits(connection, project_id)
        limited = {name: number for name, number in more.items() if limits.get(f'{name}_{type_id}', -1) >= 0}
        if limited:
            used = volumes.usage_of_types(connection, project_id).get(type_id, {})
            type_name = volume_types.type_names(connection)[type_id]
            for name, number in limited.items():
                _check(name, f'{name}_{type_name}', number, limits[f'{name}_{type_id}'], used.get(name, 0))


def _check(kind: str, name: str, more: int, limit: int, used: int) -> None:
    if 0 <= limit < used + more:
        raise errors.OverQuota(EXCEEDED[kind].format(name=name, more=more, limit=limit, used=used))


def _of_types(connection: sa.Connection) -> dict[str, str]:
    """The name of each limit of a volume type, and the name under which it is stored."""
    kinds = volume_types.type_names(connection).items()
    return {f'{name}_{type_name}': f'{name}_{type_id}' for type_id, type_name in kinds for name in OF_TYPES}


def _named(connection: sa.Connection, numbers: Mapping[str, int], missing: int) -> dict[str, int]:
    """The numbers by the names that clients know; `missing` where a volume type has none."""
    of_types = {name: numbers.get(stored, missing) for name, stored in _of_types(connection).items()}
    return {name: numbers[name] for name in DEFAULTS} | of_types


def _stored(connection: sa.Connection, limits: Mapping[str, int]) -> dict[str, int]:
    """The limits by the names under which they are stored; raises Invalid for a name that does not exist."""
    known = {name: name for name in DEFAULTS} | _of_types(connection)
    for name in limits:
        if name not in known:
            raise errors.Invalid(f'quota_set: there is no quota {name[:MAX_SHOWN]}.')
    return {known[name]: limit for name, limit in limits.items()}


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
