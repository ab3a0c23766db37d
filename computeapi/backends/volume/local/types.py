"""Kinds of volumes."""

import builtins
import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi import errors
from computeapi.backends.volume import VolumeType
from computeapi.context import Context
from computeapi.db import volumes
from computeapi.db.engine import Store
from computeapi.db.volumes import TYPES

DEFAULT = '__DEFAULT__'


class VolumeTypes:
    """Volume types; who may change them is for the caller to check."""

    def __init__(self, store: Store, initial: Mapping[str, Mapping[str, str]], clock: Callable[[], datetime]):
        self.store = store
        self.initial = initial
        self.clock = clock

    def populate(self) -> None:
        """Make the default type and the initial ones, as far as they are missing."""
        there = {kind.name for kind in self.list(Context(is_admin=True))}
        for name, extra_specs in {DEFAULT: {}, **self.initial}.items():
            if name not in there:
                # Another process may be making it at this moment.
                with contextlib.suppress(errors.Conflict):
                    self.create(name, extra_specs=extra_specs)

    def default(self) -> VolumeType:
        """The type of a volume that names none."""
        try:
            return self.get(Context(is_admin=True), DEFAULT)
        except errors.VolumeTypeNotFound:
            self.populate()
            return self.get(Context(is_admin=True), DEFAULT)

    def list(self, context: Context, *, public: bool | None = None) -> list[VolumeType]:
        """The types that the caller may use, by name; `public` leaves only those that are, or that are not."""
        where = [TYPES.visible(context), *TYPES.matches({} if public is None else {'is_public': public})]
        with self.store.read() as connection:
            return [VolumeType(**facts) for facts in TYPES.select(connection, *where)]

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
        kind = VolumeType(str(uuid.uuid4()), name, description, is_public, dict(extra_specs or {}), now, now)
        with _unique(name), self.store.write() as connection:
            TYPES.insert(connection, vars(kind))
        return kind

    def change(self, type_id: str, change: Callable[[VolumeType], Mapping[str, Any]]) -> VolumeType:
        """Change facts that depend on the type as it is: nothing comes between reading and writing."""
        administrator = Context(is_admin=True)
        with self.store.write() as connection:
            facts = change(VolumeType(**TYPES.get(connection, administrator, type_id, lock=True)))
            with _unique(facts.get('name')):
                TYPES.update(connection, type_id, {**facts, 'updated_at': self.clock()})
        return self.get(administrator, type_id)

    def delete(self, type_id: str) -> None:
        """Invalid while volumes have the type, and for the default type."""
        with self.store.write() as connection:
            kind = VolumeType(**TYPES.get(connection, Context(is_admin=True), type_id, lock=True))
            if kind.name == DEFAULT:
                raise errors.Invalid(f'The volume type {DEFAULT} is the default and cannot be deleted.')
            if volumes.type_is_used(connection, kind.id):
                raise errors.Invalid('Target volume type is still in use.')
            TYPES.delete(connection, TYPES.among([kind.id]))

    def projects(self, type_id: str) -> builtins.list[str]:
        """Who may use a private type."""
        with self.store.read() as connection:
            return volumes.type_projects(connection, _private(connection, type_id).id)

    def grant(self, type_id: str, project_id: str) -> None:
        with self.store.write() as connection:
            kind = _private(connection, type_id, lock=True)
            if project_id in volumes.type_projects(connection, kind.id):
                raise errors.Conflict(f'Project {project_id} may use volume type {kind.id} already.')
            volumes.grant_type(connection, kind.id, project_id)

    def revoke(self, type_id: str, project_id: str) -> None:
        with self.store.write() as connection:
            kind = _private(connection, type_id, lock=True)
            if not volumes.revoke_type(connection, kind.id, project_id):
                raise errors.NotFound(f'Project {project_id} may not use volume type {kind.id} anyway.')


def _find(connection: sa.Connection, context: Context, name_or_id: str) -> VolumeType:
    """A name that is another type's id yields the one with that id."""
    where = (volumes.types_named(name_or_id), TYPES.visible(context))
    found = [VolumeType(**facts) for facts in TYPES.select(connection, *where)]
    if not found:
        raise errors.VolumeTypeNotFound(id=name_or_id)
    return next((kind for kind in found if kind.id == name_or_id), found[0])


def _private(connection: sa.Connection, type_id: str, *, lock: bool = False) -> VolumeType:
    kind = VolumeType(**TYPES.get(connection, Context(is_admin=True), type_id, lock=lock))
    if kind.is_public:
        raise errors.NotFound(f'Volume type {kind.id} is public: it has no list of projects.')
    return kind


@contextlib.contextmanager
def _unique(name: str | None) -> Iterator[None]:
    try:
        yield
    except sa.exc.IntegrityError:
        raise errors.Conflict(f'Volume Type {name} already exists.') from None
