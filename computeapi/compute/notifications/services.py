"""The notifications about the services of the cloud: versioned ones only, as in Nova."""

from collections.abc import Callable
from datetime import datetime

import sqlalchemy as sa
from oslo_config import cfg

from computeapi.compute.notifications.outbox import VERSIONED, NewNotification, Outbox, are_on
from computeapi.compute.notifications.subject import seconds
from computeapi.compute.notifications.versioned import Object, made
from computeapi.context import Context
from computeapi.db.services import ComputeService

NOVA_VERSION = 74
"""The number with which the services of Nova 34 report what they can do."""


class ServiceNotifications:
    """Writes the notifications about services, in the transaction of what they are about."""

    def __init__(self, conf: cfg.ConfigOpts, clock: Callable[[], datetime]):
        self.outbox = Outbox(conf, clock)

    def add(self, connection: sa.Connection, context: Context, service: ComputeService, action: str) -> None:
        """Notify of what somebody has done (create, update or delete) to the service."""
        if VERSIONED in self.outbox.formats:
            publisher, event_type = f'{service.binary}:{service.host}', f'service.{action}'
            new = NewNotification(context, VERSIONED, publisher, event_type, payload(service))
            self.outbox.add(connection, [new])


def payload(service: ComputeService) -> Object:
    data = {
        'uuid': service.uuid,
        'host': service.host,
        'binary': service.binary,
        'topic': service.binary.removeprefix('nova-'),
        'disabled': service.disabled,
        'disabled_reason': service.disabled_reason,
        'forced_down': service.forced_down,
        'availability_zone': None,
        'last_seen_up': seconds(service.seen_at),
        # The heartbeats are not counted.
        'report_count': 0,
        'version': NOVA_VERSION,
    }
    return made('ServiceStatusPayload', data)


def service_notifications_of(conf: cfg.ConfigOpts, clock: Callable[[], datetime]) -> ServiceNotifications | None:
    """None if they are off."""
    return ServiceNotifications(conf, clock) if are_on(conf) else None
