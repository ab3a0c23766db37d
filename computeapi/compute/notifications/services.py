"""The notifications about the services of the cloud: versioned ones only, as in Nova."""

from collections.abc import Iterator

from computeapi.compute.notifications.outbox import VERSIONED, NewNotification
from computeapi.compute.notifications.subject import seconds
from computeapi.compute.notifications.versioned import Object, made
from computeapi.db.services import ComputeService

NOVA_VERSION = 74
"""The number with which the services of Nova 34 report what they can do."""


def of_service(service: ComputeService, action: str) -> Iterator[NewNotification]:
    """What somebody has done (create, update or delete) to the service."""
    topic = service.binary.removeprefix('nova-')
    yield NewNotification(
        VERSIONED, f'service.{action}', lambda: payload(service, topic), source=topic, host=service.host
    )


def payload(service: ComputeService, topic: str) -> Object:
    data = {
        'uuid': service.uuid,
        'host': service.host,
        'binary': service.binary,
        'topic': topic,
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
