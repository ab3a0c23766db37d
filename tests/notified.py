"""The notifications that wait to be sent."""

import json
from pathlib import Path

from computeapi.db import notifications

OBJECTS = json.loads((Path(__file__).parent / 'samples/notifications/objects.json').read_text())
"""The version and the fields of each object in Nova 34."""


def taken(store):
    """The notifications since the last call."""
    found = store.query(notifications.NOTIFICATIONS.all, notifications.OLDEST)
    store.change(notifications.delete, found)
    return found


def names(notifications):
    return [each.event_type.removeprefix('instance.') for each in notifications]


def data(notification):
    """The fields of the object in a versioned one."""
    return notification.payload['nova_object.data']


def around(*actions):
    """The names of the notifications about the beginning and the end of these actions."""
    return [f'{action}.{phase}' for action in actions for phase in ('start', 'end')]


def objects(notifications):
    """The version and the fields of each object in versioned ones, by its name."""
    seen = {}
    for each in notifications:
        _remember(each.payload, seen)
    return seen


def _remember(value, seen):
    if isinstance(value, dict):
        if 'nova_object.name' in value:
            assert value['nova_object.namespace'] == 'nova'
            fields = sorted(value['nova_object.data'])
            seen[value['nova_object.name']] = {'version': value['nova_object.version'], 'fields': fields}
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            _remember(each, seen)
