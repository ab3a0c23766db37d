"""The notifications about host aggregates."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from computeapi.compute.notifications.outbox import UNVERSIONED, VERSIONED, NewNotification
from computeapi.compute.notifications.versioned import Object, made
from computeapi.db.aggregates import ZONE, Aggregate


def of_creation(aggregate: Aggregate) -> Iterator[NewNotification]:
    """The beginning of the creation, when Nova does not know all of the aggregate, and its end."""
    begun = {'id': None, 'hosts': None, 'metadata': aggregate.metadata or None}
    named = {'name': aggregate.name} | ({'meta_data': aggregate.metadata} if aggregate.metadata else {})
    yield from _of_phase('create.start', aggregate.name, named, partial(payload, aggregate, **begun))
    numbered = named | {'aggregate_id': aggregate.id}
    yield from _of_phase('create.end', str(aggregate.id), numbered, partial(payload, aggregate))


def of_change(action: str, before: Aggregate, after: Aggregate, **facts: Any) -> Iterator[NewNotification]:
    """The beginning and the end of an action. facts: what unversioned notifications contain besides the ID."""
    flat = {'aggregate_id': after.id} | facts
    named = {'name': after.name} if action == 'add_host' else {}
    yield from _of_phase(f'{action}.start', str(after.id), flat, partial(payload, before))
    yield from _of_phase(f'{action}.end', str(after.id), flat | named, partial(payload, after))


def of_update(changes: Mapping[str, Any], before: Aggregate, after: Aggregate) -> Iterator[NewNotification]:
    """For Nova, a name and a zone are two actions, and a name changes before its action begins."""
    renamed = replace(before, name=after.name)
    if 'name' in changes:
        yield from of_change('update_prop', renamed, renamed)
    if ZONE in changes:
        yield from of_change('update_metadata', renamed, after, meta_data={ZONE: changes[ZONE]})


def _of_phase(
    event: str, publisher: str, flat: Mapping[str, Any], versioned: partial[Object]
) -> Iterator[NewNotification]:
    unversioned_type = f'aggregate.{event.replace("_", "")}'
    yield NewNotification(UNVERSIONED, unversioned_type, lambda: dict(flat), source='aggregate', host=publisher)
    yield NewNotification(VERSIONED, f'aggregate.{event}', versioned)


def payload(aggregate: Aggregate, **other: Any) -> Object:
    """other: fields with another value than that of the aggregate."""
    names = ('id', 'uuid', 'name', 'hosts', 'metadata')
    return made('AggregatePayload', {name: getattr(aggregate, name) for name in names} | other)
