"""The versions of the volume service that bring something which it has."""

from typing import Any

from computeapi.versions import History

CINDER = History(
    {
        '3.0': 'The first version.',
        '3.7': 'Services show their cluster.',
        '3.12': 'The volumes of a project can be summed up.',
        '3.13': 'Volumes show their group.',
        '3.14': 'Snapshots show the snapshot of a group that they belong to.',
        '3.21': 'Administrators see the id that a driver has for a volume.',
        '3.23': 'Administrators can delete a volume whatever its status.',
        '3.27': 'Attachments are a resource of their own.',
        '3.36': 'The summary of volumes has their metadata.',
        '3.41': 'Snapshots show their user.',
        '3.42': 'Volumes in use can be extended.',
        '3.44': 'A volume is in use when its attachment is said to be complete.',
        '3.45': 'Lists of volumes and snapshots count all that there are.',
        '3.48': 'Volumes show their service, and whether its targets are shared.',
        '3.49': 'Services show the state of their backend.',
        '3.54': 'An attachment can be made for reading only.',
        '3.61': 'Administrators see the cluster of a volume.',
        '3.63': 'Volumes show the id of their type.',
        '3.65': 'Volumes and snapshots show whether they count against a quota.',
        '3.66': 'Snapshots of volumes in use need not be forced.',
        '3.68': 'Volumes can be written over with an image.',
    }
)
added, removed = CINDER.added, CINDER.removed

UPDATED = '2023-08-31T00:00:00Z'


def versions(url: str) -> dict[str, Any]:
    version = {
        'id': f'v{CINDER.min}',
        'status': 'CURRENT',
        'version': str(CINDER.max),
        'min_version': str(CINDER.min),
        'updated': UPDATED,
        'links': [{'rel': 'self', 'href': f'{url}/v3/'}],
        'media-types': [{'base': 'application/json', 'type': 'application/vnd.openstack.volume+json;version=3'}],
    }
    return {'versions': [version]}
