"""Groups of volumes, and group types."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi import errors, randomness
from computeapi.backends.volume import Volume
from computeapi.backends.volume.local.base import project_of
from computeapi.backends.volume.local.filling import Filler
from computeapi.backends.volume.local.quotas import VolumeQuotas
from computeapi.backends.volume.local.records import Records
from computeapi.backends.volume.local.types import VolumeTypes, keep_type
from computeapi.context import Context
from computeapi.db import volume_groups, volumes
from computeapi.db.engine import Store, conflicts
from computeapi.db.volume_groups import GROUP_TYPES, GROUPS
from computeapi.db.volumes import SNAPSHOTS, VOLUMES


@dataclass(frozen=True)
class VolumeGroupType:
    """A group type; the specs are stored, but have no effect."""

    id: str
    name: str
    description: str | None
    is_public: bool
    created_at: datetime
    group_specs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class VolumeGroup:
    """A group of volumes of these types; `volumes` are their IDs."""

    id: str
    project_id: str
    user_id: str | None
    name: str | None
    description: str | None
    status: str
    availability_zone: str
    group_type: str
    created_at: datetime
    updated_at: datetime
    volume_types: Sequence[str] = ()
    volumes: Sequence[str] = ()


class VolumeGroupTypes(Records[VolumeGroupType]):
    """Group types; the caller checks who may change them."""

    table, record = GROUP_TYPES, VolumeGroupType

    def create(
        self, name: str, *, description: str | None, is_public: bool, group_specs: Mapping[str, str] | None
    ) -> VolumeGroupType:
        made = VolumeGroupType(randomness.new_id(), name, description, is_public, self.clock(), dict(group_specs or {}))
        with conflicts(f'Group Type {name} already exists.'), self.store.write() as connection:
            GROUP_TYPES.insert(connection, vars(made))
        return made

    def change(
        self, context: Context, thing_id: str, change: Callable[[VolumeGroupType], Mapping[str, Any]]
    ) -> VolumeGroupType:
        with conflicts('Another group type has that name.'):
            return super().change(context, thing_id, change)

    def delete(self, context: Context, type_id: str) -> None:
        """Raises Invalid while there are groups of the type."""
        with self._locked(context, type_id) as (connection, _):
            if volume_groups.type_is_used(connection, type_id):
                raise errors.Invalid('Target group type is still in use.')
            GROUP_TYPES.delete(connection, GROUP_TYPES.among([type_id]))


class VolumeGroups(Records[VolumeGroup]):
    table, record = GROUPS, VolumeGroup

    def __init__(
        self, store: Store, clock: Callable[[], datetime], types: VolumeTypes, quotas: VolumeQuotas, filler: Filler
    ):
        super().__init__(store, clock)
        self.types, self.quotas, self.filler = types, quotas, filler
        self.kinds = VolumeGroupTypes(store, clock)

    def create(
        self,
        context: Context,
        group_type: str,
        volume_types: Collection[str],
        *,
        name: str | None = None,
        description: str | None = None,
        availability_zone: str,
    ) -> VolumeGroup:
        project_id, now = project_of(context), self.clock()
        allowed = {self.types.get(context, each).id for each in volume_types}
        facts = {'project_id': project_id, 'user_id': context.user_id, 'name': name, 'description': description}
        facts |= {'status': 'available', 'availability_zone': availability_zone, 'group_type': group_type}
        with self.store.write() as connection:
            group_id = randomness.new_id()
            # Locked, so that nobody deletes them before the group exists.
            GROUP_TYPES.get(connection, context, group_type, lock=True)
            for type_id in sorted(allowed):
                keep_type(connection, type_id)
            self.quotas.take(connection, project_id, groups=1)
            GROUPS.insert(connection, {'id': group_id, **facts, 'created_at': now, 'updated_at': now})
            volume_groups.allow_types(connection, group_id, allowed)
        return self.get(context, group_id)

    def move(self, context: Context, group_id: str, add: Collection[str], remove: Collection[str]) -> None:
        """Change which volumes are in the group; raises Invalid for a volume that cannot join or leave."""
        with self._locked(context, group_id) as (connection, group):
            # Lock order: the group, then its volumes sorted by ID.
            for volume_id in sorted({*add, *remove}):
                VOLUMES.lock(connection, volume_id)
            for volume_id in add:
                volume = Volume(**VOLUMES.get(connection, context, volume_id))
                check_member(group, volume, ready=volume.status in ('available', 'in-use'))
            if strange := set(remove) - set(group.volumes):
                raise errors.Invalid(
                    f'Cannot remove volume {min(strange)} from group {group_id}: it is not in the group.'
                )
            volume_groups.set_members(connection, add, group_id)
            volume_groups.set_members(connection, remove, None)

    def delete(self, context: Context, group_id: str, *, with_volumes: bool = False) -> None:
        """Raises Invalid if there are volumes in the group that are not to be deleted with it, or cannot be."""
        with self._locked(context, group_id) as (connection, group):
            if group.volumes and not with_volumes:
                raise errors.Invalid(f'Group {group_id} is not empty. delete-volumes flag is required to delete it.')
            for volume_id in group.volumes:
                self._delete_volume(connection, context, volume_id)
            GROUPS.delete(connection, GROUPS.among([group_id]))
        self.filler.delete([*group.volumes])

    def _delete_volume(self, connection: sa.Connection, context: Context, volume_id: str) -> None:
        volume = Volume(**VOLUMES.get(connection, context, volume_id, lock=True))
        held = volumes.attachment_statuses(connection, volume_id)
        snapshots, _ = SNAPSHOTS.count(connection, volumes.snapshots_of(volume_id))
        if held or snapshots or volume.status not in ('available', 'error'):
            raise errors.Invalid(f'Volume {volume_id} of the group is in use or has snapshots.')
        VOLUMES.delete(connection, VOLUMES.among([volume_id]))


def check_member(group: VolumeGroup, volume: Volume, *, ready: bool = True) -> None:
    """Raises Invalid if the volume cannot join the group."""
    fits = volume.project_id == group.project_id and volume.volume_type_id in group.volume_types
    if volume.group_id is not None or not ready or not fits:
        raise errors.Invalid(
            f'Cannot add volume {volume.id} to group {group.id}: it must be available or in use, be in no '
            'group, and have a volume type of the group.'
        )
