"""APIs for other services: /os-server-external-events, /os-assisted-volume-snapshots."""

import json
from typing import Any

from computeapi.api.controller import ComputeController
from computeapi.api.types import INTEGER, NULLABLE_STRING, STRING, TEXT, UUID
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
from computeapi.errors import Invalid
from computeapi.versions import added
from computeapi.web.contract import SERVICE_OR_ADMIN, Policy
from computeapi.web.controller import operation
from computeapi.web.request import Reply, Request
from computeapi.web.schemas import array, closed, lone, one_of, query, whole

CREATE = Policy('os_compute_api:os-server-external-events:create', SERVICE_OR_ADMIN, 'Report external events')

# ------------------------------------------------------------------ requests

EVENT_NAMES = one_of(
    *NETWORK,
    added('2.51', VOLUME_EXTENDED),
    added('2.76', POWER_UPDATE),
    added('2.82', ACCELERATOR_BOUND),
    added('2.93', VOLUME_REIMAGED),
)
FACTS = {
    'name': EVENT_NAMES,
    'server_uuid': UUID,
    'status': one_of(FAILED, COMPLETED, 'in-progress'),
    'tag': TEXT,
}
CREATE_BODY = lone('events', array(closed(FACTS, required=['name', 'server_uuid'])) | {'minItems': 1})

# ------------------------------------------------------------------ responses

CODES = {Outcome.ACCEPTED: 200, Outcome.UNTAGGED: 400, Outcome.UNKNOWN: 404, Outcome.HOMELESS: 422}
EVENT = closed(
    {
        'server_uuid': STRING,
        'name': EVENT_NAMES,
        'status': STRING,
        'tag': STRING,
        'code': INTEGER,
    },
    required=['server_uuid', 'name', 'status', 'code'],
)


class ServerExternalEvents(ComputeController):
    """Events that other services report about the ports, volumes and machines of servers."""

    path = '/os-server-external-events'

    @operation('POST', policy=CREATE, body=CREATE_BODY, response={'events': array(EVENT)}, successes=(207,))
    def create(self, req: Request, body: Any) -> Reply:
        """Report external events; 207 if not all of them could be handled."""
        reported = body['events']
        events = [
            Event(each['name'], each['server_uuid'], each.get('tag'), each.get('status', COMPLETED))
            for each in reported
        ]
        outcomes = self.cloud.external_events.take(req.context, events)
        answers = [answer(each, outcome) for each, outcome in zip(reported, outcomes, strict=True)]
        everything = all(outcome is Outcome.ACCEPTED for outcome in outcomes)
        return Reply({'events': answers}, status=200 if everything else 207)


def answer(event: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
    """The event as it was sent, with the outcome in place of its own status."""
    return event | {'status': COMPLETED if outcome is Outcome.ACCEPTED else FAILED, 'code': CODES[outcome]}


# ------------------------------------------------------------------ snapshots

CREATE_SNAPSHOT = Policy(
    'os_compute_api:os-assisted-volume-snapshots:create', SERVICE_OR_ADMIN, 'Create a snapshot of an attached volume'
)
DELETE_SNAPSHOT = Policy(
    'os_compute_api:os-assisted-volume-snapshots:delete', SERVICE_OR_ADMIN, 'Delete a snapshot of an attached volume'
)

NEEDED = {'type': 'string', 'minLength': 1}
CREATE_INFO = closed(
    {
        'snapshot_id': NEEDED,
        'type': one_of('qcow2'),
        'new_file': NEEDED,
        'id': NEEDED,
    },
    required=['snapshot_id', 'type', 'new_file'],
)
SNAPSHOT_BODY = lone('snapshot', whole({'volume_id': NEEDED, 'create_info': CREATE_INFO}))
DELETE_QUERY = query({'delete_info': STRING}, strict='2.75')
SNAPSHOT = whole({'id': NULLABLE_STRING, 'volumeId': STRING})


class AssistedVolumeSnapshots(ComputeController):
    """Volume snapshots that the hypervisor takes on behalf of the volume service."""

    path = '/os-assisted-volume-snapshots'
    any_name = True

    @operation('POST', policy=CREATE_SNAPSHOT, body=SNAPSHOT_BODY, response={'snapshot': SNAPSHOT})
    def create(self, req: Request, body: Any) -> dict[str, Any]:
        """Create a snapshot of an attached volume."""
        wanted = body['snapshot']
        info = wanted['create_info']
        self.cloud.assisted_snapshots.create(req.context, wanted['volume_id'], info)
        return {'snapshot': {'id': info.get('id'), 'volumeId': wanted['volume_id']}}

    @operation('DELETE', '/{id}', policy=DELETE_SNAPSHOT, query=DELETE_QUERY, status=204)
    def delete(self, req: Request, id: str) -> None:
        """Delete a snapshot of an attached volume."""
        info = delete_info(req)
        self.cloud.assisted_snapshots.delete(req.context, info['volume_id'], id, info)


def delete_info(req: Request) -> dict[str, Any]:
    """The parameter of the query: a JSON object that names the volume."""
    text = req.parameter('delete_info')
    if text is None:
        raise Invalid("'delete_info'")
    try:
        info = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(str(error)) from None
    if not isinstance(info, dict) or not isinstance(info.get('volume_id'), str):
        raise Invalid("'volume_id'")
    return info
