"""Unified limits: registered (default) limits of resources, and overrides for projects and domains."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from computeapi import errors, randomness
from computeapi.backends.identity.local.managers import Manager, PlainManager
from computeapi.db import catalog as queries
from computeapi.db import identity
from computeapi.db.catalog import Limit, RegisteredLimit
from computeapi.db.engine import repeated

PLACE = ('service_id', 'region_id', 'resource_name')


class RegisteredLimitManager(PlainManager[RegisteredLimit]):
    records = queries.REGISTERED_LIMITS
    noun = 'registered limit'
    parts = {'service_id': queries.SERVICES, 'region_id': queries.REGIONS}
    defaults = {'region_id': '', 'description': ''}

    def create_all(self, several: Sequence[Mapping[str, Any]]) -> list[RegisteredLimit]:
        """Create all of them, or none."""
        with self.change() as connection:
            return [self.insert(connection, **{**self.defaults, **values}) for values in several]

    def update(self, record_id: str, **changes: Any) -> RegisteredLimit:
        with self.change() as connection:
            current = self.require(connection, record_id, lock=True)
            if any(changes.get(name, getattr(current, name)) != getattr(current, name) for name in PLACE):
                self._refuse_used(connection, record_id)
            return self.change_record(connection, current, record_id, changes)

    def delete(self, record_id: str) -> None:
        with self.change() as connection:
            self.require(connection, record_id, lock=True)
            self._refuse_used(connection, record_id)
            self.records.delete(connection, id=record_id)

    def _refuse_used(self, connection: sa.Connection, record_id: str) -> None:
        if queries.LIMITS.find(connection, registered_limit_id=record_id):
            raise errors.Forbidden(f'Registered limit {record_id} is in use by the limit of a project or domain.')


class LimitManager(Manager):
    noun = 'limit'

    def list(self, **values: Any) -> list[Limit]:
        with self.store.read() as connection:
            return queries.find_limits(connection, **values)

    def get(self, limit_id: str) -> Limit:
        found = self.list(id=limit_id)
        if not found:
            raise self.missing(limit_id)
        return found[0]

    @repeated
    def create_all(self, several: Sequence[Mapping[str, Any]]) -> Sequence[Limit]:
        """Create all of them, or none; each is for a project or a domain."""
        with self.change() as connection:
            made = [self._insert(connection, **values) for values in several]
            return [limit for limit_id in made for limit in queries.find_limits(connection, id=limit_id)]

    def update(self, limit_id: str, **changes: Any) -> Limit:
        self.get(limit_id)
        with self.change() as connection:
            queries.LIMITS.update(connection, changes, id=limit_id)
        return self.get(limit_id)

    def delete(self, limit_id: str) -> None:
        with self.change() as connection:
            if not queries.LIMITS.delete(connection, id=limit_id):
                raise self.missing(limit_id)

    def _insert(
        self,
        connection: sa.Connection,
        *,
        resource_limit: int,
        project_id: str | None = None,
        domain_id: str | None = None,
        description: str = '',
        **place: str,
    ) -> str:
        owners = identity.PROJECTS if project_id else identity.DOMAINS
        owner = owners.find(connection, lock=True, id=project_id or domain_id)
        registered = queries.REGISTERED_LIMITS.find(connection, lock=True, **{'region_id': '', **place})
        if owner is None or registered is None:
            raise errors.Invalid('There is no such project or domain, or no registered limit of the resource.')
        limit_id = randomness.new_hex_id()
        values = {'registered_limit_id': registered.id, 'owner_id': owner.id, 'description': description}
        queries.LIMITS.insert(connection, id=limit_id, resource_limit=resource_limit, **values)
        return limit_id
