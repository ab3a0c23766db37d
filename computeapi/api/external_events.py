"""/os-server-external-events: other services tell what happened to what servers stand on."""

from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.types import INTEGER, STRING, TEXT, UUID
from computeapi.compute.servers.events import (
    ACCELERATOR_BOUND,
    COMPLETED,
    FAILED,
    NETWORK,
    POWER_UPDATE,
    VOLUME_EXTENDED,
    VOLUME_REIMAGED,
    Event,
    Outcome,
)
from computeapi.versions import changed
from computeapi.web.contract import SERVICE_OR_ADMIN, Policy, array, closed
from computeapi.web.controller import operation
from computeapi.web.request import Reply, Request

CREATE = Policy('os_compute_api:os-server-external-events:create', SERVICE_OR_ADMIN, 'Tell of external events')

# ------------------------------------------------------------------ requests

NAMES = changed(
    {
        '2.1': [*NETWORK],
        '2.51': [*NETWORK, VOLUME_EXTENDED],
        '2.76': [*NETWORK, VOLUME_EXTENDED, POWER_UPDATE],
        '2.82': [*NETWORK, VOLUME_EXTENDED, POWER_UPDATE, ACCELERATOR_BOUND],
        '2.93': [*NETWORK, VOLUME_EXTENDED, POWER_UPDATE, ACCELERATOR_BOUND, VOLUME_REIMAGED],
    }
)
FACTS = {
    'server_uuid': UUID,
    'name': {'type': 'string', 'enum': NAMES},
    'status': {'type': 'string', 'enum': [FAILED, COMPLETED, 'in-progress']},
    'tag': TEXT,
}
CREATE_BODY = closed(
    {'events': array(closed(FACTS, required=['server_uuid', 'name'])) | {'minItems': 1}},
    required=['events'],
)

# ------------------------------------------------------------------ answers

CODES = {Outcome.ACCEPTED: 200, Outcome.UNTAGGED: 400, Outcome.UNKNOWN: 404, Outcome.HOMELESS: 422}
TOLD = closed(
    {
        'server_uuid': STRING,
        'name': {'type': 'string', 'enum': NAMES},
        'status': STRING,
        'tag': STRING,
        'code': INTEGER,
    },
    required=['server_uuid', 'name', 'status', 'code'],
)


class ServerExternalEvents(ComputeController):
    """What happened to what servers stand on."""

    path = '/os-server-external-events'

    @operation('POST', policy=CREATE, body=CREATE_BODY, response={'events': array(TOLD)}, successes=(207,))
    def create(self, req: Request, body: Any) -> Reply:
        """Tell of events; 207 when not all of them could be acted on."""
        told = body['events']
        events = [
            Event(each['name'], each['server_uuid'], each.get('tag'), each.get('status', COMPLETED)) for each in told
        ]
        outcomes = self.cloud.external_events.take(req.context, events)
        answers = [answer(each, outcome) for each, outcome in zip(told, outcomes, strict=True)]
        everything = all(outcome is Outcome.ACCEPTED for outcome in outcomes)
        return Reply({'events': answers}, status=200 if everything else 207)


def answer(told: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    status = told.get('status', COMPLETED) if outcome is Outcome.ACCEPTED else FAILED
    return told | {'status': status, 'code': CODES[outcome]}
