"""Host aggregates: groups of hosts with metadata that zones and the scheduler go by."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from computeapi.backends.image import Images
from computeapi.clock import utcnow
from computeapi.context import Context
from computeapi.db import aggregates as rows
from computeapi.db import hypervisors
from computeapi.db.aggregates import ZONE, Aggregate
from computeapi.db.engine import Store
from computeapi.errors import AggregateNotFound, ComputeHostNotFound, Conflict, Invalid, NotFound


class AggregateManager:
    """Errors: AggregateNotFound, ComputeHostNotFound, Conflict, Invalid."""

    def __init__(self, store: Store, images: Images, clock: Callable[[], datetime] = utcnow):
        self.store, self.images, self.clock = store, images, clock

    def all(self) -> list[Aggregate]:
        return self.store.ask(rows.select)

    def get(self, aggregate_id: int) -> Aggregate:
        return self.store.ask(self._get, aggregate_id)

    def _get(self, connection: sa.Connection, aggregate_id: int, lock: bool = False) -> Aggregate:
        found = rows.get(connection, aggregate_id, lock=lock)
        if found is None:
            raise AggregateNotFound(id=aggregate_id)
        return found

    @contextmanager
    def _changing(self, aggregate_id: int) -> Iterator[tuple[sa.Connection, Aggregate]]:
        """A transaction in which nobody else changes the aggregate."""
        with self.store.write() as connection:
            yield connection, self._get(connection, aggregate_id, lock=True)

    def create(self, name: str, zone: str | None) -> Aggregate:
        with self.store.write() as connection:
            self._check_name(connection, name)
            metadata = {} if zone is None else {ZONE: zone}
            values = {'uuid': str(uuid.uuid4()), 'name': name, 'metadata': metadata, 'created_at': self.clock()}
            return self._get(connection, rows.insert(connection, values))

    def update(self, aggregate_id: int, changes: Mapping[str, Any]) -> Aggregate:
        """Change the name, the zone, or both."""
        with self._changing(aggregate_id) as (connection, aggregate):
            values = {}
            if 'name' in changes and changes['name'] != aggregate.name:
                self._check_name(connection, changes['name'])
                values['name'] = changes['name']
            if ZONE in changes:
                values['metadata'] = self._merged(connection, aggregate, {ZONE: changes[ZONE]})
            rows.update(connection, aggregate_id, values)
            updated = self._get(connection, aggregate_id)
            return self._dated(updated) if 'metadata' in values else updated

    def set_metadata(self, aggregate_id: int, metadata: Mapping[str, str | None]) -> Aggregate:
        """Add to the metadata; None takes a key away."""
        with self._changing(aggregate_id) as (connection, aggregate):
            merged = self._merged(connection, aggregate, metadata)
            rows.update(connection, aggregate_id, {'metadata': merged})
            return self._dated(self._get(connection, aggregate_id))

    def _dated(self, aggregate: Aggregate) -> Aggregate:
        """Clients know the moment of a change from the answer to it, and an aggregate that is read as never dated."""
        return replace(aggregate, updated_at=self.clock())

    def delete(self, aggregate_id: int) -> None:
        with self._changing(aggregate_id) as (connection, aggregate):
            if aggregate.hosts:
                raise Invalid(f'Cannot remove host from aggregate {aggregate_id}. Reason: Host aggregate is not empty.')
            rows.delete(connection, aggregate_id)

    def add_host(self, aggregate_id: int, host: str) -> Aggregate:
        with self.store.write() as connection:
            if not hypervisors.exists(connection, host, None):
                raise ComputeHostNotFound(host=host)
            aggregate = self._get(connection, aggregate_id, lock=True)
            if host in aggregate.hosts:
                raise Conflict(f'Aggregate {aggregate_id} already has host {host}.')
            self._check_zone(connection, aggregate, aggregate.availability_zone, [host], 'add host to')
            rows.add_host(connection, aggregate_id, host)
            return self._get(connection, aggregate_id)

    def remove_host(self, aggregate_id: int, host: str) -> Aggregate:
        with self.store.write() as connection:
            aggregate = rows.get(connection, aggregate_id, lock=True)
            if aggregate is None or host not in aggregate.hosts:
                raise NotFound(f'Cannot remove host {host} in aggregate {aggregate_id}')
            if aggregate.availability_zone and rows.hosts_with_servers(connection, [host]):
                raise Conflict(
                    f'Cannot remove host from aggregate {aggregate_id}. Reason: One or more hosts contain instances '
                    'in this zone.'
                )
            rows.remove_host(connection, aggregate_id, host)
            return self._get(connection, aggregate_id)

    def cache_images(self, context: Context, aggregate_id: int, image_ids: list[str]) -> None:
        """Have images ready on the hosts of the aggregate. The simulated hosts copy nothing and are always ready."""
        self.get(aggregate_id)
        known = self.images.get_many(context, image_ids)
        for image_id in image_ids:
            if image_id not in known:
                raise Invalid(f'Image {image_id} could not be found.')

    def _check_name(self, connection: sa.Connection, name: str) -> None:
        if rows.is_taken(connection, name):
            raise Conflict(f'Aggregate {name} already exists.')

    def _merged(
        self, connection: sa.Connection, aggregate: Aggregate, changes: Mapping[str, str | None]
    ) -> dict[str, str]:
        if ZONE in changes:
            zone = changes[ZONE]
            if not zone:
                raise Invalid(
                    f'Cannot update metadata of aggregate {aggregate.id}. Reason: Aggregate {aggregate.name} does '
                    'not support empty named availability zone.'
                )
            self._check_zone(connection, aggregate, zone, aggregate.hosts, 'update metadata of')
        merged = {**aggregate.metadata, **changes}
        return {key: value for key, value in merged.items() if value is not None}

    def _check_zone(
        self, connection: sa.Connection, aggregate: Aggregate, zone: str | None, names: list[str], what: str
    ) -> None:
        """A host is in one zone, and servers do not change theirs with it."""
        if zone is None or not names:
            return
        for other in rows.select(connection):
            shared = other.id != aggregate.id and set(other.hosts) & set(names)
            if shared and other.availability_zone not in (None, zone):
                raise Conflict(
                    f'Cannot {what} aggregate {aggregate.id}. Reason: One or more hosts already in availability '
                    f"zone(s) ['{other.availability_zone}']."
                )
        if aggregate.availability_zone != zone and rows.hosts_with_servers(connection, names):
            raise Conflict(
                f'Cannot {what} aggregate {aggregate.id}. Reason: One or more hosts contain instances in this zone.'
            )
