"""The versions of the identity API."""

from typing import Any

from computeapi.standalone.identity.base import KEYSTONE


def versions(url: str) -> dict[str, Any]:
    return {'versions': {'values': [version(url)['version']]}}


def version(url: str) -> dict[str, Any]:
    return {
        'version': {
            'id': f'v{KEYSTONE.max}',
            'status': 'stable',
            'updated': '2020-04-07T00:00:00Z',
            'links': [{'rel': 'self', 'href': f'{url}/v3/'}],
            'media-types': [{'base': 'application/json', 'type': 'application/vnd.openstack.identity-v3+json'}],
        }
    }
