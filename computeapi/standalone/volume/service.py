"""Common parts of the volume resources: the API versions, the app and its errors."""

import re
from collections.abc import Callable
from typing import Any

from computeapi import errors
from computeapi.backends.volume.local import LocalVolumes
from computeapi.context import SERVICE, WRITERS
from computeapi.standalone.access import WRITER, RoleRule
from computeapi.standalone.schema import having
from computeapi.standalone.service import ServiceApp, ServiceController, microversions
from computeapi.versions import History
from computeapi.web import faults
from computeapi.web.app import MAX_SHOWN_LENGTH
from computeapi.web.controller import Function, action
from computeapi.web.request import Request
from computeapi.web.routing import Bound, Endpoint

CINDER = History(
    {
        '3.0': 'The first version.',
        '3.3': 'Users are told what went wrong after a request.',
        '3.7': 'Services show their cluster.',
        '3.9': 'Backups can be changed.',
        '3.11': 'Groups of volumes have types.',
        '3.12': 'The volumes of a project can be summed up.',
        '3.13': 'There are groups of volumes.',
        '3.14': 'Snapshots show the snapshot of a group that they belong to.',
        '3.18': 'Backups show their project.',
        '3.20': 'Administrators can say what the status of a group is.',
        '3.21': 'Administrators see the id that a driver has for a volume.',
        '3.23': 'Administrators can delete a volume whatever its status.',
        '3.25': 'Groups show their volumes.',
        '3.27': 'Attachments are a resource of their own.',
        '3.31': 'Lists refuse filters that they do not have.',
        '3.33': 'Lists say what they can be filtered by.',
        '3.36': 'The summary of volumes has their metadata.',
        '3.38': 'Groups show how they are replicated.',
        '3.40': 'Volumes can be reverted to their newest snapshot.',
        '3.41': 'Snapshots show their user.',
        '3.42': 'Volumes in use can be extended.',
        '3.43': 'Backups have metadata.',
        '3.44': 'A volume is in use when its attachment is said to be complete.',
        '3.45': 'Lists of volumes and snapshots count all that there are.',
        '3.47': 'Volumes can be made from backups.',
        '3.48': 'Volumes show their service, and whether its targets are shared.',
        '3.49': 'Services show the state of their backend.',
        '3.51': 'Backups can be made in an availability zone.',
        '3.54': 'An attachment can be made for reading only.',
        '3.55': 'Snapshots can stay when their volume goes to another project.',
        '3.56': 'Backups show their user.',
        '3.57': 'Transfers show the project that offers.',
        '3.58': 'Groups show their project.',
        '3.61': 'Administrators see the cluster of a volume.',
        '3.62': 'Projects can have a default type of their own.',
        '3.63': 'Volumes show the id of their type.',
        '3.64': 'Backups show their encryption key.',
        '3.65': 'Volumes and snapshots show whether they count against a quota.',
        '3.66': 'Snapshots of volumes in use need not be forced.',
        '3.68': 'Volumes can be written over with an image.',
    }
)
added, removed = CINDER.added, CINDER.removed

UPDATED = '2023-08-31T00:00:00Z'

USER = RoleRule('user', roles=WRITERS | {SERVICE})
"""Who may connect volumes; compute does so as a service."""


class CinderController(ServiceController):
    """A resource of the volume service."""

    history = CINDER

    def __init__(self, volumes: LocalVolumes):
        self.volumes = volumes


def argued(
    name: str, properties: dict[str, Any], *required: str, policy: RoleRule = WRITER, **kwargs: Any
) -> Callable[[Function], Function]:
    """An action whose argument is an object with these properties and possibly others."""
    return action(name, policy=policy, body={'properties': {name: having(properties, *required)}}, **kwargs)


class CinderApp(ServiceApp):
    """Serves everything at /v3/... and, for old catalogs, at /v3/{project_id}/... too."""

    service_types = ('volumev3', 'block-storage', 'block-store', 'volume', 'volumev2')
    project = re.compile('[^/]+')
    names = {**faults.FAULT_NAMES, 406: 'notAcceptable'}

    def choose(self, req: Request, endpoint: Endpoint, body: Any) -> Bound:
        if endpoint.actions and not (isinstance(body, dict) and len(body) == 1):
            named = body if isinstance(body, dict) else ()
            raise errors.Invalid(f'There is no such action: {", ".join(named)[:MAX_SHOWN_LENGTH]}')
        return super().choose(req, endpoint, body)


def versions(history: History, url: str) -> dict[str, Any]:
    return microversions(history, url, UPDATED, 'application/vnd.openstack.volume+json;version=3')
