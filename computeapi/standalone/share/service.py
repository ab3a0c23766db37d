"""Common parts of the share resources: the API versions and the app."""

import re
from typing import Any

from computeapi.backends.share.local import LocalShares
from computeapi.standalone.service import ServiceApp, ServiceController, microversions
from computeapi.versions import History

MANILA = History(
    {
        '2.0': 'The first version.',
        '2.6': 'Shares show the name of their type.',
        '2.7': 'Actions are called without os-.',
        '2.9': 'Export locations are a resource of their own.',
        '2.10': 'Shares show the state of their access rules.',
        '2.16': 'Shares show their user.',
        '2.22': 'Administrators clear the task state of shares.',
        '2.33': 'Access rules show when they were made.',
        '2.45': 'Access rules are a resource of their own.',
        '2.54': 'Shares show how far they are.',
        '2.82': 'Access rules can be locked.',
        '2.98': 'Clients ask for it; nothing differs here.',
    }
)
added, removed = MANILA.added, MANILA.removed

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


def versions(history: History, url: str) -> dict[str, Any]:
    return microversions(history, url, UPDATED, 'application/vnd.openstack.share+json;version=1')
