"""Volume types."""

import builtins
import contextlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi import errors, randomness
from computeapi.backends.volume import VolumeType
from computeapi.context import Context
from computeapi.db import volume_types, volumes
from computeapi.db.engine import Store, conflicts
from computeapi.db.listing import bounded
from computeapi.db.volume_types import TYPES

DEFAULT = '__DEFAULT__'
TAKEN = 'Volume Type {} already exists.'

UNENCRYPTED = {'cipher': None, 'key_size': None, 'control_location': 'front-end'}
"""The defaults of an encryption."""


class VolumeTypes:
    """Volume types; the caller checks who may change them."""

    def __init__(self, store: Store, initial: Mapping[str, Mapping[str, str]], clock: Callable[[], datetime]):
        self.store = store
        self.initial = initial
        self.clock = clock

    def populate(self) -> None:
        """Create the default type and the initial types if they are missing."""
        there = {kind.name for kind in self.list(Context(is_admin=True))}
        for name, extra_specs in {DEFAULT: {}, **self.initial}.items():
            if name not in there:
                # Another process may be creating it at the same moment.
                with contextlib.suppress(errors.Conflict):
                    self.create(name, extra_specs=extra_specs)

    def default(self, project_id: str) -> VolumeType:
        """The type of the project's volumes that name none."""
        try:
            return self.get(Context(is_admin=True), self.defaults(project_id=project_id).get(project_id, DEFAULT))
        except errors.VolumeTypeNotFound:
            self.populate()
            return self.get(Context(is_admin=True), DEFAULT)

    def defaults(self, **where: str) -> dict[str, str]:
        """The default types of projects that have their own."""
        with self.store.read() as connection:
            return volume_types.default_types(connection, **where)

    def set_default(self, project_id: str, type_id: str | None) -> None:
        """None: the project has the default type of all."""
        with self.store.write() as connection:
            if type_id is not None:
                keep_type(connection, type_id)
            volume_types.set_default_type(connection, project_id, type_id)

    def list(
        self,
        context: Context,
        *,
        public: bool | None = None,
        sort: Sequence[tuple[str, str]] = (('name', 'asc'),),
        limit: int | None = None,
        offset: int | None = None,
        marker: str | None = None,
    ) -> list[VolumeType]:
        """The types that the caller may use. public: only public types, or only private ones."""
        where = [TYPES.visible(context), *TYPES.matches({} if public is None else {'is_public': public})]
        page = bounded(limit, marker)
        with self.store.read() as connection:
            found = TYPES.page(connection, context, *where, sort=sort, page=page, offset=offset)
        return [VolumeType(**facts) for facts in found]

    def get(self, context: Context, name_or_id: str) -> VolumeType:
        with self.store.read() as connection:
            return _find(connection, context, name_or_id)

    def create(
        self,
        name: str,
        *,
        description: str | None = None,
        is_public: bool = True,
        extra_specs: Mapping[str, str] | None = None,
    ) -> VolumeType:
        now = self.clock()
        facts = (randomness.new_id(), name, description, is_public, dict(extra_specs or {}))
        kind = VolumeType(*facts, created_at=now, updated_at=now)
        with conflicts(TAKEN.format(name)), self.store.write() as connection:
            TYPES.insert(connection, vars(kind))
        return kind

    def change(self, type_id: str, change: Callable[[VolumeType], Mapping[str, Any]]) -> VolumeType:
        """Apply changes computed from the current type, which stays locked between reading and writing."""
        administrator = Context(is_admin=True)
        with self.store.write() as connection:
            facts = change(VolumeType(**TYPES.get(connection, administrator, type_id, lock=True)))
            with conflicts(TAKEN.format(facts.get('name'))):
                TYPES.update(connection, type_id, {**facts, 'updated_at': self.clock()})
        return self.get(administrator, type_id)

    def delete(self, type_id: str) -> None:
        """Raises Invalid while volumes have the type, and for the default type, also if it is that of a project."""
        with self.store.write() as connection:
            kind = VolumeType(**TYPES.get(connection, Context(is_admin=True), type_id, lock=True))
            if kind.name == DEFAULT or volume_types.default_types(connection, type_id=kind.id):
                raise errors.Invalid(f'The volume type {kind.name} is a default and cannot be deleted.')
            if volume_types.type_is_used(connection, kind.id):
                raise errors.Invalid('Target volume type is still in use.')
            TYPES.delete(connection, TYPES.among([kind.id]))
            volumes.forget_limits_of_type(connection, kind.id)

    def encrypt(self, type_id: str, facts: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Set the encryption of the type's volumes, or remove it; raises Invalid while there are volumes of the type.

        Attributes that are left out stay unchanged.
        """
        with self.store.write() as connection:
            kind = VolumeType(**TYPES.get(connection, Context(is_admin=True), type_id, lock=True))
            if volume_types.type_is_used(connection, kind.id):
                raise errors.Invalid(f'Volume type {kind.id} is in use: its encryption cannot be changed.')
            now, encryption = self.clock(), None
            if facts is not None:
                known = kind.encryption or {**UNENCRYPTED, 'encryption_id': randomness.new_id(), 'created_at': now}
                encryption = {**known, **facts, 'updated_at': now if kind.encryption else None}
                encryption.pop('volume_type_id', None)
            volume_types.set_encryption(connection, kind.id, encryption)
        return self.get(Context(is_admin=True), type_id).encryption

    def projects(self, type_id: str) -> builtins.list[str]:
        """The projects that may use a private type."""
        with self.store.read() as connection:
            return volume_types.type_projects(connection, _private(connection, type_id).id)

    def grant(self, type_id: str, project_id: str) -> None:
        with self.store.write() as connection:
            kind = _private(connection, type_id, lock=True)
            if project_id in volume_types.type_projects(connection, kind.id):
                raise errors.Conflict(f'Project {project_id} already has access to volume type {kind.id}.')
            volume_types.grant_type(connection, kind.id, project_id)

    def revoke(self, type_id: str, project_id: str) -> None:
        with self.store.write() as connection:
            kind = _private(connection, type_id, lock=True)
            if not volume_types.revoke_type(connection, kind.id, project_id):
                raise errors.NotFound(f'Project {project_id} has no access to volume type {kind.id}.')


def _find(connection: sa.Connection, context: Context, name_or_id: str) -> VolumeType:
    """If the name of one type is the ID of another, returns the one with that ID."""
    where = (volume_types.types_named(name_or_id), TYPES.visible(context))
    found = [VolumeType(**facts) for facts in TYPES.select(connection, *where)]
    if not found:
        raise errors.VolumeTypeNotFound(id=name_or_id)
    return next((kind for kind in found if kind.id == name_or_id), found[0])


def keep_type(connection: sa.Connection, type_id: str) -> VolumeType:
    """The type, protected from deletion until the transaction ends."""
    if not volume_types.keep_type(connection, type_id):
        raise errors.VolumeTypeNotFound(id=type_id)
    return VolumeType(**TYPES.get(connection, Context(is_admin=True), type_id))


def _private(connection: sa.Connection, type_id: str, *, lock: bool = False) -> VolumeType:
    kind = VolumeType(**TYPES.get(connection, Context(is_admin=True), type_id, lock=lock))
    if kind.is_public:
        raise errors.NotFound(f'Volume type {kind.id} is public: it has no access list.')
    return kind
