"""The notifications that wait to be sent."""

from computeapi.db import notifications


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
