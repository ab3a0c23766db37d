"""Volumes, volume types and availability zones."""

import builtins
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from keystoneauth1.adapter import Adapter
from oslo_utils.uuidutils import is_uuid_like

from computeapi.backends.volume import Volume, VolumeType
from computeapi.backends.volume.cinder.base import CinderBase, Document, act, create, get, pages
from computeapi.backends.volume.cinder.records import WANTED_ID, type_of, volume_of
from computeapi.context import Context
from computeapi.errors import Error, Invalid, SnapshotNotFound, VolumeNotFound, VolumeTypeNotFound

MAX_ITEMS = 1000
REIMAGE = '3.68'


class CinderVolumeLife(CinderBase):
    def get(self, context: Context, volume_id: str) -> Volume:
        with self.client(context, missing_volume(volume_id)) as cinder:
            return volume_of(get(cinder, 'volume', volume_id), context)

    def get_many(self, context: Context, volume_ids: Iterable[str]) -> dict[str, Volume]:
        """One after the other, because Cinder has no query for several."""
        found = {}
        for volume_id in volume_ids:
            try:
                found[volume_id] = self.get(context, volume_id)
            except VolumeNotFound:
                continue
        return found

    def list(self, context: Context) -> builtins.list[Volume]:
        with self.client(context) as cinder:
            found = pages(cinder, '/volumes/detail', 'volumes', limit=MAX_ITEMS)
            return [volume_of(each, context) for each in itertools.islice(found, MAX_ITEMS)]

    def create(
        self,
        context: Context,
        size: int,
        *,
        name: str | None = None,
        description: str | None = None,
        image_id: str | None = None,
        snapshot_id: str | None = None,
        source_volume_id: str | None = None,
        volume_type: str | None = None,
        availability_zone: str | None = None,
        metadata: Mapping[str, str] | None = None,
        volume_id: str | None = None,
    ) -> Volume:
        facts = {
            'name': name,
            'description': description,
            'imageRef': image_id,
            'snapshot_id': snapshot_id,
            'source_volid': source_volume_id,
            'volume_type': volume_type,
            'availability_zone': availability_zone,
            'metadata': dict(metadata or {}) | ({WANTED_ID: volume_id} if volume_id else {}),
        }
        given = {key: value for key, value in facts.items() if value}
        with self.client(context, missing_origin(given)) as cinder:
            made = found_by(cinder, context, volume_id) if volume_id else None
            return volume_of(made or create(cinder, 'volume', {'size': size, **given}), context)

    def delete(self, context: Context, volume_id: str) -> None:
        try:
            self._delete(context, volume_id)
        except VolumeNotFound:
            with self.client(context) as cinder:
                known = found_by(cinder, context, volume_id)
            if known is None:
                raise
            self._delete(context, known['id'])

    def _delete(self, context: Context, volume_id: str) -> None:
        with self.client(context, missing_volume(volume_id)) as cinder:
            cinder.delete(f'/volumes/{volume_id}')

    def reimage(self, context: Context, volume_id: str, image_id: str) -> None:
        facts = {'image_id': image_id, 'reimage_reserved': True}
        with self.client(context, missing_volume(volume_id)) as cinder:
            act(cinder, 'volume', volume_id, 'os-reimage', facts, microversion=REIMAGE)

    def swap(self, context: Context, old_volume_id: str, new_volume_id: str, *, failed: bool = False) -> str:
        facts = {'new_volume': new_volume_id, 'error': failed}
        try:
            with self.client(context, missing_volume(old_volume_id)) as cinder:
                answer = act(cinder, 'volume', old_volume_id, 'os-migrate_volume_completion', facts)
        except Invalid:
            # Once the new volume has taken the old one's place and ID, its own record is deleted.
            if failed or self._is_there(context, new_volume_id):
                raise
            return old_volume_id
        return str(answer['save_volume_id'])

    def _is_there(self, context: Context, volume_id: str) -> bool:
        try:
            return self.get(context, volume_id).status != 'deleting'
        except VolumeNotFound:
            return False

    def availability_zones(self, context: Context) -> builtins.list[str]:
        with self.client(context) as cinder:
            zones = cinder.get('/os-availability-zone').json()['availabilityZoneInfo']
        return [zone['zoneName'] for zone in zones if zone['zoneState']['available']]

    def volume_type(self, context: Context, name_or_id: str) -> VolumeType:
        """No type has a name that is the ID of another one."""
        with self.client(context) as cinder:
            for each in pages(cinder, '/types', 'volume_types', is_public='None'):
                if name_or_id in (each['id'], each['name']):
                    return type_of(each)
        raise VolumeTypeNotFound(id=name_or_id)


def found_by(cinder: Adapter, context: Context, wanted_id: str) -> Document | None:
    """The volume of the caller's project for which compute wanted this ID; None if there is none."""
    wanted = {'metadata': str({WANTED_ID: wanted_id}), **of_project(context)}
    known = pages(cinder, '/volumes/detail', 'volumes', **wanted)
    return next(iter(known), None)


def of_project(context: Context) -> dict[str, Any]:
    """The filters for a list of the caller's project: an administrator acts for a project without being a member."""
    return {'all_tenants': True, 'project_id': context.project_id} if context.is_admin else {}


def missing_volume(volume_id: str) -> Callable[[str], Error]:
    """The error for a missing volume; raised at once for anything but a UUID, which must not get into a URL."""
    if not is_uuid_like(volume_id):
        raise VolumeNotFound(id=volume_id)
    return lambda words: VolumeNotFound(id=volume_id)


def missing_origin(given: Mapping[str, Any]) -> Callable[[str], Error]:
    """The error for a 404 when a volume is created: about the source or type that Cinder's message names."""
    kinds = {
        'snapshot_id': SnapshotNotFound,
        'source_volid': VolumeNotFound,
        'volume_type': VolumeTypeNotFound,
    }

    def missing(words: str) -> Error:
        for name, kind in kinds.items():
            if name in given and given[name] in words:
                return kind(id=given[name])
        return VolumeTypeNotFound(id=given.get('volume_type', ''))

    return missing
