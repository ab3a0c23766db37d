"""Common parts of the share resources: the API versions and the app."""

import re
from typing import Any

from computeapi.backends.share.local import LocalShares
from computeapi.standalone.service import ServiceApp, ServiceController, microversions
from computeapi.versions import History

MANILA = History(
    {
        '2.0': 'The first version.',
        '2.2': 'Shares show whether they can have snapshots.',
        '2.5': 'Shares show what is being done with them.',
        '2.6': 'Shares show the name of their type.',
        '2.7': 'Actions are called without os-.',
        '2.9': 'Export locations are a resource of their own.',
        '2.10': 'Shares show the state of their access rules.',
        '2.11': 'Shares show how they are replicated.',
        '2.16': 'Shares show their user.',
        '2.22': 'Administrators clear the task state of shares.',
        '2.24': 'Shares show whether others can be made from their snapshots.',
        '2.27': 'Shares show whether they can be reverted to snapshots.',
        '2.28': 'New access rules are queued.',
        '2.31': 'Shares show their group.',
        '2.32': 'Shares show whether their snapshots can be mounted.',
        '2.33': 'Access rules show when they were made.',
        '2.35': 'Shares can be listed by their export locations.',
        '2.36': 'Shares can be listed by parts of their names and descriptions.',
        '2.41': 'Share types show their description.',
        '2.42': 'Lists of shares count all that there are.',
        '2.45': 'Access rules are a resource of their own.',
        '2.46': 'Share types show which one is the default.',
        '2.54': 'Shares show how far they are.',
        '2.64': 'Administrators can extend shares without asking the scheduler.',
        '2.69': 'Shares show whether they will be deleted.',
        '2.80': 'Shares show the backup that they were made from.',
        '2.82': 'Access rules can be locked.',
        '2.90': 'Shares show the key that they are encrypted with.',
        '2.97': 'Shares can be listed by their availability zone.',
        '2.98': 'Clients ask for it; nothing differs here.',
    }
)
added, removed, changed = MANILA.added, MANILA.removed, MANILA.changed

UPDATED = '2015-08-27T11:33:21Z'
LEGACY_HEADER = 'X-OpenStack-Manila-API-Version'


class ManilaController(ServiceController):
    """A resource of the share service."""

    history = MANILA

    def __init__(self, shares: LocalShares):
        self.shares = shares


class ManilaApp(ServiceApp):
    """Serves everything at /v2/... and, for old catalogs, at /v2/{project_id}/... too."""

    service_types = ('sharev2', 'shared-file-system', 'share')
    project = re.compile('[0-9a-f]{32}|[0-9a-f-]{36}')
    on_system = False


def versions(history: History, url: str) -> dict[str, Any]:
    return microversions(history, url, UPDATED, 'application/vnd.openstack.share+json;version=1')
