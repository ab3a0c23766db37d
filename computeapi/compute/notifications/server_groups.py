"""The notifications about server groups."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import sqlalchemy as sa

from computeapi.compute.notifications.outbox import UNVERSIONED, VERSIONED, NewNotification
from computeapi.compute.notifications.versioned import Object, made
from computeapi.db import server_groups
from computeapi.db.server_groups import ServerGroup


def of_creation(group: ServerGroup) -> Iterator[NewNotification]:
    names = ('name', 'project_id', 'user_id', 'policy')
    yield from _of_group(group, 'create', **{name: getattr(group, name) for name in names})


def of_deletion(group: ServerGroup) -> Iterator[NewNotification]:
    yield from _of_group(group, 'delete')


def of_members(connection: sa.Connection, group_id: str, new: Sequence[str]) -> Iterator[NewNotification]:
    """New servers have become members. They are in one notification, because each one lists all members."""
    group = server_groups.get(connection, group_id)
    if group is not None:
        yield from _of_group(group, 'add_member', instance_uuids=list(new))


def _of_group(group: ServerGroup, action: str, **facts: Any) -> Iterator[NewNotification]:
    """facts: what unversioned notifications contain besides the ID."""
    flat = {'server_group_id': group.uuid} | facts
    event_type = f'servergroup.{action.replace("_", "")}'
    yield NewNotification(UNVERSIONED, event_type, lambda: flat, source='servergroup')
    yield NewNotification(VERSIONED, f'server_group.{action}', partial(payload, group))


def payload(group: ServerGroup) -> Object:
    data = {name: getattr(group, name) for name in ('uuid', 'name', 'user_id', 'project_id', 'policy')}
    data |= {'members': list(group.members), 'rules': {name: str(value) for name, value in group.rules.items()}}
    # Nova keeps the former list of policies, and does not look up the hosts.
    return made('ServerGroupPayload', data | {'policies': [group.policy], 'hosts': None})
