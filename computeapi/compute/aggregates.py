"""Host aggregates: groups of hosts with metadata, used for availability zones and by the scheduler."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from computeapi import randomness
from computeapi.backends.image import Images
from computeapi.compute.notifications.aggregates import of_change, of_creation, of_update
from computeapi.compute.notifications.outbox import Outbox
from computeapi.context import Context
from computeapi.db import aggregates, hypervisors
from computeapi.db.aggregates import ZONE, Aggregate
from computeapi.db.engine import Store, conflicts
from computeapi.errors import AggregateNotFound, ComputeHostNotFound, Conflict, Invalid, NotFound

TAKEN = 'Aggregate {} already exists.'


class AggregateManager:
    """Errors: AggregateNotFound, ComputeHostNotFound, Conflict, Invalid."""

    def __init__(self, store: Store, outbox: Outbox, images: Images):
        self.store, self.outbox, self.images, self.clock = store, outbox, images, store.clock

    def all(self) -> list[Aggregate]:
        return self.store.query(aggregates.select)

    def get(self, aggregate_id: int) -> Aggregate:
        return self.store.query(self._get, aggregate_id)

    def _get(self, connection: sa.Connection, aggregate_id: int) -> Aggregate:
        found = aggregates.get(connection, aggregate_id)
        if found is None:
            raise AggregateNotFound(id=aggregate_id)
        return found

    @contextmanager
    def _alone(self) -> Iterator[sa.Connection]:
        """A transaction that locks all aggregates, because the zone of a host depends on all of them."""
        with self.store.write() as connection:
            aggregates.lock(connection)
            yield connection

    @contextmanager
    def _changing(self, aggregate_id: int) -> Iterator[tuple[sa.Connection, Aggregate]]:
        """The same, with the aggregate to change."""
        with self._alone() as connection:
            yield connection, self._get(connection, aggregate_id)

    def create(self, context: Context, name: str, zone: str | None) -> Aggregate:
        with conflicts(TAKEN.format(name)), self.store.write() as connection:
            metadata = {} if zone is None else {ZONE: zone}
            values = {'uuid': randomness.new_id(), 'name': name, 'metadata': metadata, 'created_at': self.clock()}
            created = self._get(connection, aggregates.insert(connection, values))
            self.outbox.add(connection, context, of_creation(created))
            return created

    def update(self, context: Context, aggregate_id: int, changes: Mapping[str, Any]) -> Aggregate:
        """Change the name, the zone, or both."""
        with self._changing(aggregate_id) as (connection, aggregate):
            values: dict[str, Any] = {}
            if 'name' in changes and changes['name'] != aggregate.name:
                values = {'name': changes['name'], 'updated_at': self.clock()}
            if ZONE in changes:
                values['metadata'] = _merged(connection, aggregate, {ZONE: changes[ZONE]}, 'update')
            with conflicts(TAKEN.format(changes.get('name'))):
                aggregates.update(connection, aggregate_id, values)
            updated = self._get(connection, aggregate_id)
            self.outbox.add(connection, context, of_update(changes, aggregate, updated))
            return self._dated(updated) if 'metadata' in values else updated

    def set_metadata(self, context: Context, aggregate_id: int, metadata: Mapping[str, str | None]) -> Aggregate:
        """Update the metadata; None removes a key."""
        with self._changing(aggregate_id) as (connection, aggregate):
            merged = _merged(connection, aggregate, metadata, 'update metadata of')
            aggregates.update(connection, aggregate_id, {'metadata': merged})
            updated = self._get(connection, aggregate_id)
            self.outbox.add(
                connection, context, of_change('update_metadata', aggregate, updated, meta_data=dict(metadata))
            )
            return self._dated(updated)

    def _dated(self, aggregate: Aggregate) -> Aggregate:
        """A change of metadata sets updated_at in its answer only; a new name also stores it."""
        return replace(aggregate, updated_at=self.clock())

    def delete(self, context: Context, aggregate_id: int) -> None:
        with self._changing(aggregate_id) as (connection, aggregate):
            if aggregate.hosts:
                raise Invalid(f'Cannot remove host from aggregate {aggregate_id}. Reason: Host aggregate is not empty.')
            aggregates.delete(connection, aggregate_id)
            self.outbox.add(connection, context, of_change('delete', aggregate, aggregate))

    def add_host(self, context: Context, aggregate_id: int, host: str) -> Aggregate:
        with self._alone() as connection:
            if not hypervisors.exists(connection, host, None):
                raise ComputeHostNotFound(host=host)
            aggregate = self._get(connection, aggregate_id)
            if host in aggregate.hosts:
                raise Conflict(f'Aggregate {aggregate_id} already has host {host}.')
            zone = aggregate.availability_zone
            if reason := _clash(connection, aggregate, zone, [host]) or _shift(connection, aggregate, host):
                raise Conflict(f'Cannot add host to aggregate {aggregate_id}. Reason: {reason}')
            aggregates.add_host(connection, aggregate_id, host)
            grown = self._get(connection, aggregate_id)
            self.outbox.add(connection, context, of_change('add_host', aggregate, grown, host_name=host))
            return grown

    def remove_host(self, context: Context, aggregate_id: int, host: str) -> Aggregate:
        with self._alone() as connection:
            aggregate = aggregates.get(connection, aggregate_id)
            if aggregate is None or host not in aggregate.hosts:
                raise NotFound(f'Cannot remove host {host} in aggregate {aggregate_id}')
            if reason := _shift(connection, aggregate, host):
                raise Conflict(f'Cannot remove host from aggregate {aggregate_id}. Reason: {reason}')
            aggregates.remove_host(connection, aggregate_id, host)
            shrunk = self._get(connection, aggregate_id)
            self.outbox.add(connection, context, of_change('remove_host', aggregate, shrunk, host_name=host))
            return shrunk

    def cache_images(self, context: Context, aggregate_id: int, image_ids: list[str]) -> None:
        """Cache images on the hosts of the aggregate. The simulated hosts copy nothing and are always ready."""
        self.get(aggregate_id)
        known = self.images.get_many(context, image_ids)
        for image_id in image_ids:
            if image_id not in known:
                raise Invalid(f'Image {image_id} could not be found.')


def _merged(
    connection: sa.Connection, aggregate: Aggregate, changes: Mapping[str, str | None], what: str
) -> dict[str, str]:
    """The metadata with these changes; Invalid, with *what* in its message, for a zone that is not allowed."""
    if ZONE in changes and (reason := _zone_problem(connection, aggregate, changes[ZONE])):
        raise Invalid(f'Cannot {what} aggregate {aggregate.id}. Reason: {reason}')
    merged = {**aggregate.metadata, **changes}
    return {key: value for key, value in merged.items() if value is not None}


# ------------------------------------------------------------------ why not


def _zone_problem(connection: sa.Connection, aggregate: Aggregate, zone: str | None) -> str | None:
    """Why the aggregate cannot be in that zone; None if it can."""
    if not zone:
        return f'Aggregate {aggregate.name} does not support empty named availability zone.'
    if reason := _clash(connection, aggregate, zone, aggregate.hosts):
        return reason
    if aggregate.availability_zone != zone and aggregates.hosts_with_servers(connection, aggregate.hosts):
        return 'One or more hosts contain instances in this zone.'
    return None


def _clash(connection: sa.Connection, aggregate: Aggregate, zone: str | None, hosts: list[str]) -> str | None:
    """Why these hosts cannot be in the zone, if another aggregate puts one of them in a different zone."""
    others = sorted(_zones_beside(connection, aggregate, hosts) - {zone})
    return f'One or more hosts already in availability zone(s) {others}.' if zone and others else None


def _shift(connection: sa.Connection, aggregate: Aggregate, host: str) -> str | None:
    """Why the host cannot be added or removed, if servers on it would change their zone."""
    zone = aggregate.availability_zone
    if zone is None or zone in _zones_beside(connection, aggregate, [host]):
        return None
    there = aggregates.hosts_with_servers(connection, [host])
    return f'The servers on {host} would be in another availability zone.' if there else None


def _zones_beside(connection: sa.Connection, aggregate: Aggregate, hosts: list[str]) -> set[str]:
    """The zones that other aggregates put any of these hosts in."""
    others = (
        each for each in aggregates.select(connection) if each.id != aggregate.id and set(each.hosts) & set(hosts)
    )
    return {each.availability_zone for each in others if each.availability_zone}
